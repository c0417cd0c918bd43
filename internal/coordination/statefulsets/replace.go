// SPDX-License-Identifier: Apache-2.0

package statefulsets

// beyondHope reports whether a pod is stuck and outdated. To replace such a pod makes
// nothing worse. A stuck pod of the wanted revision would come back the same.
func (t *tally) beyondHope(m member) bool { return m.phase == stuck && t.outdated(m) }

// stuckPods returns the pods that can be replaced independently of the budget.
func (t *tally) stuckPods() []Deletion {
	var pods []Deletion
	for _, m := range t.members {
		if t.beyondHope(m) {
			pods = append(pods, t.deletion(m))
		}
	}
	return pods
}

// nextPods returns the pods that can be replaced now if the set has the turn, in the
// order of their ordinals. It does not wait for an outdated pod that is Ready and not
// available yet: the pod counts as unavailable already, so its replacement costs nothing,
// as long as no more pods are being replaced than the budget allows.
func (t *tally) nextPods() []Deletion {
	budget, _ := t.budget()
	unavailable, onTheirWay := t.unavailable(), t.unavailableBut(t.outdatedSoaking())
	var pods []Deletion
	for _, m := range t.members {
		if !t.outdated(m) {
			continue
		}
		switch m.phase {
		case stuck:
			pods = append(pods, t.deletion(m))
		case soaking:
			if onTheirWay < budget {
				onTheirWay++
				pods = append(pods, t.deletion(m))
			}
		case available:
			if unavailable < budget {
				unavailable, onTheirWay = unavailable+1, onTheirWay+1
				pods = append(pods, t.deletion(m))
			}
		case unready, terminating:
		}
	}
	return pods
}

func (t *tally) deletion(m member) Deletion {
	return Deletion{Set: t.Name, Pod: m.Name, UID: m.UID, From: m.Revision, To: t.UpdateRevision}
}
