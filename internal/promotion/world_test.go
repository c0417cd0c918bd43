// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// world is everything around the engine, small enough to be simulated: a registry and the
// policy that watches it, Flux objects that apply a version some time after it was
// written to them, HealthChecks with their writers, gates, users, a controller that may
// die, and a clock.
type world struct {
	t *testing.T
	// rng is nil in fixed order: then everyone is prompt.
	rng *rand.Rand
	// now is the clock. tick is how far it advances if nothing is due before.
	now  time.Time
	tick time.Duration

	rollout *v1alpha1.Rollout
	order   releases.Order
	latest  *v1alpha1.VersionInfo
	// registry lists the tags that can be pulled, in the order of their push.
	registry []string
	// pushes counts how often a tag was pushed again.
	pushes map[string]int
	// answers are the registry's answers, by question.
	answers map[question]releases.Metadata
	// policyGoneUntil is the iteration until which the policy cannot be read.
	policyGoneUntil int
	// reflection is the policy's spec.digestReflectionPolicy.
	reflection string
	// unhealthy is, for each bad release, how long after it was applied it becomes unhealthy.
	unhealthy map[string]time.Duration
	// stuck are the releases whose objects do not become healthy, as Flux reports. sick is
	// true while every release is unhealthy.
	stuck map[string]bool
	sick  bool
	ailments
	approvers
	gates []v1alpha1.RolloutGate
	// schedules that select the Rollout, by name.
	schedules map[string]*schedule.Schedule
	targets   []*fluxObject
	writers   []*writer

	// crashAfter is after how many writes the controller dies in its next pass. The record
	// is the first write. Zero means never.
	crashAfter int
	// awayUntil is the iteration until which no controller runs.
	awayUntil int
	recheckAt time.Time
	// watched is called before the controller looks; nil if nobody watches.
	watched func()
	// upstreams are the environments before this one; nil if there are none.
	upstreams func() upstream.Upstreams
	// fleet is the namespace that the Rollout shares with others; nil if it is alone.
	fleet *fleet
	// cached is what the controller sees of the quarantines of the fleet.
	cached []quarantined.Quarantine

	memory    memory
	iteration int
	lines     []string
	pending   []string
	reported  map[string]string
}

// question is an image that the registry is asked about, by its digest if that is known.
type question struct{ tag, digest string }

// fluxObject has a version in its field, and has applied one.
type fluxObject struct {
	name             string
	carries, applied string
	appliedAt        time.Time
	// image is the image that it pulls, and pulled is the digest that it has pulled by the
	// tag that it applied. Both are empty for an object that pulls no image.
	image, pulled string
	pulledAt      time.Time
	// delay is for how many iterations it keeps what it has applied.
	delay int
	// written is true once the controller owns the field.
	written bool
	// promotion is the id of the entry that it was written for.
	promotion int64
}

// writer evaluates a HealthCheck.
type writer struct {
	check v1alpha1.HealthCheck
	// every is how many iterations pass between two evaluations.
	every int
	// terse writers set neither message nor lastChangeTime.
	terse bool
	// truth is what was true when the writer last reported.
	truth struct {
		version    string
		allApplied bool
	}
}

func newWorld(t *testing.T, rollout *fixture.RolloutBuilder, rng *rand.Rand) *world {
	t.Helper()
	return &world{
		t: t, rng: rng, now: noon, tick: 5 * time.Minute,
		rollout:   rollout.Obj(),
		order:     order(anySemver),
		unhealthy: map[string]time.Duration{},
		stuck:     map[string]bool{},
		ailments:  ailments{lost: map[string]time.Duration{}},
		pushes:    map[string]int{},
		answers:   map[question]releases.Metadata{},
		targets:   []*fluxObject{{name: "apps"}},
		memory:    newMemory(),
		reported:  map[string]string{},
	}
}

// image is the image that the policy ranks.
const image = "registry.example.com/shop"

// mutators returns the actions of everyone, including the controller. In fixed order they
// run as listed.
func (w *world) mutators(people func()) []func() {
	return []func(){people, w.scan, w.flux, w.evaluate, w.reconcile}
}

// step makes everyone act once, and moves the clock to whatever comes first: the next
// tick, or the time at which the controller wants to look again.
func (w *world) step(people func()) {
	w.act(people)
	w.advanceClock()
}

// act makes everyone act once.
func (w *world) act(people func()) {
	w.iteration++
	acting := w.mutators(people)
	if w.rng != nil {
		w.rng.Shuffle(len(acting), func(i, j int) { acting[i], acting[j] = acting[j], acting[i] })
	}
	for _, act := range acting {
		act()
	}
	w.logNextLook()
	w.endIteration()
}

func (w *world) advanceClock() {
	next := w.now.Add(w.tick).Truncate(time.Minute)
	if w.rng != nil {
		next = w.now.Add(time.Minute + time.Duration(w.rng.IntN(10))*time.Minute)
	}
	if due := w.recheckAt; due.After(w.now) && due.Before(next) {
		next = due
	}
	w.now = next
}

// chance reports true once in n times, and never in fixed order.
func (w *world) chance(n int) bool { return w.rng != nil && w.rng.IntN(n) == 0 }

// current returns the newest history entry, empty if there is none.
func (w *world) current() *v1alpha1.DeploymentHistoryEntry {
	if entry := w.rollout.Current(); entry != nil {
		return entry
	}
	return &v1alpha1.DeploymentHistoryEntry{}
}

// scan plays the image-reflector-controller.
func (w *world) scan() {
	var newest string
	for _, tag := range w.registry {
		if newer, ok := w.order.Compare(tag, newest); w.order.Admits(tag) && (!ok || newer > 0) {
			newest = tag
		}
	}
	same := w.latest != nil && w.latest.Tag == newest
	if newest == "" || same && (w.reflection != "Always" || *w.latest.Digest == w.content(newest)) {
		return
	}
	w.latest = to(release(newest).Digest(w.content(newest)).Obj())
	if w.reflection == "Never" {
		w.latest.Digest = nil
	}
	w.log("ImagePolicy", "names %s", newest)
}

// content returns the digest that a tag points to.
func (w *world) content(tag string) string {
	if w.fleet != nil {
		return sharedContent(tag, w.pushes[tag])
	}
	if n := w.pushes[tag]; n > 0 {
		return fmt.Sprintf("sha256:%s-pushed-%d", tag, n)
	}
	return "sha256:" + tag
}

// flux applies the versions that its objects have in their fields.
func (w *world) flux() {
	for _, object := range w.targets {
		switch content := w.content(object.carries); {
		case object.applied == object.carries && (object.image == "" || object.pulled == content || w.chance(2)):
		case w.stuck[object.carries]:
		case object.delay > 0:
			object.delay--
		default:
			object.applied, object.appliedAt = object.carries, w.now
			if object.image != "" {
				object.pulled, object.pulledAt = content, w.now
			}
			w.log("Flux", "%s runs %s", object.name, object.applied)
		}
	}
}

// evaluate plays the writers of HealthChecks. They write only changes.
func (w *world) evaluate() {
	for _, writer := range w.writers {
		if w.iteration%writer.every == 0 && !w.chance(3) {
			w.evaluateOne(writer)
		}
	}
}

func (w *world) evaluateOne(by *writer) {
	status, says := w.observed(by)
	by.truth.version, by.truth.allApplied = w.targets[0].applied, w.allApplied()
	stored := &by.check.Status
	if stored.Status == status && !by.terse {
		return
	}
	if stored.Status != status {
		w.log("HealthCheck "+by.check.Name, "%s", status)
	}
	stored.Status = status
	if status == v1alpha1.HealthStatusUnhealthy {
		stored.LastErrorTime = wireTime(w.now.Truncate(time.Second))
	}
	if !by.terse {
		stored.Message, stored.LastChangeTime = to(says), wireTime(w.now.Truncate(time.Second))
	}
}

// isUnhealthy reports whether the running release has become unhealthy.
func (w *world) isUnhealthy() bool {
	app := w.targets[0]
	if w.sick {
		return true
	}
	after, bad := w.unhealthy[app.applied]
	return bad && !w.now.Before(app.appliedAt.Add(after))
}

// allApplied reports whether every Flux object has applied the current release.
func (w *world) allApplied() bool {
	return !slices.ContainsFunc(w.targets, func(object *fluxObject) bool {
		return object.applied != w.current().Version.Tag || object.carries != object.applied
	})
}

// reconcile plays the controller: it looks again until there is nothing to do, because
// each of its writes triggers it.
func (w *world) reconcile() {
	if w.watched != nil {
		w.watched()
	}
	if w.iteration < w.awayUntil {
		w.recheckAt = time.Time{}
		return
	}
	w.lookAtFleet()
	for range 12 {
		if again := w.pass(); !again {
			return
		}
	}
	w.t.Fatalf("the controller does not come to rest; history: %s", w.describeHistory())
}

// pass records first, then acts. It reports whether there may be more to do. It reports
// false if the controller died, because then nobody knows.
func (w *world) pass() bool {
	in := w.gather()
	d := w.decide(in)
	w.logDecision(d)
	w.recheckAt = d.RecheckAt
	writes := w.record(in, d)
	if w.dies(writes) {
		return false
	}
	for _, act := range w.actions(d) {
		act()
		writes++
		if w.dies(writes) {
			return false
		}
	}
	for _, report := range w.reports(in) {
		if report(); w.dies(writes + 1) {
			return false
		}
		writes++
	}
	w.checkReported(in)
	return writes > 0
}

func (w *world) dies(writes int) bool {
	if w.crashAfter == 0 || writes < w.crashAfter {
		return false
	}
	w.crashAfter = 0
	w.memory.deaths++
	w.log("controller", "dies")
	w.recheckAt = time.Time{}
	return true
}

func (w *world) gather() promotion.Input {
	in := promotion.Input{
		Now:     w.now,
		Rollout: w.rollout.DeepCopy(),
		Policy:  w.policy(),
	}
	for i := range w.gates {
		in.Gates.Gates = append(in.Gates.Gates, *w.gates[i].DeepCopy())
	}
	in.Gates.Cluster, in.Approvals.Given = w.asking, w.given
	in.Gates.Schedules = windowsAt(w.schedules, w.now)
	if w.upstreams != nil {
		in.Upstreams = w.upstreams()
	}
	for _, writer := range w.writers {
		in.Health.Checks = append(in.Health.Checks, *writer.check.DeepCopy())
	}
	version := w.version(&in)
	for _, object := range w.targets {
		seen := pending(object.name)
		seen.Unset = len(w.rollout.Status.History) == 0 && object.carries == ""
		switch {
		case object.carries == version && w.stuck[version]:
			seen.State, seen.Message, seen.Unhealthy = v1alpha1.TargetFailed, "health check failed", true
		case object.carries == version && object.applied == version:
			seen = applied(object.name)
			seen.Image, seen.Digest = object.image, object.pulled
		}
		seen.Promotion = object.promotion
		if content.IsOutdated(w.rollout.Status.History, object.promotion) {
			seen.State, seen.Reason, seen.Digest = v1alpha1.TargetConflict, v1alpha1.TargetHistoryOutdated, ""
		}
		in.Targets.All = append(in.Targets.All, seen)
	}
	if len(w.rollout.Status.History) == 0 {
		in.Targets.Owned = w.owned()
	}
	in.Targets.All = in.Compared()
	in.Quarantines.All = clonesOf(w.cached)
	in.Metadata = w.ask(in)
	return in
}

// owned returns the versions that the controller has written, as far as that is known.
func (w *world) owned() (owned []string) {
	isOwn := func(o *fluxObject) bool { return o.written }
	if !slices.ContainsFunc(w.targets, isOwn) {
		isOwn = func(o *fluxObject) bool { return o.promotion > 0 }
	}
	for _, object := range w.targets {
		if isOwn(object) {
			owned = append(owned, object.carries)
		}
	}
	return owned
}

// windowsAt evaluates schedules as the controller does.
func windowsAt(schedules map[string]*schedule.Schedule, now time.Time) (all []promotion.Window) {
	for _, name := range slices.Sorted(maps.Keys(schedules)) {
		state := schedules[name].At(now)
		all = append(all, promotion.Window{
			Schedule: "RolloutSchedule " + name, Open: state.Open, Message: state.String(), Until: state.Next,
		})
	}
	return all
}

// version returns the version that the targets must have applied. While there is no
// history and the Rollout begins with what already runs, it is the version in their
// fields, if they agree.
func (w *world) version(in *promotion.Input) string {
	if len(w.rollout.Status.History) > 0 && !w.isOutdated() ||
		len(w.rollout.Status.History) == 0 && w.rollout.Spec.FirstRelease != v1alpha1.FirstReleaseApplied {
		return w.current().Version.Tag
	}
	for _, object := range w.targets {
		if object.carries != "" && !slices.Contains(in.Targets.Carried, object.carries) {
			in.Targets.Carried = append(in.Targets.Carried, object.carries)
		}
	}
	if len(in.Targets.Carried) == 1 {
		return in.Targets.Carried[0]
	}
	return ""
}

// ask asks the registry for metadata that is missing from the status, and returns its
// answers. The registry is asked only if the policy can be read, and answers in a later
// pass.
func (w *world) ask(in promotion.Input) []releases.Metadata {
	if in.Policy.Image == "" || w.rng == nil {
		return nil
	}
	var all []releases.Metadata
	for _, release := range promotion.MissingMetadata(in) {
		of := question{release.Tag, digestOf(release)}
		if answer, ok := w.answers[of]; ok {
			all = append(all, answer)
		} else if w.has(release.Tag) && w.chance(3) {
			w.answers[of] = w.answer(of)
		}
	}
	return all
}

// answer describes the image of that digest, or else the image that the tag points to
// now.
func (w *world) answer(of question) releases.Metadata {
	if of.digest == "" {
		of.digest = w.content(of.tag)
	}
	w.log("registry", "describes %s as %s", of.tag, of.digest)
	return releases.Metadata{Tag: of.tag, Digest: of.digest, Revision: "rev-" + of.digest}
}

// policy returns what Flux shows of a scan: the ten tags that are highest as strings.
func (w *world) policy() releases.Policy {
	if w.iteration < w.policyGoneUntil {
		w.memory.blind = w.now
		return releases.Policy{Name: "shop", Problem: broken, Blocking: true}
	}
	shown := slices.Sorted(slices.Values(w.registry))
	slices.Reverse(shown)
	const most = 10
	return releases.Policy{
		Name: "shop", Image: image, Order: w.order, Latest: w.latest,
		Scanned: shown[:min(most, len(shown))], Complete: len(shown) <= most,
	}
}

// record writes the known releases and the history if they change.
func (w *world) record(in promotion.Input, d promotion.Decision) int {
	before := w.rollout.DeepCopy()
	history, err := promotion.Record(in, d)
	if err != nil {
		w.t.Fatalf("recording %s: %v", d.Action, err)
	}
	if len(history) > 0 {
		w.rollout.Status.History = history
	}
	w.checkApprovals(d, before.Status.History)
	if d.Recovery != nil {
		w.log("recovery", "%s", d.Recovery.Message)
	}
	w.rollout.Status.AvailableReleases = d.Ledger
	promotion.ResolveMetadata(in, &w.rollout.Status)
	w.showTargets(in, d)
	w.showCandidates(in)
	w.logTransitions(before, d)
	w.checkRecord(in, d)
	if (d.Action == promotion.Nothing || d.Action == promotion.Wait) &&
		len(before.Status.AvailableReleases) == len(d.Ledger) {
		return 0
	}
	return 1
}

// showCandidates stores the candidates after the record.
func (w *world) showCandidates(in promotion.Input) {
	in.Rollout = w.rollout.DeepCopy()
	w.rollout.Status.ReleaseCandidates = nil
	for _, verdict := range promotion.Decide(in).Candidates {
		w.rollout.Status.ReleaseCandidates = append(w.rollout.Status.ReleaseCandidates, v1alpha1.ReleaseCandidate{VersionInfo: verdict.Release})
	}
}

// showTargets stores the content with which targets were seen applied.
func (w *world) showTargets(in promotion.Input, d promotion.Decision) {
	w.rollout.Status.Targets = nil
	for _, t := range in.Targets.All {
		w.rollout.Status.Targets = append(w.rollout.Status.Targets, v1alpha1.TargetStatus{
			Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Version: w.current().Version.Tag, Digest: in.Content().DigestToStore(t, d.Deploys()),
		})
	}
}

// actions returns the writes that make the world follow the history.
func (w *world) actions(d promotion.Decision) []func() {
	var writes []func()
	if len(d.Consumed) > 0 {
		writes = append(writes, func() { w.consume(d) })
	}
	entry := w.rollout.Current()
	if entry == nil || w.isOutdated() {
		return writes
	}
	for _, object := range w.targets {
		if object.carries != entry.Version.Tag {
			writes = append(writes, func() { w.write(object, entry) })
		}
	}
	for _, i := range d.Resets {
		check := &w.writers[i].check
		steps := fixture.ResetWrites(check, w.rollout, entry, w.now.Truncate(time.Second))
		complete := steps[len(steps)-1]
		writes = append(append(writes, steps[:len(steps)-1]...), func() {
			complete()
			w.log("controller", "resets HealthCheck %s", check.Name)
		})
	}
	return writes
}

// consume removes the annotations that were used up, if the API server accepts it.
func (w *world) consume(d promotion.Decision) {
	if w.chance(4) {
		w.log("API server", "does not answer")
		return
	}
	for _, key := range d.Consumed {
		delete(w.rollout.Annotations, key)
		w.log("controller", "removes the annotation %s", key)
	}
	for _, answer := range d.Answers {
		w.log("answer", "%s: %s", answer.Reason, answer.Message)
	}
}

// scheduled adds a schedule with one rule.
func (w *world) scheduled(name string, action v1alpha1.ScheduleAction, zone string, rule v1alpha1.ScheduleRule) {
	w.t.Helper()
	parsed, err := schedule.Parse(&v1alpha1.RolloutScheduleSpec{
		Action: action, Timezone: zone, Rules: []v1alpha1.ScheduleRule{rule},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.schedules == nil {
		w.schedules = map[string]*schedule.Schedule{}
	}
	w.schedules[name] = parsed
}

// isOutdated reports whether a newer promotion than those of the history has written a
// target.
func (w *world) isOutdated() bool {
	return slices.ContainsFunc(w.targets, func(o *fluxObject) bool { return content.IsOutdated(w.rollout.Status.History, o.promotion) })
}

func (w *world) write(object *fluxObject, entry *v1alpha1.DeploymentHistoryEntry) {
	tag := entry.Version.Tag
	object.carries, object.written, object.promotion = tag, true, *entry.ID
	if w.rng != nil {
		object.delay = w.rng.IntN(4)
	}
	w.log("controller", "writes %s to %s", tag, object.name)
}

// The functions below write the scenario. logOnce never repeats the previous text of its
// topic.

func (w *world) log(who, what string, args ...any) {
	w.pending = append(w.pending, who+": "+fmt.Sprintf(what, args...))
}

func (w *world) logOnce(topic, who, what string) {
	if w.reported[topic] == what {
		return
	}
	w.reported[topic] = what
	if what != "" {
		w.log(who, "%s", what)
	}
}

func (w *world) logDecision(d promotion.Decision) {
	waits := ""
	if d.Action == promotion.Wait {
		waits = "waits, " + d.Reason + ": " + d.Message
	}
	w.logOnce("wait", w.current().Version.Tag, waits)
	for _, verdict := range d.Candidates {
		var holds []string
		for _, hold := range verdict.Holds {
			holds = append(holds, "held, "+hold.Reason+": "+hold.Message)
		}
		w.logOnce("hold "+verdict.Release.Tag, verdict.Release.Tag, strings.Join(holds, "; "))
	}
	if back := d.Rollback; back.Reason != "" {
		w.logOnce("rollback", "rollback", back.Reason+": "+back.Message)
	}
	for _, note := range d.Notes {
		w.log("note", "%s: %s", note.Reason, note.Message)
	}
	w.logProblem("problem", d.Problem)
	w.logProblem("refused", d.Declined)
}

func (w *world) logProblem(who string, problem *verdict.Problem) {
	if problem != nil {
		w.logOnce(who, who, problem.Reason+": "+problem.Message)
	}
}

// logTransitions writes what the record changed.
func (w *world) logTransitions(before *v1alpha1.Rollout, d promotion.Decision) {
	after := w.rollout.Status.History
	if d.Action.Promotes() {
		delete(w.reported, "hold "+d.Release.Tag)
		if len(after) > 1 && before.Current().State() != after[1].State() {
			w.logTransition(before.Current().State(), &after[1])
		}
		w.log(d.Release.Tag, "%s (%s)", strings.ToLower(string(d.Action)), d.Message)
		w.log(d.Release.Tag, "%s (%s)", after[0].State(), *after[0].BakeStatusMessage)
		return
	}
	if len(after) > 0 && before.Current().State() != after[0].State() {
		w.logTransition(before.Current().State(), &after[0])
	}
}

func (w *world) logTransition(from v1alpha1.BakeStatus, entry *v1alpha1.DeploymentHistoryEntry) {
	w.log(entry.Version.Tag, "%s -> %s (%s)", from, entry.State(), *entry.BakeStatusMessage)
}

func (w *world) logNextLook() {
	next := ""
	if !w.recheckAt.IsZero() {
		next = clockText(w.recheckAt)
		if w.recheckAt.Nanosecond() > 0 {
			next = "just after " + next
		}
	}
	w.logOnce("next", "next look", next)
}

func (w *world) endIteration() {
	if len(w.pending) > 0 {
		w.lines = append(w.lines, fmt.Sprintf("[Rollout %s] iteration %d, %s", w.rollout.Name, w.iteration, clockText(w.now)))
		for _, line := range append(w.pending, "= "+w.state()) {
			w.lines = append(w.lines, "  "+line)
		}
	}
	w.pending = nil
}

// state returns what the next decision rests on, so that a reader can check it: what the
// targets are set to and have applied, what the HealthChecks report, and which gates and
// schedules are closed.
func (w *world) state() string {
	var targets, checks []string
	for _, object := range w.targets {
		targets = append(targets, object.name+" "+object.state())
	}
	for _, writer := range w.writers {
		checks = append(checks, fmt.Sprintf("%s %s", writer.check.Name, writer.check.Status.Status))
	}
	parts := []string{"targets: " + strings.Join(targets, ", ")}
	for _, part := range []struct {
		title string
		of    []string
	}{{"checks", checks}, {"closed", w.closed()}} {
		if len(part.of) > 0 {
			parts = append(parts, part.title+": "+strings.Join(part.of, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// state returns the version that the object is set to, and the one that it runs if that is
// another one.
func (o *fluxObject) state() string {
	switch {
	case o.carries == "":
		return "unset"
	case o.applied == o.carries:
		return o.carries
	case o.applied == "":
		return o.carries + " (runs nothing)"
	}
	return fmt.Sprintf("%s (runs %s)", o.carries, o.applied)
}

// closed returns the gates and schedules that let nothing through now.
func (w *world) closed() []string {
	var closed []string
	for i := range w.gates {
		if !w.gates[i].IsPassing() {
			closed = append(closed, w.gates[i].Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.schedules)) {
		if !w.schedules[name].At(w.now).Open {
			closed = append(closed, name)
		}
	}
	return closed
}

// clockText formats a time, with seconds only if there are any.
func clockText(t time.Time) string {
	if t.Second() > 0 {
		return t.Format("Mon 15:04:05")
	}
	return t.Format("Mon 15:04")
}

func (w *world) describeHistory() string {
	var all []string
	for i := range w.rollout.Status.History {
		entry := &w.rollout.Status.History[i]
		all = append(all, entry.Version.Tag+" "+string(entry.State()))
	}
	return strings.Join(all, ", ")
}
