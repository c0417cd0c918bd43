// SPDX-License-Identifier: Apache-2.0

package statefulsets_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

var more = flag.Int("seeds", 1, "simulate with this many times as many seeds")

// simulation is a group of zones in a world where anything may happen: users change,
// pause and scale sets, pods die, the StatefulSet controller and the kubelet are slow,
// caches are old, and our controller crashes or loses responses. At each deletion the
// simulation verifies independently that the guarantees are kept.
type simulation struct {
	*rand.Rand
	now   time.Time
	zones []*simulatedZone
	uids  int
	// cache is the state of each zone that our controller sees, from some time ago.
	cache map[string]statefulsets.Set
	// last and deleted are the memory of our controller.
	last    types.UID
	deleted map[types.UID]bool

	// open is the zone in which our controller last replaced pods, or wanted to, and
	// which is not complete. After a crash only the revisions show it, and they show
	// nothing once the zone was given the template back that it came from.
	open      *simulatedZone
	forgotten bool
	taken     int
	log       []string
	breaches  []string
}

// simulatedZone is the real state of a set.
type simulatedZone struct {
	statefulsets.Set
	wanted int // the template
	limit  int32
}

// broken reports whether pods of a template never start.
func broken(template int) bool { return template%4 == 3 }

func revision(template int) string { return "v" + strconv.Itoa(template) }

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		Rand: rand.New(rand.NewPCG(seed, 0)), now: noon,
		cache: map[string]statefulsets.Set{}, deleted: map[types.UID]bool{},
	}
	for i := range 2 + s.IntN(2) {
		z := &simulatedZone{limit: 1 + int32(s.IntN(2))}
		z.Set = statefulsets.Set{
			Name: fmt.Sprintf("zone-%c", 'a'+i), UID: types.UID(strconv.Itoa(i)), Strategy: "OnDelete",
			Replicas: 1 + int32(s.IntN(4)), MinReady: time.Duration(s.IntN(3)) * 10 * time.Second,
			MaxUnavailable: strconv.Itoa(int(z.limit)), CurrentRevision: revision(0), UpdateRevision: revision(0),
		}
		s.zones = append(s.zones, z)
	}
	s.settle(false)
	return s
}

func (s *simulation) record(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// happen makes one thing happen, mostly one that advances a rollout.
func (s *simulation) happen() {
	z := s.zones[s.IntN(len(s.zones))]
	if s.IntN(25) == 0 {
		s.disturb(z)
		return
	}
	switch s.IntN(5) {
	case 0:
		z.controllerActs(s)
	case 1, 2:
		for range 1 + s.IntN(4) {
			z.kubeletActs(s)
		}
		z.report()
	case 3:
		s.cache[z.Name] = z.seen()
		s.now = s.now.Add(time.Duration(s.IntN(6)) * time.Second)
	case 4:
		s.pass()
	}
}

func (s *simulation) disturb(z *simulatedZone) {
	switch s.IntN(10) {
	case 0:
		z.apply(s.IntN(6))
		s.record("%s gets %s", z.Name, revision(z.wanted))
	case 1, 2:
		template := s.IntN(6)
		for _, z := range s.zones {
			z.apply(template)
		}
		s.record("all get %s", revision(template))
	case 3:
		z.Replicas = int32(s.IntN(5))
		z.Generation++
		s.record("%s is scaled to %d", z.Name, z.Replicas)
	case 4:
		z.Paused = true
		s.record("%s is paused", z.Name)
	case 5:
		z.Strategy = "RollingUpdate"
		s.record("%s has another strategy", z.Name)
	case 6:
		for _, z := range s.zones {
			z.Paused, z.Strategy = false, "OnDelete"
		}
		s.record("nothing is paused, and all have OnDelete")
	case 7, 8:
		s.accident(z)
	case 9:
		s.last, s.deleted, s.forgotten = "", map[types.UID]bool{}, true
		s.record("we crash")
	}
}

// apply sets a template in the zone.
func (z *simulatedZone) apply(template int) {
	if z.wanted != template {
		z.wanted = template
		z.Generation++
	}
}

// accident makes something happen to a pod.
func (s *simulation) accident(z *simulatedZone) {
	if len(z.Pods) == 0 {
		return
	}
	i := s.IntN(len(z.Pods))
	pod := &z.Pods[i]
	switch s.IntN(4) {
	case 0:
		pod.Ready, pod.Stuck = false, ""
		s.record("%s is not ready any more", pod.Name)
	case 1:
		pod.Terminating, pod.Ready = true, false
		s.record("%s is deleted by somebody", pod.Name)
	case 2:
		s.record("%s is gone", pod.Name)
		z.Pods = slices.Delete(z.Pods, i, i+1)
	case 3:
		if pod.Ready {
			pod.ReadySince = s.now
			s.record("%s was not ready between two looks", pod.Name)
		}
	}
}

// controllerActs acts as the StatefulSet controller.
func (z *simulatedZone) controllerActs(s *simulation) {
	z.ObservedGeneration, z.UpdateRevision = z.Generation, revision(z.wanted)
	for i := range z.Pods {
		if z.ordinal(z.Pods[i].Name) >= int(z.Replicas) {
			z.Pods[i].Terminating, z.Pods[i].Ready = true, false
		}
	}
	for n := range int(z.Replicas) {
		name := z.Name + "-" + strconv.Itoa(n)
		if !slices.ContainsFunc(z.Pods, func(p statefulsets.Pod) bool { return p.Name == name }) {
			s.uids++
			z.Pods = append(z.Pods, statefulsets.Pod{Name: name, UID: types.UID("pod" + strconv.Itoa(s.uids)), Revision: z.UpdateRevision})
		}
	}
}

func (z *simulatedZone) ordinal(pod string) int {
	n, err := strconv.Atoi(pod[len(z.Name)+1:])
	if err != nil {
		panic(err)
	}
	return n
}

// kubeletActs acts as the kubelet, on one pod.
func (z *simulatedZone) kubeletActs(s *simulation) {
	if len(z.Pods) == 0 {
		return
	}
	i := s.IntN(len(z.Pods))
	pod := &z.Pods[i]
	template, err := strconv.Atoi(pod.Revision[1:])
	switch {
	case err != nil:
		panic(err)
	case pod.Terminating:
		z.Pods = slices.Delete(z.Pods, i, i+1)
	case broken(template):
		pod.Stuck = "CrashLoopBackOff"
	case !pod.Ready:
		pod.Ready, pod.ReadySince = true, s.now
	}
}

// report writes the part of the status that may lag.
func (z *simulatedZone) report() {
	z.StatusReplicas, z.StatusReady, z.StatusUpdated = int32(len(z.Pods)), 0, 0
	for _, pod := range z.Pods {
		if pod.Ready {
			z.StatusReady++
		}
		if pod.Revision == z.UpdateRevision {
			z.StatusUpdated++
		}
	}
}

func (z *simulatedZone) seen() statefulsets.Set {
	set := z.Set
	set.Pods = slices.Clone(z.Pods)
	return set
}

// pass is one pass of our controller: from an old cache, and again from the real state if
// there is something to do.
func (s *simulation) pass() {
	plan := s.decide(func(z *simulatedZone) statefulsets.Set { return s.cache[z.Name] })
	if plan.Acts() {
		plan = s.decide((*simulatedZone).seen)
	}
	for _, name := range plan.Promote {
		z := s.zone(name)
		if z.CurrentRevision = z.UpdateRevision; !s.complete(z) {
			s.breach("%s is promoted before it is complete", name)
		}
	}
	s.last = plan.Last
	for i, d := range plan.Delete {
		switch s.IntN(10) {
		case 0:
			s.last, s.deleted, s.forgotten = "", map[types.UID]bool{}, true
			s.record("we crash after %d deletions", i)
			return
		case 1:
			s.sent(d)
			s.record("the deletion of %s is lost", d.Pod)
			return
		case 2:
			s.remove(d)
			s.record("only its answer is lost")
			return
		}
		s.remove(d)
		s.deleted[d.UID] = true
	}
}

func (s *simulation) decide(see func(*simulatedZone) statefulsets.Set) statefulsets.Plan {
	g := statefulsets.Group{Now: s.now, Last: s.last, Deleted: s.deleted}
	for _, z := range s.zones {
		g.Sets = append(g.Sets, see(z))
	}
	return statefulsets.Decide(g)
}

func (s *simulation) zone(name string) *simulatedZone {
	return s.zones[slices.IndexFunc(s.zones, func(z *simulatedZone) bool { return z.Name == name })]
}

// sent returns the pod of a deletion, whether the request arrives or not; nil if it does
// not exist any more. The pod must be stuck, or its zone must have the turn.
func (s *simulation) sent(d statefulsets.Deletion) (*simulatedZone, *statefulsets.Pod) {
	z := s.zone(d.Set)
	i := slices.IndexFunc(z.Pods, func(p statefulsets.Pod) bool { return p.UID == d.UID })
	if s.last == z.UID && z != s.open {
		if s.open != nil && !(s.forgotten && (z.begun() || !s.open.begun())) {
			s.breach("%s is not complete, and it is the turn of %s", s.open.Name, z.Name)
		}
		s.open, s.forgotten = z, false
	}
	if i < 0 {
		return z, nil // as the API server responds for another UID
	}
	if z.Pods[i].Stuck == "" && s.last != z.UID {
		s.breach("it is not the turn of %s", z.Name)
	}
	return z, &z.Pods[i]
}

// remove deletes a pod, and verifies the guarantees.
func (s *simulation) remove(d statefulsets.Deletion) {
	z, pod := s.sent(d)
	if pod == nil {
		return
	}
	s.record("we delete %s of %s", pod.Name, pod.Revision)
	s.taken++
	s.inspect(z, *pod)
	pod.Terminating, pod.Ready = true, false
}

func (s *simulation) inspect(z *simulatedZone, pod statefulsets.Pod) {
	for _, other := range s.zones {
		if other.Strategy != "OnDelete" {
			s.breach("%s has %s", other.Name, other.Strategy)
		}
	}
	if z.Paused || pod.Terminating || pod.Revision == revision(z.wanted) {
		s.breach("%s is not to be touched", pod.Name)
	}
	if pod.Stuck != "" {
		return // the exception
	}
	for _, other := range s.zones {
		if other != z && s.up(other) < other.Replicas {
			s.breach("%d of %d are up in %s", s.up(other), other.Replicas, other.Name)
		}
	}
	if down := z.Replicas - z.ready() + 1; down > z.limit {
		s.breach("%d pods of %s are not ready, and %d may be", down, z.Name, z.limit)
	}
}

func (s *simulation) breach(format string, args ...any) {
	s.breaches = append(s.breaches, fmt.Sprintf(format, args...))
	s.record("BREACH: "+format, args...)
}

func (z *simulatedZone) wants(pod statefulsets.Pod) bool {
	return !pod.Terminating && z.ordinal(pod.Name) < int(z.Replicas)
}

func (z *simulatedZone) ready() (n int32) {
	for _, pod := range z.Pods {
		if z.wants(pod) && pod.Ready {
			n++
		}
	}
	return n
}

// up counts the pods that have been ready for long enough.
func (s *simulation) up(z *simulatedZone) (n int32) {
	for _, pod := range z.Pods {
		if z.wants(pod) && pod.Ready && s.now.Sub(pod.ReadySince) >= z.MinReady {
			n++
		}
	}
	return n
}

func (z *simulatedZone) begun() bool {
	return slices.ContainsFunc(z.Pods, func(p statefulsets.Pod) bool { return p.Revision != z.CurrentRevision })
}

func (s *simulation) complete(z *simulatedZone) bool {
	return s.up(z) == z.Replicas && !slices.ContainsFunc(z.Pods, func(p statefulsets.Pod) bool { return p.Revision != revision(z.wanted) })
}

// review ends the turn of a zone that is complete, or paused with all pods up.
func (s *simulation) review() {
	if s.open != nil && (s.complete(s.open) || s.open.Paused && s.up(s.open) == s.open.Replicas) {
		s.open = nil
	}
}

// settle lets every actor do its work, in turn, until nothing changes. Our controller
// takes part if we is true.
func (s *simulation) settle(we bool) {
	for range 400 {
		s.now = s.now.Add(5 * time.Second)
		for _, z := range s.zones {
			z.controllerActs(s)
			for range 2 * len(z.Pods) {
				z.kubeletActs(s)
			}
			z.report()
			s.cache[z.Name] = z.seen()
		}
		s.review()
		if we {
			s.pass()
		}
	}
}

func TestPromisesHoldWhateverHappens(t *testing.T) {
	taken := 0
	for seed := range uint64(300 * *more) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSimulation(seed)
			for range 600 {
				s.happen()
				if s.review(); len(s.breaches) > 0 {
					t.Fatalf("%v after\n%s", s.breaches, s.recently())
				}
			}
			s.fix()
			s.settle(true)
			if len(s.breaches) > 0 {
				t.Fatalf("%v after\n%s", s.breaches, s.recently())
			}
			for _, z := range s.zones {
				if !s.complete(z) || z.CurrentRevision != z.UpdateRevision {
					t.Errorf("%s is never finished: %+v\n%s", z.Name, z.Set, s.recently())
				}
			}
			if plan := s.decide((*simulatedZone).seen); plan.State != statefulsets.Done {
				t.Errorf("in the end it is %s", described(plan))
			}
			taken += s.taken
		})
	}
	if taken < 2000 {
		t.Errorf("only %d pods were replaced: the simulation tests nothing", taken)
	}
}

// fix ends every reason to block: users give every zone a version that starts, and undo
// pauses and other strategies.
func (s *simulation) fix() {
	for _, z := range s.zones {
		z.apply(10 + 2*s.IntN(2))
		z.Paused, z.Strategy = false, "OnDelete"
	}
	s.record("people fix everything")
}

func (s *simulation) recently() string {
	text := ""
	for _, line := range s.log[max(0, len(s.log)-25):] {
		text += "\t" + line + "\n"
	}
	return text
}
