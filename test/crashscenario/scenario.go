// SPDX-License-Identifier: Apache-2.0

// Package crashscenario has the scenarios of the tests that crash the controller at each
// of its writes. In the first one there are four promotions to two targets, with a bake
// and a HealthCheck. A user cancels the second during its bake by a pin, and the third,
// which Flux never applies, by forcing a release. In the other one the HealthCheck fails
// the second, which is reported, the Rollout goes back by itself, and a fix follows. In a
// third one the targets also get the digest of each release. In a fourth one a gate asks people
// about each release: they approve two, a third one goes by an override, and what was used
// counts no more after a user has gone back. Whatever happens to the controller meanwhile,
// the result must be the same.
//
// The tests of the reconciler run it step by step in one process. The fault suite runs it
// with the program, and kills that.
package crashscenario

import (
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	// App is the name of all objects.
	App = "shop"

	first, second, pinned = "1.0.0", "1.1.0", "0.9.0"
	unhealthy, fixed      = "1.2.0", "1.3.0"

	user = "ann"
	// image of the application, which no registry has.
	image = "127.0.0.1:1/shop"
	// short is a bake that ends while the test runs, and long is one that does not.
	short, long = time.Second, time.Hour
)

// Env acts as users and as image-reflector-controller do.
type Env interface {
	// Release makes the ImagePolicy name a tag that a scan has found.
	Release(tag string)
	// ChangeRollout changes the Rollout.
	ChangeRollout(change func(*v1alpha1.Rollout))
}

// Scenario is a run of a scenario.
type Scenario struct {
	steps   []step
	done    int
	want    State
	rollout *fixture.RolloutBuilder
	// said are decisions of people, and the gate that asks for them.
	said []client.Object
	// byDigest is true if the targets get the digest of each release.
	byDigest bool
	// Reflected is true if the ImagePolicy reflects these digests.
	Reflected bool
}

// step is a promotion that must be reached, and what happens then.
type step struct {
	until string
	then  func(Env)
}

// New returns the scenario of four promotions and a user.
func New() *Scenario { return &Scenario{steps: steps, want: end, rollout: protected()} }

// Rollback returns the scenario of a release that fails, the report to its quarantine, the
// rollback, and the fix.
func Rollback() *Scenario {
	return &Scenario{steps: stepsBack, want: backEnd, rollout: protected().RollsBack().Quarantine()}
}

// Digests returns the scenario of two releases whose digest is written, too.
func Digests() *Scenario {
	return &Scenario{steps: stepsOfDigests, want: digestsEnd, rollout: protected(), Reflected: true, byDigest: true}
}

// Approvals returns the scenario of releases that people approve, or override, and that none of
// them has approved again.
func Approvals() *Scenario {
	said := []client.Object{
		fixture.MakeGate("qa", App).Asking(fixture.AskFor(1)).Obj(), decision("bob", first).Obj(), decision("carol", second).Obj(),
		decision("oncall", fixed).Override(24*time.Hour, "payments are down").Obj(),
	}
	return &Scenario{steps: stepsOfApprovals, want: approvalsEnd, rollout: protected(), Reflected: true, said: said}
}

func decision(user, tag string) *fixture.ApprovalBuilder {
	return fixture.MakeApproval(user, App, tag).Named(user + "-" + tag).Digest(digestOf(tag))
}

func protected() *fixture.RolloutBuilder {
	return fixture.MakeRollout(App).BakeTime(short).DeployTimeout(long).SelectAllChecks()
}

// Objects returns the objects of the application, with their status.
func (s *Scenario) Objects() []client.Object {
	policy, source := fixture.MakePolicy(App).Latest(first), fixture.MakeRepository(App).DrivenBy(App).Tag("0.0.1")
	kustomization := fixture.MakeKustomization(App).DrivenBy(App, "VERSION").Substitute("TIER", "gold")
	if s.Reflected {
		policy.Digest(digestOf(first))
	}
	if s.byDigest {
		source.PinnedBy(App)
		kustomization.PinnedBy(App, "DIGEST")
	}
	return append([]client.Object{
		fixture.MakeScan(App).Image(image).Found(first).Obj(),
		policy.Obj(),
		withImage(source),
		kustomization.Obj(),
		fixture.MakeHealthCheck(App).Healthy().Obj(),
		s.rollout.Obj(),
	}, s.said...)
}

// withImage makes the source pull the image, so that it shows the content of a release.
func withImage(source *fixture.RepositoryBuilder) client.Object {
	o := source.Obj()
	o.Spec.URL = "oci://" + image
	return o
}

func digestOf(tag string) string {
	_, digest, _ := strings.Cut(fixture.Revision(tag), "@")
	return digest
}

// FluxPulls reports whether Flux finds a tag in the registry.
func FluxPulls(tag string) bool { return tag != pinned }

// Report returns what the writer of the HealthCheck reports of the release in a target;
// empty if it reports nothing now. It reports an error only after the reset is complete:
// in between, the error may also count against the next promotion. It reports Healthy only
// after the status of the Rollout shows that the error was reset. Otherwise one write would
// do for both, and not all runs would make the same writes.
func Report(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck, tag string) v1alpha1.HealthStatus {
	switch {
	case check.Status.Status != v1alpha1.HealthStatusPending || tag != unhealthy && isBlocked(rollout):
		return ""
	case tag != unhealthy:
		return v1alpha1.HealthStatusHealthy
	case rollout.Current().Version.Tag == unhealthy && wasReset(rollout, check):
		return v1alpha1.HealthStatusUnhealthy
	}
	return ""
}

func isBlocked(rollout *v1alpha1.Rollout) bool {
	return apimeta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.DeploymentBlockedCondition)
}

func wasReset(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) bool {
	return check.Annotations[v1alpha1.ResetAnnotationPrefix+string(rollout.UID)] == evidence.ResetMark(rollout.Current(), nil)
}

var steps = []step{
	{"1 1.0.0 Succeeded", func(e Env) {
		e.ChangeRollout(bakes(long))
		e.Release(second)
	}},
	{"2 1.1.0 InProgress", func(e Env) {
		e.ChangeRollout(func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = new(pinned) })
	}},
	{"3 0.9.0 Deploying", func(e Env) { e.ChangeRollout(forceSecond) }},
	{"4 1.1.0 Succeeded", func(Env) {}},
}

var stepsBack = []step{
	{"1 1.0.0 Succeeded", func(e Env) { e.Release(unhealthy) }},
	{"3 1.0.0 Succeeded", func(e Env) { e.Release(fixed) }},
	{"4 1.3.0 Succeeded", func(Env) {}},
}

var stepsOfDigests = []step{
	{"1 1.0.0 Succeeded", func(e Env) { e.Release(fixed) }},
	{"2 1.3.0 Succeeded", func(Env) {}},
}

var stepsOfApprovals = []step{
	{"1 1.0.0 Succeeded", func(e Env) { e.Release(second) }},
	{"2 1.1.0 Succeeded", func(e Env) { e.Release(fixed) }},
	{"3 1.3.0 Succeeded", func(e Env) {
		e.ChangeRollout(func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = new(first) })
	}},
	{"4 1.0.0 Succeeded", func(e Env) {
		e.ChangeRollout(func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = nil })
	}},
	{"4 1.0.0 Succeeded", func(Env) {}},
}

func bakes(d time.Duration) func(*v1alpha1.Rollout) {
	return func(r *v1alpha1.Rollout) { r.Spec.BakeTime = &metav1.Duration{Duration: d} }
}

func forceSecond(r *v1alpha1.Rollout) {
	bakes(short)(r)
	r.Spec.WantedVersion = nil
	r.Annotations = map[string]string{v1alpha1.ForceDeployAnnotation: second, v1alpha1.DeployUserAnnotation: user}
}

// Act does what the scenario has next if the newest promotion and its targets are so far,
// and reports whether it did.
func (s *Scenario) Act(e Env, now State) bool {
	if s.Over() || !now.reached(s.steps[s.done].until) {
		return false
	}
	if s.done++; !s.Over() {
		s.steps[s.done-1].then(e)
	}
	return true
}

// Over reports whether the last promotion has been reached.
func (s *Scenario) Over() bool { return s.done == len(s.steps) }

// Want returns the state in which the scenario must end: each promotion is in the history
// once, and each target was written once for each.
func (s *Scenario) Want() State { return s.want }

// reached reports whether the newest promotion is this one, and its version is in all
// targets.
func (s State) reached(promotion string) bool {
	version := strings.Fields(promotion)[1]
	return len(s.History) > 0 && strings.HasPrefix(s.History[0], promotion+" ") &&
		s.Carried["tag"] == version && s.Carried["VERSION"] == version
}

var (
	history = []string{
		"4 1.1.0 Succeeded User ann",
		"3 0.9.0 Cancelled User of a field manager",
		"2 1.1.0 Cancelled System rollout-controller",
		"1 1.0.0 Succeeded System rollout-controller",
	}
	historyBack = []string{
		"4 1.3.0 Succeeded System rollout-controller",
		"3 1.0.0 Succeeded System rollout-controller, from 1.2.0 #2 to #1",
		"2 1.2.0 Failed System rollout-controller, HealthCheckFailed, reported",
		"1 1.0.0 Succeeded System rollout-controller",
	}
	digestsEnd = withDigest(stateOf([]string{
		"2 1.3.0 Succeeded System rollout-controller",
		"1 1.0.0 Succeeded System rollout-controller",
	}, fixed, first, fixed))
	approvalsEnd = stateOf([]string{
		"4 1.0.0 Succeeded User of a field manager, NotNeeded",
		"3 1.3.0 Succeeded System rollout-controller, Overridden by oncall",
		"2 1.1.0 Succeeded System rollout-controller, Approved by carol",
		"1 1.0.0 Succeeded System rollout-controller, Approved by bob",
	}, first, first, second, fixed)
	backEnd = held(stateOf(historyBack, fixed, first, unhealthy, fixed))
	end     = stateOf(history, second, first, second)
)

// stateOf returns the state after a history. The ImagePolicy has never named the release
// that was pinned, so the ledger does not contain it.
func stateOf(history []string, carried string, ledger ...string) State {
	writes := int64(len(history)) + 1 // the first is the creation
	return State{
		History:     slices.Clone(history),
		Carried:     map[string]string{"tag": carried, "VERSION": carried, "TIER": "gold"},
		Generations: map[string]int64{"OCIRepository": writes, "Kustomization": writes},
		Ledger:      ledger,
	}
}

// withDigest adds the digest of the release that the targets carry.
func withDigest(s State) State {
	s.Carried["digest"] = digestOf(s.Carried["tag"])
	s.Carried["DIGEST"] = s.Carried["digest"]
	return s
}

// held adds the quarantine of the release that failed once.
func held(s State) State {
	s.Quarantines = []string{"[1.2.0] Held: #2 HealthCheckFailed"}
	return s
}
