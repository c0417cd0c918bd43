// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fleet is several Rollouts of a namespace that get the same content, each under tags of
// its own, and the quarantines that they share.
type fleet struct {
	t      *testing.T
	rng    *rand.Rand
	worlds []*world
	// stored are the quarantines, by kind and name.
	stored map[string]*kept
	// reported are the failures that were reported to any of them.
	reported map[reported]bool
	pushed   int
	lines    []string
}

// kept is a quarantine as the API server has it, and what is remembered of it.
type kept struct {
	quarantined.Quarantine
	created time.Time
	// reported are the failures that were reported to it.
	reported map[reported]bool
	shown    string
}

// reported identifies a failure.
type reported struct {
	rollout types.UID
	failure failure
}

func failureIn(listed v1alpha1.ReleaseFailure) reported {
	f := failure{id: listed.EntryID}
	if listed.LastRetryTimestamp != nil {
		f.retried = listed.LastRetryTimestamp.UTC().String()
	}
	return reported{listed.Rollout.UID, f}
}

func newFleet(t *testing.T, rng *rand.Rand) *fleet {
	t.Helper()
	return &fleet{t: t, rng: rng, stored: map[string]*kept{}, reported: map[reported]bool{}}
}

// add adds a Rollout.
func (f *fleet) add(name string, rollout *fixture.RolloutBuilder) *world {
	w := newWorld(f.t, rollout, f.rng)
	w.fleet, w.rollout.Name, w.rollout.UID = f, name, types.UID(name+"-uid")
	f.worlds = append(f.worlds, w)
	return w
}

// sharedContent returns the digest of a tag: the minor version says what it contains, so
// that 2.7.0 and 3.7.0 are the same.
func sharedContent(tag string, pushes int) string {
	if parts := strings.Split(tag, "."); len(parts) == 3 {
		tag = parts[1]
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, "%s/%d", tag, pushes)))
}

// step makes everyone act once, and moves the clock.
func (f *fleet) step(people func()) {
	people()
	order := slices.Clone(f.worlds)
	if f.rng != nil {
		f.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, w := range order {
		w.act(func() {})
		f.lines = append(f.lines, w.lines...)
		w.lines = nil
		f.settle()
	}
	f.setClock(f.soon())
}

func (f *fleet) now() time.Time { return f.worlds[0].now }

func (f *fleet) setClock(now time.Time) {
	for _, w := range f.worlds {
		w.now = now
	}
}

// soon returns the next tick, or when a Rollout wants to look again if that comes first.
// Nobody wakes a Rollout when a quarantine ends.
func (f *fleet) soon() time.Time {
	next := f.now().Add(5 * time.Minute).Truncate(time.Minute)
	if f.rng != nil {
		next = f.now().Add(time.Minute + time.Duration(f.rng.IntN(10))*time.Minute)
	}
	if due := f.due(); !due.IsZero() && due.Before(next) {
		return due
	}
	return next
}

// due returns when the first Rollout wants to look again; zero if none does.
func (f *fleet) due() (first time.Time) {
	for _, w := range f.worlds {
		if at := w.recheckAt; !at.IsZero() && !at.Before(f.now()) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// settle plays the reconciler of quarantines.
func (f *fleet) settle() {
	for _, name := range slices.Sorted(maps.Keys(f.stored)) {
		q := f.stored[name]
		counted := quarantine.Counted(q.Status, q.Managed, q.created)
		q.Status = quarantine.Settle(&q.Spec, counted, 1, f.now())
		f.checkStored(q)
		f.logStored(q)
		if ended := q.Status.EndedAt; q.Managed && ended != nil && !f.now().Before(ended.Add(quarantine.KeptFor)) {
			delete(f.stored, name)
		}
	}
}

func (f *fleet) logStored(q *kept) {
	shown := string(q.Status.Phase)
	if until := quarantine.Until(&q.Spec, &q.Status); !until.IsZero() {
		shown += ", until " + until.Format(time.RFC3339)
	}
	for _, failed := range q.Status.Failures {
		shown += fmt.Sprintf(", failed on %s #%d", failed.Rollout.Name, failed.EntryID)
	}
	if shown != q.shown {
		f.lines = append(f.lines, fmt.Sprintf("[%s] %s", q.Name, clockText(f.now())), "  "+shown)
	}
	q.shown = shown
}

// lookAtFleet fills the cache, or leaves it stale for a while.
func (w *world) lookAtFleet() {
	if w.fleet == nil || w.chance(4) {
		return
	}
	w.cached = nil
	for _, q := range w.fleet.stored {
		w.cached = append(w.cached, q.Quarantine)
	}
	w.cached = clonesOf(w.cached)
	slices.SortFunc(w.cached, func(a, b quarantined.Quarantine) int { return cmp.Compare(a.Name, b.Name) })
}

func clonesOf(all []quarantined.Quarantine) []quarantined.Quarantine {
	clones := slices.Clone(all)
	for i := range clones {
		clones[i].Spec, clones[i].Status = *all[i].Spec.DeepCopy(), *all[i].Status.DeepCopy()
	}
	return clones
}

// reports returns the writes with which the controller reports, in their order. Like the
// controller, they read the quarantine as it is stored.
func (w *world) reports(in promotion.Input) []func() {
	if w.fleet == nil {
		return nil
	}
	in.Rollout = w.rollout.DeepCopy()
	report := promotion.DueReport(in)
	if report == nil {
		return nil
	}
	acknowledge := func() { quarantined.Acknowledge(w.rollout.Status.History, *report) }
	q := w.fleet.stored[v1alpha1.ReleaseQuarantineKind+" "+report.Name]
	switch {
	case q == nil:
		return []func(){func() { w.fleet.create(*report) }, func() { w.tell(*report) }, acknowledge}
	case !quarantine.TakesFailures(&q.Spec, q.Managed):
		return nil
	case quarantine.Lists(&q.Status, report.Failure):
		return []func(){acknowledge}
	}
	return []func(){func() { w.tell(*report) }, acknowledge}
}

// tell writes a failure.
func (w *world) tell(report quarantined.Report) {
	q := w.fleet.stored[v1alpha1.ReleaseQuarantineKind+" "+report.Name]
	status, _ := quarantine.Report(q.Status, report.Failure, w.rollout.Spec.Quarantine)
	w.checkReport(q, report, status)
	q.Status = quarantine.Settle(&q.Spec, status, 1, w.now)
	w.log("controller", "reports it to %s", report.Name)
}

func (f *fleet) create(report quarantined.Report) {
	f.store(quarantined.Quarantine{
		Name: v1alpha1.ReleaseQuarantineKind + " " + report.Name, Managed: true,
		Spec: v1alpha1.ReleaseQuarantineSpec{Digest: report.Digest, Image: image, Tags: []string{report.Tag}},
	})
}

func (f *fleet) store(q quarantined.Quarantine) {
	f.stored[q.Name] = &kept{Quarantine: q, created: f.now().Truncate(time.Second), reported: map[reported]bool{}}
}
