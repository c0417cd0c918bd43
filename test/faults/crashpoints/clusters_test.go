// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	faults "github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	tag = "1.0.0"
	// mostReports is how many reports a release with a bake has, and one before it.
	mostReports = 4
)

// The Rollouts of both environments are in worlds of their own. Their controllers see
// nothing of each other but the reports.
func TestControllersMayBeKilledWhileAReleaseGoesToAnotherCluster(t *testing.T) {
	reported := faults.Begin(t, "kill -9 at each write of staging and of production, and at each report to the registry between them, before it has arrived and after",
		"the same histories and reports; the release comes to production once, and not before staging has proven it")
	clean := openCrossing(t)
	clean.play()
	want := clean.outcome()
	moments, reports := clean.moments(), clean.registry.reports()
	clean.end()

	var kills, missed, again atomic.Int32
	inParallel(moments, func(m moment) {
		t.Run(m.String(), func(t *testing.T) {
			c := openCrossing(t)
			c.killAt(m)
			c.play()
			if diff := cmp.Diff(want, c.outcome()); diff != "" {
				t.Errorf("it ends otherwise (-want +got):\n%s", diff)
			}
			kills.Add(c.kills())
			again.Add(int32(max(c.registry.reports()-reports, 0)))
			if c.kills() == 0 {
				missed.Add(1)
			}
		})
	})
	// Two writes that follow each other closely may be one in another run.
	if n := int(missed.Load()); n > len(moments)/4 {
		t.Errorf("in %d of %d runs nobody was killed", n, len(moments))
	}
	reported.Saw(int(kills.Load()), "one release makes %d writes and %d reports; it ended the same %d times, with one promotion in each environment; "+
		"%d reports were sent again", len(moments)-reports, reports, len(moments), again.Load())
}

// crossing is an application with staging in one world and production in another.
type crossing struct {
	t             *testing.T
	staging, prod *world
	registry      *counter
	keys          scenario.KeyPair
	pushKills     atomic.Int32
}

func openCrossing(t *testing.T) *crossing {
	t.Helper()
	c := &crossing{t: t, staging: emptyWorld(t), prod: emptyWorld(t), registry: openCounter(t)}
	var err error
	c.keys, err = scenario.NewKeyPair()
	c.staging.must(err)
	name := func(w *world) string { return "cluster-of-" + w.namespace }
	app := scenario.App{Namespace: c.staging.namespace, Name: crashscenario.App}
	first := scenario.Reporting(fixture.MakeEnvironment("staging").Of(crashscenario.App).Obj(), c.registry.repository())
	second := scenario.Reporting(fixture.MakeEnvironment("prod").Of(crashscenario.App).Obj(), "")
	second.Spec.Upstreams = []environmentsv1.Upstream{app.Elsewhere("staging", name(c.staging), c.registry.repository())}

	c.staging.start(append(objectsOf(first, time.Second), c.keys.Secret("")), scenario.ReportFlags(name(c.staging))...)
	trusted := scenario.TrustedKeys("", map[string]scenario.KeyPair{name(c.staging): c.keys})
	c.prod.start(append(objectsOf(second, 0), trusted), scenario.ReportFlags(name(c.prod))...)
	return c
}

// objectsOf returns the objects of one environment. The Environment comes first, so that
// its Rollout is never without it.
func objectsOf(e *environmentsv1.Environment, bake time.Duration) []client.Object {
	policy := fixture.MakePolicy(crashscenario.App).Latest(tag).Digest(digestOf(tag)).Obj()
	rollout := fixture.MakeRollout(crashscenario.App).DeployTimeout(time.Hour).SelectAllChecks()
	if bake > 0 {
		rollout = rollout.BakeTime(bake)
	}
	return []client.Object{
		e,
		fixture.MakeScan(crashscenario.App).Image("127.0.0.1:1/shop").Found(tag).Obj(), // no registry answers
		policy,
		fixture.MakeRepository(crashscenario.App).DrivenBy(crashscenario.App).Tag("0.0.1").Obj(),
		fixture.MakeKustomization(crashscenario.App).DrivenBy(crashscenario.App, "VERSION").Obj(),
		fixture.MakeHealthCheck(crashscenario.App).Healthy().Obj(),
		rollout.Obj(),
	}
}

func digestOf(tag string) string {
	_, digest, _ := strings.Cut(fixture.Revision(tag), "@")
	return digest
}

// play runs all parts until production has the release and everybody is at rest.
func (c *crossing) play() {
	c.t.Helper()
	begin, still, before := time.Now(), time.Now(), 0
	for ; time.Since(still) < stillness || !c.over(); time.Sleep(pace) {
		if time.Since(begin) > patience {
			c.t.Fatalf("the release did not come to production: staging %q, production %q; %d reports",
				c.staging.wire.Writes(), c.prod.wire.Writes(), c.registry.reports())
		}
		for _, w := range []*world{c.staging, c.prod} {
			c.revive(w)
			w.fluxActs()
		}
		if now := len(c.staging.wire.Writes()) + len(c.prod.wire.Writes()) + c.registry.reports(); now != before {
			still, before = time.Now(), now
		}
	}
}

// revive starts a controller again if it was killed.
func (c *crossing) revive(w *world) {
	if !w.controller.Running() {
		w.must(w.controller.Start(c.t.Context()))
	}
}

// over reports whether production has the release, both Environments have recorded what
// they have, and the registry has what staging says of it.
func (c *crossing) over() bool {
	for _, name := range environments {
		rollout, _, _ := objects()
		if w := c.in(name); !w.get(rollout) || len(rollout.Status.History) == 0 || !strings.HasSuffix(env.History(rollout)[0], " Succeeded") {
			return false
		}
		if !haveSucceeded(c.environment(name).Status.Releases) {
			return false
		}
	}
	stored, err := c.registry.stored(c.keys, c.source())
	said := c.environment(environments[0]).Status.Report
	return err == nil && said != nil && said.Sequence == stored.Sequence && haveSucceeded(stored.Releases)
}

func haveSucceeded(releases []environmentsv1.Release) bool {
	return len(releases) == 1 && releases[0].State == "Succeeded"
}

// environment returns an Environment as it is now; empty if it cannot be read.
func (c *crossing) environment(name string) *environmentsv1.Environment {
	e := &environmentsv1.Environment{}
	e.Name = name
	c.in(name).get(e)
	return e
}

// source is what the report must be about.
func (c *crossing) source() report.Source {
	return report.Source{
		Application: "shop", Environment: "staging", Cluster: "cluster-of-" + c.staging.namespace,
		Namespace: c.staging.namespace, Rollout: crashscenario.App,
	}
}

// passed is what must not depend on kills.
type passed struct {
	Staging, Prod crashscenario.State
	// Reported is what the last report says of the release.
	Reported string
	// Recorded are the releases in the statuses of the Environments.
	Recorded []string
}

func (c *crossing) outcome() passed {
	c.t.Helper()
	stored, err := c.registry.stored(c.keys, c.source())
	c.staging.must(err)
	p := passed{Staging: c.state(c.staging), Prod: c.state(c.prod), Reported: describeReleases(stored.Releases)}
	for _, name := range environments {
		e := &environmentsv1.Environment{}
		e.Name = name
		c.in(name).read(e)
		p.Recorded = append(p.Recorded, describeReleases(e.Status.Releases))
	}
	c.inOrder()
	if n := c.registry.reports(); n > mostReports+int(c.kills()) {
		c.t.Errorf("there were %d reports, want at most %d and one for each kill", n, mostReports)
	}
	return p
}

func describeReleases(releases []environmentsv1.Release) string {
	var text []string
	for _, r := range releases {
		text = append(text, fmt.Sprint(r.Tag, " ", r.Digest, " ", r.State, " ", r.Evidence, " ", r.Current, r.Withdrawn, r.Unhealthy))
	}
	return strings.Join(text, ", ")
}

func (c *crossing) state(w *world) crashscenario.State {
	c.t.Helper()
	rollout, repository, kustomization := objects()
	w.read(rollout)
	w.read(repository)
	w.read(kustomization)
	return crashscenario.See(rollout, repository, kustomization, nil)
}

// inOrder checks that staging had proven the release when production took it.
func (c *crossing) inOrder() {
	c.t.Helper()
	before, _, _ := objects()
	after, _, _ := objects()
	c.staging.read(before)
	c.prod.read(after)
	// One is rounded up to a second, and the other one down.
	if proven, taken := before.Current().BakeEndTime, after.Current().Timestamp; taken.Add(time.Second).Before(proven.Time) {
		c.t.Errorf("production took it at %s, and staging has proven it at %s", taken, proven)
	}
}

// environments are the names of both environments and of their Environments.
var environments = []string{"staging", "prod"}

// in returns the world of an environment.
func (c *crossing) in(environment string) *world {
	if environment == environments[0] {
		return c.staging
	}
	return c.prod
}

// end stops the controllers.
func (c *crossing) end() {
	for _, w := range []*world{c.staging, c.prod} {
		_ = w.controller.Kill()
	}
}

func (c *crossing) kills() int32 {
	return c.staging.kills.Load() + c.prod.kills.Load() + c.pushKills.Load()
}
