// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// FuzzOrder checks that all comparable tags are ordered, that all admitted tags are
// comparable, and that nothing panics.
func FuzzOrder(f *testing.F) {
	f.Add("semver", ">=1.0.0-0", "", "", false, "1.9.0", "1.10.0", "1.10.0-rc.1")
	f.Add("semver", "*", `^(?P<v>.+)_(?P<b>\d+)$`, "$v+$b", false, "1.0.0_1", "1.0.0_2", "1.1.0_1")
	f.Add("numerical", "", "^main-[0-9a-f]+-(?P<ts>[0-9]+)$", "$ts", true, "main-a-1", "main-b-2", "dev")
	f.Add("numerical", "", "", "", false, "NaN", "-Inf", "0x1p-2")
	f.Add("numerical", "", "", "", true, "9007199254740992", "9007199254740993", "9007199254740992.0")
	f.Add("alphabetical", "", "", "", true, "a", "b", "")
	f.Add("appearance", "", "", "", false, "a", "b", "c")
	f.Fuzz(func(t *testing.T, kind, within, pattern, extract string, desc bool, a, b, c string) {
		o, err := releases.NewOrder(releases.OrderSpec{
			Kind: releases.OrderKind(kind), Range: within, Pattern: pattern, Extract: extract, Descending: desc,
		})
		if err != nil {
			return
		}
		for _, tag := range []string{a, b, c} {
			if o.Admits(tag) && !o.Comparable(tag) && o.Kind() != releases.ByAppearance {
				t.Errorf("%q is admitted but cannot be ranked", tag)
			}
			if same, ok := o.Compare(tag, tag); ok != o.Comparable(tag) || same != 0 {
				t.Errorf("%q compares with itself as %d, %t", tag, same, ok)
			}
		}
		ab, okAB := o.Compare(a, b)
		ba, okBA := o.Compare(b, a)
		if ab != -ba || okAB != okBA {
			t.Errorf("Compare(%q, %q) = %d, %t but the other way round %d, %t", a, b, ab, okAB, ba, okBA)
		}
		if okAB != (o.Comparable(a) && o.Comparable(b)) {
			t.Errorf("%q and %q: comparable together is %t", a, b, okAB)
		}
		if precedence, ok := o.Precedence(a, b); ok != okAB || precedence != 0 && precedence != ab {
			t.Errorf("Precedence(%q, %q) = %d, %t, but Compare says %d, %t", a, b, precedence, ok, ab, okAB)
		}
		bc, okBC := o.Compare(b, c)
		ac, okAC := o.Compare(a, c)
		if okAB && okBC && (!okAC || ab <= 0 && bc <= 0 && ac != min(ab, bc)) {
			t.Errorf("%q, %q, %q: %d and %d, but %d, %t", a, b, c, ab, bc, ac, okAC)
		}
	})
}

// FuzzResetMark checks that a mark is read back as it was written.
func FuzzResetMark(f *testing.F) {
	f.Add(int64(7), true, int64(1772449200), int64(0), false, int64(1772445600), true)
	f.Add(int64(0), false, int64(0), int64(-1), true, int64(0), false)
	f.Fuzz(func(t *testing.T, id int64, hasID bool, recorded, retried int64, hasRetry bool, failed int64, hasFailed bool) {
		for _, moment := range []*int64{&recorded, &retried, &failed} {
			*moment &= 1<<36 - 1 // the wire format only allows years of four digits
		}
		made := entry("1.0.0").Deploying().At(time.Unix(recorded, 0))
		if hasID {
			made.ID(id)
		}
		if hasRetry {
			made.Retried(time.Unix(retried, 0))
		}
		e := made.Obj()
		var removed *metav1.Time
		if hasFailed {
			removed = wireTime(time.Unix(failed, 0))
		}
		shop := rollout().Obj()
		made.ID(id + 1)
		other := made.Obj()
		state := func(c *fixture.HealthCheckBuilder, e *v1alpha1.DeploymentHistoryEntry) evidence.ProofState {
			return evidence.Prove([]v1alpha1.HealthCheck{*c.Obj()}, shop.UID, e)[0].State
		}
		marked := func() *fixture.HealthCheckBuilder { return check("db").Mark(shop, evidence.ResetMark(&e, removed)) }
		begun := evidence.BegunMark(&e, removed)
		diff(t, evidence.ResetMark(&e, removed), evidence.CompleteMark(&e, begun))
		diff(t, evidence.Unreset, state(check("db").Healthy().Mark(shop, begun), &e))
		diff(t, evidence.Proven, state(marked().Healthy(), &e))
		diff(t, evidence.Unreset, state(marked().Healthy(), &other))
		if hasFailed {
			diff(t, evidence.Undecided, state(marked().Unhealthy().ErrorAt(removed.Time), &e))
			diff(t, evidence.Disproven, state(marked().Unhealthy().ErrorAt(removed.Add(time.Second)), &e))
		}
	})
}

// FuzzDecide checks that the engine does not panic or modify its input, whatever the
// status contains, and that every decision can be recorded.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a rollout with a history, candidates, gates and checks, as the bytes may have it"))
	for seed := range byte(40) {
		some := make([]byte, 200)
		for i := range some {
			some[i] = byte(i*i)*seed + byte(i)*7 + seed
		}
		f.Add(some)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := (&dice{data}).input()
		before := copyInput(in)
		d := promotion.Decide(in)
		if !reflect.DeepEqual(before, in) {
			t.Error("Decide modified its input")
		}
		if !reflect.DeepEqual(d, promotion.Decide(in)) {
			t.Error("Decide is not deterministic")
		}
		history, err := promotion.Record(in, d)
		if err != nil {
			t.Fatalf("%s cannot be recorded: %v", d.Action, err)
		}
		if report := promotion.DueReport(in); report != nil {
			quarantined.Acknowledge(history, *report)
		}
		if !reflect.DeepEqual(before, in) {
			t.Error("Record modified its input")
		}
		checkFuzzed(t, in, d, history)
	})
}

func checkFuzzed(t *testing.T, in promotion.Input, d promotion.Decision, history []v1alpha1.DeploymentHistoryEntry) {
	t.Helper()
	if !d.RecheckAt.IsZero() && !d.RecheckAt.After(in.Now) {
		t.Errorf("the next look at %s is not after %s", d.RecheckAt, in.Now)
	}
	if !d.Action.Promotes() {
		diff(t, len(in.Rollout.Status.History), len(history))
		return
	}
	current := in.Rollout.Current()
	if current != nil && current.Version.Tag == d.Release.Tag {
		t.Errorf("%s is promoted again", d.Release.Tag)
	}
	if d.Back != nil {
		checkFuzzedRollback(t, in, d, history)
		return
	}
	if verdict := verdictOn(d); !d.Manual && verdict != nil && verdict.HeldByGates() && current != nil {
		t.Errorf("%s is promoted although it is held: %v", d.Release.Tag, verdict.Holds)
	}
	if closed := func(w promotion.Window) bool { return !w.Open }; current != nil && !d.Manual && slices.ContainsFunc(in.Gates.Schedules, closed) {
		t.Errorf("%s is promoted while a schedule is closed", d.Release.Tag)
	}
	if current != nil && running(history[1:]) > running(in.Rollout.Status.History[1:]) {
		t.Errorf("%s is left running", current.Version.Tag)
	}
	promoted := in
	promoted.Rollout = in.Rollout.DeepCopy()
	promoted.Rollout.Status.History, promoted.Rollout.Status.AvailableReleases = history, d.Ledger
	if again := promotion.Decide(promoted); again.Action.Promotes() && again.Release.Tag == d.Release.Tag {
		t.Errorf("%s would be promoted twice in a row", d.Release.Tag)
	}
}

// checkFuzzedRollback checks a decision to go back: the newest entry has failed and is no
// rollback, and the release has succeeded. Then the Rollout does not go back once more.
func checkFuzzedRollback(t *testing.T, in promotion.Input, d promotion.Decision, history []v1alpha1.DeploymentHistoryEntry) {
	t.Helper()
	current := in.Rollout.Current()
	if current.State() != v1alpha1.BakeFailed || current.IsRollback() || d.Recovery == nil || !history[0].IsRollback() {
		t.Errorf("%s, which is %s, is answered by %+v", current.Version.Tag, current.State(), history[0])
	}
	if !slices.ContainsFunc(in.Rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return e.Version.Tag == d.Release.Tag && e.State() == v1alpha1.BakeSucceeded
	}) {
		t.Errorf("%s has not succeeded here", d.Release.Tag)
	}
	in.Rollout = in.Rollout.DeepCopy()
	in.Rollout.Status.History, in.Rollout.Status.AvailableReleases = history, d.Ledger
	if again := promotion.Decide(in); again.Back != nil || again.Action == promotion.FailBake {
		t.Errorf("after the rollback it would %s %s", again.Action, again.Release.Tag)
	}
}

func running(history []v1alpha1.DeploymentHistoryEntry) (count int) {
	for i := range history {
		if history[i].State().Running() {
			count++
		}
	}
	return count
}

// verdictOn returns the verdict on the release that is promoted; nil if it has none.
func verdictOn(d promotion.Decision) *promotion.Verdict {
	for i := range d.Candidates {
		if d.Candidates[i].Release.Tag == d.Release.Tag {
			return &d.Candidates[i]
		}
	}
	return nil
}

// dice turns any bytes into an Input.
type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	first := d.data[0]
	d.data = d.data[1:]
	return int(first) % n
}

func (d *dice) yes() bool { return d.roll(2) == 1 }

func (d *dice) tag() string {
	return []string{"1.0.0", "1.1.0", "1.2.0", "1.2.0-rc.1", "v1.1.0", "2.0.0", "hotfix", "10", "9", "no tag", ""}[d.roll(11)]
}

func (d *dice) moment() time.Time { return noon.Add(time.Duration(d.roll(9)-4) * 15 * time.Minute) }

func (d *dice) input() promotion.Input {
	s := given(d.rollout()).at(d.moment()).ranked([]releases.OrderSpec{anySemver, byNumber, descending(byNumber), byAlphabet, byAppearance, {}}[d.roll(6)])
	s.namesNothing()
	if d.yes() {
		s.names(release(d.tag()).Digest(d.tag()).Obj())
	}
	for range d.roll(4) {
		s.input.Policy.Scanned = append(s.input.Policy.Scanned, d.tag())
	}
	d.gates(s)
	d.checks(s)
	for range d.roll(3) {
		states := []v1alpha1.TargetState{v1alpha1.TargetApplied, v1alpha1.TargetPending, v1alpha1.TargetFailed, v1alpha1.TargetConflict, ""}
		s.input.Targets.All = append(s.input.Targets.All, target("apps", states[d.roll(5)], ""))
	}
	for range d.roll(3) {
		s.input.Targets.Owned = append(s.input.Targets.Owned, d.tag())
	}
	for range d.roll(3) {
		s.input.Targets.Carried = append(s.input.Targets.Carried, d.tag())
	}
	d.environments(s)
	d.quarantines(s)
	for _, breaks := range []func() *situation{s.policyUnreadable, s.gatesUnreadable, s.healthUnreadable, s.targetsUnreadable} {
		if d.roll(8) == 7 {
			breaks()
		}
	}
	return s.in()
}

func (d *dice) rollout() *fixture.RolloutBuilder {
	r := rollout()
	for _, set := range []func(){
		func() { r.BakeTime(time.Duration(d.roll(5)) * 15 * time.Minute) },
		func() { r.DeployTimeout(time.Duration(d.roll(5)) * 15 * time.Minute) },
		func() { r.ReleaseUpdateInterval(time.Duration(d.roll(5)) * 15 * time.Minute) },
		func() { r.SelectAllChecks() },
		func() { r.FirstRelease(v1alpha1.FirstReleaseApplied) },
		func() { r.Pin(d.tag()) },
		func() { r.HistoryLimit(int32(1 + d.roll(4))) },
		func() { r.Retention(int32(1+d.roll(9)), int32(1+d.roll(4))) },
	} {
		if d.yes() {
			set()
		}
	}
	if d.yes() {
		r.RollsBack(d.rollback)
	}
	var known []v1alpha1.VersionInfo
	for range d.roll(6) {
		next := release(d.tag())
		if d.yes() {
			next.Created(d.moment()).Digest(d.tag())
		}
		known = append(known, next.Obj())
	}
	var history []*fixture.EntryBuilder
	for range d.roll(6) {
		history = append(history, d.entry())
	}
	return r.Releases(known...).History(history...)
}

func (d *dice) entry() *fixture.EntryBuilder {
	states := []v1alpha1.BakeStatus{
		"", v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled, "Pending",
	}
	e := entry(d.tag()).At(d.moment()).State(states[d.roll(7)])
	if d.yes() {
		e.BakeStart(d.moment())
	}
	if d.yes() {
		e.Retried(d.moment())
	}
	if d.yes() {
		e.WithoutID()
	}
	if d.yes() {
		e.Due(d.cause(), d.anyMoment())
	}
	if d.roll(4) == 3 {
		e.Back(d.tag(), d.id(), d.id())
	}
	return e
}

// rollback sets spec.rollback to values that the API server may not accept today.
func (d *dice) rollback(r *v1alpha1.RolloutRollback) {
	duration := func() *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(d.roll(6)-1) * 15 * time.Minute}
	}
	for _, set := range []func(){
		func() { r.Delay = duration() },
		func() { r.BakeTime = duration() },
		func() { r.OverdueAfter = duration() },
		func() { r.MaxConsecutive = to(int32(d.roll(4))) },
		func() { r.Causes = []v1alpha1.FailureCause{d.cause(), d.cause()} },
		func() { r.NotBelow = d.tag() },
		func() {
			r.Schedules = []v1alpha1.RollbackSchedules{v1alpha1.RollbackSchedulesObey, "Sometimes"}[d.roll(2)]
		},
		func() { r.Barriers = v1alpha1.RollbackBarriersRespect },
	} {
		if d.yes() {
			set()
		}
	}
}

func (d *dice) cause() v1alpha1.FailureCause {
	return []v1alpha1.FailureCause{
		"", v1alpha1.CauseHealthCheckFailed, v1alpha1.CauseTargetUnhealthy, v1alpha1.CauseDeployTimeout, "DigestMismatch",
	}[d.roll(5)]
}

func (d *dice) id() int64 { return []int64{0, 1, -1, math.MaxInt64, math.MinInt64}[d.roll(5)] }

// anyMoment is near, or as far away as the wire format allows.
func (d *dice) anyMoment() time.Time {
	far := []time.Time{{}, time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)}
	if at := d.roll(8); at < len(far) {
		return far[at]
	}
	return d.moment()
}

func (d *dice) gates(s *situation) {
	var gates []*fixture.GateBuilder
	for range d.roll(3) {
		next := gate("gate")
		if d.yes() {
			next.Closed()
		}
		if d.yes() {
			next.Allow(slices.Repeat([]string{d.tag()}, d.roll(2))...)
		}
		gates = append(gates, next)
	}
	s.gates(gates...)
	for range d.roll(3) {
		until := never
		if next := d.moment(); d.yes() && next.After(s.input.Now) {
			until = next
		}
		windows := []promotion.Window{openUntil(until, "nights"), closedUntil(until, "nights"), {Schedule: "RolloutSchedule nights", Problem: broken}}
		s.input.Gates.Schedules = append(s.input.Gates.Schedules, windows[d.roll(3)])
	}
}

func (d *dice) checks(s *situation) {
	for range d.roll(3) {
		next := check("check").State([]v1alpha1.HealthStatus{"", v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthStatusPending}[d.roll(4)])
		if d.yes() {
			next.ErrorAt(d.moment())
		}
		if d.yes() {
			next.Message(d.tag())
		}
		if d.yes() && s.input.Rollout.Current() != nil {
			s.resetChecksFrom(wireTime(d.moment()), next)
			continue
		}
		s.checks(next)
	}
}

func (d *dice) environments(s *situation) {
	for range d.roll(3) {
		var upstreams []upstream.Upstream
		for range d.roll(3) {
			upstreams = append(upstreams, d.upstream())
		}
		e := prod(upstreams...)
		for _, set := range []func() *ruled{e.oneOf, e.byRevision, e.onlyCurrent, e.manual} {
			if d.yes() {
				set()
			}
		}
		e.bypass([]environmentsv1.Bypass{"", environmentsv1.BypassAllowed, environmentsv1.BypassDenied}[d.roll(3)])
		s.environments(e)
	}
	for _, annotation := range []string{v1alpha1.PromoteAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.DeployMessageAnnotation} {
		if d.roll(4) == 3 {
			metav1.SetMetaDataAnnotation(&s.input.Rollout.ObjectMeta, annotation, d.tag())
		}
	}
}

// quarantines adds some that nobody but a user writes.
func (d *dice) quarantines(s *situation) {
	if d.yes() {
		s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{HoldFor: &metav1.Duration{Duration: time.Duration(d.id())}}
	}
	for range d.roll(4) {
		q := quarantined.Quarantine{Name: []string{"ReleaseQuarantine a", "ReleaseQuarantine b/a", "ClusterReleaseQuarantine a"}[d.roll(3)], Managed: d.yes()}
		for _, set := range []func(){
			func() { q.Spec.Digest = d.tag() },
			func() { q.Spec.Image, q.Spec.Tags = s.input.Policy.Image, []string{d.tag(), d.tag()} },
			func() { q.Spec.Until = wireTime(d.anyMoment()) },
			func() { q.Spec.Lifted = true },
			func() { q.Spec.Enforce = v1alpha1.EnforceAlways },
			func() { q.Status.Until = wireTime(d.anyMoment()) },
			func() { q.Status.Failures = d.failures(s.input.Rollout) },
		} {
			if d.yes() {
				set()
			}
		}
		s.input.Quarantines.All = append(s.input.Quarantines.All, q)
	}
}

func (d *dice) failures(rollout *v1alpha1.Rollout) []v1alpha1.ReleaseFailure {
	all := make([]v1alpha1.ReleaseFailure, d.roll(4))
	for i := range all {
		all[i].EntryID, all[i].Time.Time = d.id(), d.anyMoment()
		if d.yes() {
			all[i].Rollout.UID = rollout.UID
		}
	}
	return all
}

func (d *dice) upstream() upstream.Upstream {
	states := []v1alpha1.BakeStatus{v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, ""}
	var releases []environmentsv1.Release
	for range d.roll(4) {
		r := there(d.tag(), states[d.roll(5)], withDigest(d.tag()), soaked(time.Duration(d.roll(5))*15*time.Minute))
		if d.yes() {
			soakedBefore(time.Duration(d.roll(5)) * 15 * time.Minute)(&r)
		}
		if d.yes() {
			r.Withdrawn = "went back"
		}
		releases = append(releases, r)
	}
	u := soaking(time.Duration(d.roll(5))*15*time.Minute, after("staging", releases...))
	if d.yes() {
		u.Type = environmentsv1.Parallel
	}
	u.Seen = []time.Time{never, d.moment()}[d.roll(2)]
	if len(u.Releases) > 0 {
		u.Releases[0].Current = d.roll(4) < 3
	}
	if d.roll(8) == 7 {
		u.Problem = &verdict.Problem{Message: "it is away"}
	}
	return u
}
