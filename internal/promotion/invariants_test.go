// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// memory is what the world knows about the past, even if the status no longer contains
// it.
type memory struct {
	// lastID that was given.
	lastID int64
	// failed contains the releases whose newest promotion failed.
	failed map[string]bool
	// position is the newest promoted release that the policy can rank.
	position string
	// said is true if a user has given their name and nothing has been promoted since.
	said bool
	// deaths of the controller since the newest promotion.
	deaths int
	// blind is when the policy could not be read last.
	blind time.Time
	// tampered is the id of the promotion whose target another user changed.
	tampered int64
	baked    baked
	setbacks
}

func newMemory() memory { return memory{failed: map[string]bool{}, setbacks: newSetbacks()} }

// decide calls the engine, and checks the invariants of every decision.
func (w *world) decide(in promotion.Input) promotion.Decision {
	w.t.Helper()
	w.watchBake(in)
	before := copyInput(in)
	d := promotion.Decide(in)
	if !reflect.DeepEqual(before, in) {
		w.fail("Decide modified its input (-before +after):\n%s", cmp.Diff(before.Rollout, in.Rollout))
	}
	if again := promotion.Decide(in); !reflect.DeepEqual(d, again) {
		w.fail("Decide is not deterministic:\n%s", cmp.Diff(outcomeOf(d), outcomeOf(again)))
	}
	if !d.RecheckAt.IsZero() && !d.RecheckAt.After(in.Now) {
		w.fail("the next look lies at %s, which is not in the future", d.RecheckAt)
	}
	w.checkVerdicts(in, d)
	w.checkChoice(in, d)
	w.checkWakes(in, d)
	w.checkQuarantines(in, d)
	w.checkBake(in, d)
	return d
}

// listedCandidates returns the candidates that the status lists.
func listedCandidates(in promotion.Input) map[string]bool {
	listed := map[string]bool{}
	for _, c := range in.Rollout.Status.ReleaseCandidates {
		listed[c.Tag] = true
	}
	return listed
}

// checkVerdicts checks that every candidate has exactly one verdict, and that at most one
// is eligible. While the policy does not exist, the candidates are those that were
// listed.
func (w *world) checkVerdicts(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	var judged, eligible []string
	for _, verdict := range d.Candidates {
		judged = append(judged, verdict.Release.Tag)
		if verdict.Eligible() {
			eligible = append(eligible, verdict.Release.Tag)
		}
	}
	listed := listedCandidates(in)
	candidates := slices.DeleteFunc(tags(releases.Candidates(d.Ledger, in.Rollout.Status.History, in.Policy)), func(tag string) bool {
		return in.Policy.Complete && tag != in.Policy.Latest.Tag && !w.has(tag) || in.Policy.Blocking && !listed[tag]
	})
	if !slices.Equal(candidates, judged) {
		w.fail("the candidates are %v, the verdicts are about %v", candidates, judged)
	}
	chosen := d.Back == nil && (d.Action == promotion.Promote || d.Action == promotion.Supersede) && d.Reason != v1alpha1.TagMovedReason
	if chosen && !d.Manual && len(in.Rollout.Status.History) > 0 && !slices.Equal(eligible, []string{d.Release.Tag}) {
		w.fail("%s is promoted while %v are eligible", d.Release.Tag, eligible)
	}
}

// checkChoice checks that an automatically promoted release passes every gate, is still
// offered, has not failed before and is newer than the current one.
func (w *world) checkChoice(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if d.Reason == v1alpha1.TagMovedReason {
		w.checkMoved(in, d)
		return
	}
	if d.Back != nil {
		return // checkBack
	}
	if !d.Action.Promotes() || d.Manual || d.Action == promotion.Adopt {
		return
	}
	tag := d.Release.Tag
	if wanted := in.Policy.Chosen(in.Rollout); wanted != "" {
		w.fail("%s is promoted while a user chose %s", tag, wanted)
	}
	if len(in.Rollout.Status.History) == 0 {
		return // the first release is promoted past the gates
	}
	for name, s := range w.schedules {
		if !s.At(w.now).Open && in.Rollout.Annotations[bypass] != tag {
			w.fail("%s is promoted although schedule %s is closed", tag, name)
		}
	}
	for i := range w.gates {
		spec := w.gates[i].Spec
		if in.Rollout.Annotations[bypass] == tag {
			break
		}
		if !*spec.Passing || spec.AllowedVersions != nil && !slices.Contains(*spec.AllowedVersions, tag) {
			w.fail("%s is promoted although gate %s denies it", tag, w.gates[i].Name)
		}
	}
	if in.Policy.Complete && tag != w.latest.Tag && !w.has(tag) {
		w.fail("%s is promoted although it was withdrawn", tag)
	}
	w.checkPosition(in, d)
	if newer, ok := w.order.Precedence(tag, w.latest.Tag); ok && newer > 0 {
		w.fail("%s is promoted although the policy now names %s", tag, w.latest.Tag)
	}
	rollsBack := in.Rollout.Spec.RollsBack()
	if isByItself(in, d) && rollsBack {
		w.checkNotTriedAgain(in, d)
	} else if w.memory.failed[tag] && !w.memory.forgiven[tag] && !in.Rollout.UnblocksFailed() && !rollsBack {
		w.fail("%s is promoted although it failed before", tag)
	}
	if newer, ok := w.order.Compare(tag, w.memory.position); ok && newer <= 0 {
		w.fail("%s is promoted after %s", tag, w.memory.position)
	}
	if state := in.Rollout.Current().State(); state == v1alpha1.BakeFailed && !in.Rollout.UnblocksFailed() ||
		state.Running() && promotion.Protected(&in.Rollout.Spec) && !(in.Rollout.UnblocksFailed() && in.Rollout.Current().IsRollback()) {
		w.fail("%s is promoted while %s is %s", tag, in.Rollout.Current().Version.Tag, state)
	}
}

// checkMoved checks that an entry that nobody decided is recorded only for a tag that was
// pushed again, with the content that runs.
func (w *world) checkMoved(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	tag := in.Rollout.Current().Version.Tag
	if d.Release.Tag != tag || w.pushes[tag] == 0 {
		w.fail("%s is recorded as pushed again; %s was deployed, and pushed again %d times", d.Release.Tag, tag, w.pushes[tag])
	}
	if !slices.ContainsFunc(in.Targets.All, func(t content.Target) bool {
		return t.Moved != "" && (t.Image != image || in.Policy.Image == "" && digestOf(d.Release) == "" || t.Digest == digestOf(d.Release))
	}) {
		w.fail("%s is recorded as %s, which no target has pulled", tag, digestOf(d.Release))
	}
}

// checkContent checks that the content that succeeded is the one that runs, and that it
// was not pulled in the middle of its bake. Without the policy, nobody knows which image
// is the release.
func (w *world) checkContent(in promotion.Input) {
	w.t.Helper()
	if in.Policy.Image == "" {
		return
	}
	entry := w.current()
	for _, object := range w.targets {
		if object.image == image && digestOf(entry.Version) != object.pulled {
			w.fail("%s succeeded as %s, but %s runs %s", entry.Version.Tag, digestOf(entry.Version), object.name, object.pulled)
		}
		start := entry.BakeStartTime
		if start != nil && object.pulledAt.After(start.Time) && start.After(w.memory.blind) && w.memory.tampered != w.memory.lastID {
			w.fail("%s succeeded although %s pulled it at %s, in the middle of its bake", entry.Version.Tag, object.name, object.pulledAt)
		}
	}
}

// digestOf returns the digest; empty if it is not known.
func digestOf(release v1alpha1.VersionInfo) string {
	if release.Digest == nil {
		return ""
	}
	return *release.Digest
}

// checkPosition checks that only the newest release is promoted if nothing in the history
// can be ranked, and none if releases are promoted one by one. If the history can be
// ranked and releases are promoted one by one, the oldest candidate is promoted that the
// environment before this one has not skipped.
func (w *world) checkPosition(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	candidates := tagsJudged(d)
	waiting := slices.DeleteFunc(slices.Clone(d.Candidates), func(v promotion.Verdict) bool { return v.HeldBy(environmentsv1.UpstreamSkippedReason) })
	oneByOne := in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	ranks := slices.ContainsFunc(in.Rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return w.order.Comparable(e.Version.Tag)
	})
	switch last := waiting[len(waiting)-1].Release.Tag; {
	case !ranks && (oneByOne || d.Release.Tag != candidates[0]):
		w.fail("%s is promoted although nothing in the history can be ranked", d.Release.Tag)
	case ranks && oneByOne && d.Release.Tag != last:
		w.fail("%s is promoted before %s", d.Release.Tag, last)
	}
}

// checkRecord checks the invariants of the history after every pass.
func (w *world) checkRecord(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if d.Back != nil {
		w.checkBack(in, d)
	}
	w.remember(in, d)
	w.rememberSetbacks(in, d)
	running := 0
	for i := range w.rollout.Status.History {
		if w.rollout.Status.History[i].State().Running() {
			running++
		}
	}
	if running > 1 || running == 1 && !w.rollout.Current().State().Running() {
		w.fail("more than the newest entry is running: %s", w.describeHistory())
	}
	if d.Action == promotion.StartBake {
		w.beginsBake()
	}
	if d.Action == promotion.FinishBake {
		w.checkSuccess(in)
	}
	if d.Action == promotion.FailBake && in.Rollout.Recovering() {
		w.fail("%s failed although it cannot", w.current().Version.Tag)
	}
	if d.Action == promotion.FailBake && in.Rollout.Current().State() == v1alpha1.BakeDeploying {
		w.checkFailure(in)
	}
	w.checkRequests(in, d)
	if d.Action.Promotes() {
		w.checkOnce(d)
	}
}

// checkOnce checks that the same decision is not made again. An exception: while the
// content of the release is not known, two targets may turn out to have pulled different
// content.
func (w *world) checkOnce(d promotion.Decision) {
	w.t.Helper()
	again := promotion.Decide(w.gather())
	resolved := d.Release.Digest == nil && again.Reason == v1alpha1.TagMovedReason
	if again.Action.Promotes() && again.Release.Tag == d.Release.Tag && !resolved {
		w.fail("%s would be promoted twice in a row", d.Release.Tag)
	}
}

// checkFailure checks that no deadline fails a release that is applied and proven
// healthy, however long the controller was away, and that no deadline fails a release
// because of checks that nobody has reset. One case is left out: the controller dies
// between the resets of two checks, and nobody resets the second one before the deadline.
func (w *world) checkFailure(in promotion.Input) {
	w.t.Helper()
	states := map[evidence.ProofState]bool{}
	for _, proof := range evidence.Prove(in.Health.Checks, in.Rollout.UID, in.Rollout.Current()) {
		states[proof.State] = true
	}
	wrong := states[evidence.Undecided] || states[evidence.Disproven] ||
		slices.ContainsFunc(in.Targets.All, func(t content.Target) bool { return t.Mismatch || t.Unhealthy })
	if w.allApplied() && !wrong && w.memory.deaths == 0 {
		w.fail("%s failed although it is applied, and no HealthCheck was asked in vain", w.current().Version.Tag)
	}
}

// checkRequests checks that a request is used up once, by the promotion that it was for,
// and that a promotion is attributed to a user only if a user caused it.
func (w *world) checkRequests(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	by := w.current().TriggeredBy
	if d.Action.Promotes() && !d.Manual && by.Kind != v1alpha1.TriggeredBySystem {
		w.fail("%s is said to be the doing of %s", d.Release.Tag, by.Name)
	}
	// A user who supersedes a promotion before the controller has looked at it again may
	// have given the same name.
	superseding := in.Rollout.Current().State().Running()
	if d.Action.Promotes() && by.Kind == v1alpha1.TriggeredByUser && by.Name != v1alpha1.UnknownUser && !w.memory.said && !superseding && w.memory.deaths < 2 {
		w.fail("%s is said to be the doing of %s, who spoke of the promotion before", d.Release.Tag, by.Name)
	}
	if d.Action.Promotes() {
		spares := d.Action == promotion.Adopt || d.Reason == v1alpha1.TagMovedReason
		w.memory.said, w.memory.deaths = spares && w.memory.said, 0
	}
	asked := in.Rollout.Annotations
	was := in.Rollout.Current()
	answered := was != nil && was.Version.Tag == asked[bypass] // it named the release that was already current
	if slices.Contains(d.Consumed, bypass) && asked[bypass] != w.current().Version.Tag && !answered {
		w.fail("the bypass for %s is used up by %s", asked[bypass], w.current().Version.Tag)
	}
	if _, ok := asked[retry]; ok && !slices.Contains(d.Consumed, retry) && d.Reason != v1alpha1.TagMovedReason {
		w.fail("a retry is not answered")
	}
	if d.Action == promotion.Retry && in.Rollout.Current().State() != v1alpha1.BakeFailed {
		w.fail("%s is retried although it has not failed", in.Rollout.Current().Version.Tag)
	}
}

// remember follows the history, and checks that ids rise without a gap.
func (w *world) remember(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	for _, entry := range slices.Backward(w.rollout.Status.History) {
		w.memory.failed[entry.Version.Tag] = entry.State() == v1alpha1.BakeFailed
	}
	w.forgetCut(in, d)
	if !d.Action.Promotes() {
		if len(w.rollout.Status.History) != len(in.Rollout.Status.History) {
			w.fail("%s changed the number of entries", d.Action)
		}
		return
	}
	entry := w.current()
	if lost := len(in.Targets.Owned) > 0 || in.Targets.Newest() != nil && len(in.Rollout.Status.History) == 0; *entry.ID != w.memory.lastID+1 && !(lost && *entry.ID > w.memory.lastID) {
		w.fail("id %d follows id %d", *entry.ID, w.memory.lastID)
	}
	w.memory.lastID = *entry.ID
	if w.order.Comparable(entry.Version.Tag) {
		w.memory.position = entry.Version.Tag
	}
}

// forgetCut forgets the failures that the limit of the history has cut. The history keeps
// failures of candidates only, and a release that is not a candidate may become one again
// after a rollback.
func (w *world) forgetCut(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	kept := w.rollout.Status.History
	isKept := func(tag string) bool {
		return slices.ContainsFunc(kept, func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag == tag })
	}
	candidates := releases.TagsOf(releases.Candidates(d.Ledger, kept, in.Policy))
	for i := range in.Rollout.Status.History {
		if tag := in.Rollout.Status.History[i].Version.Tag; !isKept(tag) && !candidates[tag] {
			delete(w.memory.failed, tag)
		}
	}
}

// checkSuccess checks that every target runs the release, that every check then reported
// Healthy about it, and that the bake was as long as requested. If another user changed a
// target in the meantime, an earlier report of a check still counts.
func (w *world) checkSuccess(in promotion.Input) {
	w.t.Helper()
	tag := w.current().Version.Tag
	if !w.allApplied() {
		w.fail("%s succeeded before all targets had applied it", tag)
	}
	for _, writer := range w.writers {
		said := writer.check.Status.Status
		about := writer.truth.version == tag && writer.truth.allApplied || w.memory.tampered == w.memory.lastID
		if said != v1alpha1.HealthStatusHealthy || !about {
			w.fail("%s succeeded although HealthCheck %s said %q about %q, all applied: %t",
				tag, writer.check.Name, said, writer.truth.version, writer.truth.allApplied)
		}
	}
	w.checkContent(in)
	if bake := w.rollout.Spec.BakeTimeOf(w.current()); bake != nil && w.now.Before(w.current().BakeStartTime.Add(bake.Duration)) {
		w.fail("%s succeeded before its bake was over", tag)
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.endIteration()
	if w.fleet != nil {
		w.lines = append(w.fleet.lines, w.lines...)
	}
	for _, line := range w.lines {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func copyInput(in promotion.Input) promotion.Input {
	c := in
	c.Rollout = in.Rollout.DeepCopy()
	if in.Policy.Latest != nil {
		c.Policy.Latest = in.Policy.Latest.DeepCopy()
	}
	c.Policy.Scanned = slices.Clone(in.Policy.Scanned)
	c.Gates.Gates, c.Health.Checks = nil, nil
	for i := range in.Gates.Gates {
		c.Gates.Gates = append(c.Gates.Gates, *in.Gates.Gates[i].DeepCopy())
	}
	c.Gates.Schedules = slices.Clone(in.Gates.Schedules)
	for i := range in.Health.Checks {
		c.Health.Checks = append(c.Health.Checks, *in.Health.Checks[i].DeepCopy())
	}
	c.Targets.All, c.Targets.Owned = slices.Clone(in.Targets.All), slices.Clone(in.Targets.Owned)
	c.Quarantines.All = clonesOf(in.Quarantines.All)
	c.Targets.Carried = slices.Clone(in.Targets.Carried)
	return c
}
