// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// phase is how far a pod is that should be there.
type phase string

const (
	available   phase = "available"   // Ready for as long as the set asks
	soaking     phase = "soaking"     // Ready, and not for that long
	unready     phase = "unready"     // not Ready, and may become so by itself
	stuck       phase = "stuck"       // not Ready, and nothing says that it will be
	terminating phase = "terminating" // on its way out
)

// member is a pod with a number that the set wants.
type member struct {
	*Pod
	ordinal int32
	phase   phase
	// availableAt is when a soaking pod will be available.
	availableAt time.Time
}

// tally is a set with its pods counted.
type tally struct {
	*Set
	// members are the wanted pods that exist, in the order of their numbers.
	members []member
	// surplus are the names of pods that nobody wants, sorted.
	surplus []string
	// last means that it was the set's turn before.
	last bool
}

// tallies counts the pods of all sets, sorted by name.
func tallies(g Group) []*tally {
	all := make([]*tally, 0, len(g.Sets))
	for i := range g.Sets {
		all = append(all, count(&g.Sets[i], g))
	}
	slices.SortFunc(all, func(a, b *tally) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func count(s *Set, g Group) *tally {
	t := &tally{Set: s, last: s.UID == g.Last}
	for i := range s.Pods {
		pod := &s.Pods[i]
		ordinal, ok := s.ordinal(pod.Name)
		if !ok {
			t.surplus = append(t.surplus, pod.Name)
			continue
		}
		m := member{Pod: pod, ordinal: ordinal, availableAt: s.availableAt(pod)}
		m.phase = m.judge(g.Now, g.Deleted)
		t.members = append(t.members, m)
	}
	slices.Sort(t.surplus)
	slices.SortFunc(t.members, func(a, b member) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return t
}

// ordinal is the number in a pod's name, if the set wants a pod of that number.
func (s *Set) ordinal(pod string) (int32, bool) {
	text, ok := strings.CutPrefix(pod, s.Name+"-")
	number, err := strconv.ParseInt(text, 10, 32)
	first, end := int64(s.FirstOrdinal), int64(s.FirstOrdinal)+int64(s.Replicas)
	return int32(number), ok && err == nil && number >= first && number < end
}

// availableAt is when a Ready pod becomes available. The time at which it became
// Ready is given in full seconds, so up to one more has to pass.
func (s *Set) availableAt(pod *Pod) time.Time {
	if s.MinReady == 0 {
		return pod.ReadySince
	}
	return pod.ReadySince.Add(s.MinReady + time.Second)
}

func (m *member) judge(now time.Time, deleted map[types.UID]bool) phase {
	switch {
	case m.Terminating, deleted[m.UID]:
		return terminating
	case m.Ready && m.availableAt.After(now):
		return soaking
	case m.Ready:
		return available
	case m.Stuck != "":
		return stuck
	}
	return unready
}

// observed means that the status is about the set as it is now. Otherwise it
// does not say which revision is wanted.
func (t *tally) observed() bool {
	return t.ObservedGeneration >= t.Generation && t.UpdateRevision != ""
}

// outdated reports whether a pod is of another revision than is wanted.
func (t *tally) outdated(m member) bool {
	return t.observed() && m.Revision != t.UpdateRevision
}

func (t *tally) hasOutdated() bool { return slices.ContainsFunc(t.members, t.outdated) }

func (t *tally) in(p phase) (n int32) {
	for _, m := range t.members {
		if m.phase == p {
			n++
		}
	}
	return n
}

// missing pods are wanted and do not exist.
func (t *tally) missing() int32 { return t.Replicas - int32(len(t.members)) }

// unavailable counts the pods that are wanted and not available. The status can
// only make it more.
func (t *tally) unavailable() int32 { return t.unavailableBut(0) }

// unavailableBut leaves some out of it.
func (t *tally) unavailableBut(n int32) int32 {
	return max(t.Replicas-t.in(available)-n, t.StatusReplicas-t.StatusReady)
}

// outdatedSoaking counts the pods that are soaking in vain.
func (t *tally) outdatedSoaking() (n int32) {
	for _, m := range t.members {
		if m.phase == soaking && t.outdated(m) {
			n++
		}
	}
	return n
}

// settled means that nothing is to be expected of the set: other sets need not
// wait for it.
func (t *tally) settled() bool {
	return !t.Deleting && t.observed() && t.unavailable() <= 0 && len(t.surplus) == 0
}

// complete means that the set has nothing left to do.
func (t *tally) complete() bool { return t.settled() && !t.hasOutdated() }

// toPromote means that all pods are of the revision that is wanted, and the status
// does not say so.
func (t *tally) toPromote() bool {
	return t.complete() && !t.Paused && t.CurrentRevision != t.UpdateRevision
}

// reported means that the status, too, tells of all pods that they are updated and
// ready, which is what the StatefulSet controller itself asks of it before it
// promotes a revision. Until then that controller is about to write the status, and
// would write over whatever is written before.
func (t *tally) reported() bool { return min(t.StatusReady, t.StatusUpdated) >= t.Replicas }

// over means that a turn of the set has ended, by itself or because it was paused. If
// there is something to promote, that ends it.
func (t *tally) over() bool {
	return t.complete() && (!t.toPromote() || t.reported()) || t.Paused && t.settled()
}

// halfway means that the set has begun to roll out and is not complete: a pod is
// of another revision than the one which was complete last, or it was its turn.
func (t *tally) halfway() bool {
	return !t.complete() && (t.last || slices.ContainsFunc(t.members, func(m member) bool {
		return m.Revision != t.CurrentRevision
	}))
}

// atRest means that waiting alone does not change the set: it is settled, or
// what it lacks is stuck. Behind a stuck pod others may be missing, or still be
// there, because they are created and deleted in order.
func (t *tally) atRest() bool {
	return t.settled() || !t.Deleting && t.observed() &&
		t.in(stuck) > 0 && t.in(terminating)+t.in(unready)+t.in(soaking) == 0
}

// mayLast means that nobody knows when the set will be settled. The StatefulSet
// controller observes a change at once, and when a pod that is Ready will be
// available is known.
func (t *tally) mayLast() bool {
	return t.Deleting || t.observed() && t.in(available)+t.in(soaking) < t.Replicas || len(t.surplus) > 0
}

// mayReplace means that pods of the set may be touched at all.
func (t *tally) mayReplace() bool { return !t.Paused && !t.Deleting && t.observed() }
