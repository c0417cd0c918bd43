// SPDX-License-Identifier: Apache-2.0

package statefulsets

// beyondHope means that a pod is stuck and outdated, so that replacing it makes
// nothing worse. A stuck pod of the revision that is wanted would come back as
// it is.
func (t *tally) beyondHope(m member) bool { return m.phase == stuck && t.outdated(m) }

// stuckPods are those that can be replaced whatever the budget.
func (t *tally) stuckPods() []Deletion {
	var pods []Deletion
	for _, m := range t.members {
		if t.beyondHope(m) {
			pods = append(pods, t.deletion(m))
		}
	}
	return pods
}

// nextPods are the pods that can be replaced now if it is the set's turn, in the
// order of their numbers. An outdated pod that is Ready, and not available yet,
// is not waited for: it counts as unavailable already, so that replacing it costs
// nothing, as long as no more pods are on their way than the budget has.
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
