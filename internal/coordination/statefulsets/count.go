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

// phase is the state of a wanted pod.
type phase string

const (
	available   phase = "available"   // Ready for as long as the set requires
	soaking     phase = "soaking"     // Ready, but not for that long
	unready     phase = "unready"     // not Ready, and may become Ready by itself
	stuck       phase = "stuck"       // not Ready, and not expected to become Ready
	terminating phase = "terminating" // being deleted
)

// member is a pod with an ordinal that the set wants.
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
	// members are the wanted pods that exist, in the order of their ordinals.
	members []member
	// surplus are the names of pods that are not wanted, sorted.
	surplus []string
	// last means that the set had the turn before.
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

// ordinal returns the number in a pod's name, and whether the set wants a pod of that
// number.
func (s *Set) ordinal(pod string) (int32, bool) {
	text, ok := strings.CutPrefix(pod, s.Name+"-")
	number, err := strconv.ParseInt(text, 10, 32)
	first, end := int64(s.FirstOrdinal), int64(s.FirstOrdinal)+int64(s.Replicas)
	return int32(number), ok && err == nil && number >= first && number < end
}

// availableAt returns when a Ready pod becomes available. The time at which it became
// Ready is in whole seconds, so up to one more second has to pass.
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

// Observed reports whether the status is about the present generation of the set.
// Otherwise the wanted revision is unknown.
func (s *Set) Observed() bool {
	return s.ObservedGeneration >= s.Generation && s.UpdateRevision != ""
}

// overdueAt returns when a status that is of an older generation has been so for too long;
// zero means never.
func (s *Set) overdueAt() time.Time {
	if s.UnobservedSince.IsZero() || s.Deleting {
		return time.Time{}
	}
	return s.UnobservedSince.Add(patience)
}

// outdated reports whether a pod has another revision than the wanted one.
func (t *tally) outdated(m member) bool {
	return t.Observed() && m.Revision != t.UpdateRevision
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

// missing returns how many wanted pods do not exist.
func (t *tally) missing() int32 { return t.Replicas - int32(len(t.members)) }

// unavailable returns how many wanted pods are not available. The status can only
// increase the number.
func (t *tally) unavailable() int32 { return t.unavailableBut(0) }

// unavailableBut returns the same, except n pods.
func (t *tally) unavailableBut(n int32) int32 {
	return max(t.Replicas-t.in(available)-n, t.StatusReplicas-t.StatusReady)
}

// outdatedSoaking counts the pods that soak although they are outdated.
func (t *tally) outdatedSoaking() (n int32) {
	for _, m := range t.members {
		if m.phase == soaking && t.outdated(m) {
			n++
		}
	}
	return n
}

// settled reports whether no change of the set is expected: other sets do not have to
// wait for it.
func (t *tally) settled() bool {
	return !t.Deleting && t.Observed() && t.unavailable() <= 0 && len(t.surplus) == 0
}

// complete reports whether the set has nothing left to do.
func (t *tally) complete() bool { return t.settled() && !t.hasOutdated() }

// toPromote reports whether all pods have the wanted revision, and the status does not
// show it.
func (t *tally) toPromote() bool {
	return t.complete() && !t.Paused && t.CurrentRevision != t.UpdateRevision
}

// reported reports whether the status, too, has all pods as updated and ready. That is
// the condition on which the StatefulSet controller itself promotes a revision. Until
// then that controller is about to write the status, and would overwrite any earlier
// write.
func (t *tally) reported() bool { return min(t.StatusReady, t.StatusUpdated) >= t.Replicas }

// over reports whether a turn of the set has ended, by itself or because the set was
// paused. If there is something to promote, the promotion ends it.
func (t *tally) over() bool {
	return t.complete() && (!t.toPromote() || t.reported()) || t.Paused && t.settled()
}

// halfway reports whether the set has begun to roll out and is not complete: it had the
// turn, or a pod has another revision than the one that was complete last.
func (t *tally) halfway() bool {
	return !t.complete() && (t.last || slices.ContainsFunc(t.members, func(m member) bool {
		return m.Revision != t.CurrentRevision
	}))
}

// atRest reports whether waiting alone does not change the set: it is settled, or the
// missing pods are stuck. Behind a stuck pod others may be missing, or still exist,
// because pods are created and deleted in order.
func (t *tally) atRest() bool {
	return t.settled() || !t.Deleting && t.Observed() &&
		t.in(stuck) > 0 && t.in(terminating)+t.in(unready)+t.in(soaking) == 0
}

// mayLast reports whether it is unknown when the set will be settled. The StatefulSet
// controller observes a change at once, or else that is reported about the set itself, and
// it is known when a Ready pod will be available.
func (t *tally) mayLast() bool {
	return t.Deleting || t.Observed() && t.in(available)+t.in(soaking) < t.Replicas || len(t.surplus) > 0
}

// mayReplace reports whether pods of the set may be replaced at all.
func (t *tally) mayReplace() bool { return !t.Paused && !t.Deleting && t.Observed() }
