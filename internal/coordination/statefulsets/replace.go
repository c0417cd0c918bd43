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
// order of their numbers. A Ready pod that is not available yet counts as
// unavailable already, so replacing it costs the budget nothing, as long as no
// more pods stop being Ready than the budget has.
func (t *tally) nextPods() []Deletion {
	budget, _ := t.budget()
	unavailable, notReady := t.unavailable(), t.notReady()
	var pods []Deletion
	for _, m := range t.members {
		if !t.outdated(m) {
			continue
		}
		switch m.phase {
		case stuck:
			pods = append(pods, t.deletion(m))
		case soaking:
			if notReady < budget {
				notReady++
				pods = append(pods, t.deletion(m))
			}
		case available:
			if max(unavailable, notReady) < budget {
				unavailable, notReady = unavailable+1, notReady+1
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
