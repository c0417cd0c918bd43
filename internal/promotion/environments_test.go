// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pair is two environments of one application: prod takes what staging has proven. Each
// has a clock of its own.
type pair struct {
	t             *testing.T
	staging, prod *world
	// now is the time that passes for both. The clock of staging shows it with an offset.
	now    time.Time
	offset time.Duration
	rule   demand
	// recorded is what staging has recorded of itself, and known is what prod has recorded of
	// that, by its own clock. In between, there may be reports.
	recorded []environmentsv1.Release
	known    []environmentsv1.UpstreamStatus
	reports  *mail
	// proven is since when staging has been healthy with each release, in real time.
	proven map[string]time.Time
	truth  *truth
	lines  []string
}

// demand is what the Environment of prod asks for.
type demand struct {
	spec environmentsv1.EnvironmentSpec
	soak time.Duration
}

// story is what people do to a pair, in order, and how it ends.
type story struct {
	staging, prod *fixture.RolloutBuilder
	offset        time.Duration
	rule          demand
	events        []turn
	ends          [2]string
}

// turn is an event in the life of a pair.
type turn struct {
	when func(*pair) bool
	what string
	do   func(*pair)
}

// upstreams returns what staging says now, and since when prod knows it.
func (p *pair) upstreams() upstream.Upstreams {
	said, id := p.said()
	u := upstream.Upstream{
		Upstream: environmentsv1.Upstream{
			Environment: "staging", Type: environmentsv1.After, SoakTime: &metav1.Duration{Duration: p.rule.soak},
		},
		Releases: said,
	}
	if len(p.known) > 0 && p.known[0].ObservedDigest == id {
		u.Seen = p.known[0].VerifiedTime.Time
	}
	e := &environmentsv1.Environment{Spec: p.rule.spec}
	e.Name = "prod"
	return upstream.Upstreams{Environments: []upstream.Environment{{Environment: e, Upstreams: []upstream.Upstream{u}}}}
}

func (p *pair) view() environment.View {
	v := environment.View{Rollout: p.staging.rollout, Recorded: p.recorded}
	for _, w := range p.staging.writers {
		if w.check.Status.Status == v1alpha1.HealthStatusUnhealthy {
			v.Unhealthy = "HealthCheck " + w.check.Name
		}
		if at := w.check.Status.LastErrorTime; at != nil && at.After(v.LastError) {
			v.LastError = at.Time
			if changed := w.check.Status.LastChangeTime; changed != nil && w.check.Status.Status == v1alpha1.HealthStatusHealthy {
				v.Recovered = changed.Time
			}
		}
	}
	return v
}

// said returns what prod can know of staging now, and what identifies that.
func (p *pair) said() (releases []environmentsv1.Release, id string) {
	sequence := int64(0)
	if p.reports == nil {
		releases = environment.Read(p.view(), p.clockOf(p.staging, p.now))
	} else {
		releases, sequence = p.reports.delivered(p.t)
	}
	return releases, environment.Observed(sequence, releases)
}

// observe plays the controller of Environments, in both.
func (p *pair) observe() {
	if p.staging.iteration >= p.staging.awayUntil {
		p.record()
	}
	if p.prod.iteration >= p.prod.awayUntil {
		_, id := p.said()
		p.known = environment.Upstreams(p.known, []environmentsv1.UpstreamStatus{{Environment: "staging", ObservedDigest: id}}, p.now)
	}
}

// record plays that of staging.
func (p *pair) record() {
	here := p.clockOf(p.staging, p.now)
	if next := environment.Record(p.view(), here); !environment.Same(next, p.recorded) {
		before := p.recorded
		p.recorded = next
		p.keeps(before)
	}
	if p.reports != nil {
		p.reports.publish(p.t, p.recorded, here)
	}
}

// begin sets a pair up.
func (s story) begin(t *testing.T, rng *rand.Rand) *pair {
	t.Helper()
	p := &pair{
		t: t, now: noon, offset: s.offset, rule: s.rule, proven: map[string]time.Time{},
		staging: newWorld(t, s.staging, rng), prod: newWorld(t, s.prod, rng),
	}
	p.staging.rollout.Name, p.prod.rollout.Name = "staging", "prod"
	p.staging.addCheck("smoke")
	p.prod.addCheck("smoke")
	p.prod.upstreams = p.upstreams
	return p
}

func (s story) play(t *testing.T, rng *rand.Rand) *pair {
	t.Helper()
	p := s.begin(t, rng)
	left := slices.Clone(s.events)
	for range 1000 {
		for len(left) > 0 && left[0].when(p) {
			p.lines = append(p.lines, "-- "+left[0].what)
			left[0].do(p)
			left = left[1:]
		}
		p.step()
		ends := [2]string{p.staging.describeHistory(), p.prod.describeHistory()}
		if len(left) == 0 && ends == s.ends && p.staging.atRest() && p.prod.atRest() {
			return p
		}
	}
	t.Fatalf("it did not come to its end; staging: %s; prod: %s; %d events are left",
		p.staging.describeHistory(), p.prod.describeHistory(), len(left))
	return nil
}

// step lets both environments act once, and moves the time to whatever comes first.
func (p *pair) step() {
	next := p.now.Add(24 * time.Hour)
	for _, w := range []*world{p.staging, p.prod} {
		w.now = p.clockOf(w, p.now)
		lines, before := len(w.lines), w.rollout.Current().State()
		w.step(func() {})
		p.observe()
		p.lines = append(p.lines, w.lines[lines:]...)
		if due := w.now.Add(p.now.Sub(p.clockOf(w, p.now))); due.Before(next) {
			next = due
		}
		w.now = p.clockOf(w, p.now)
		p.check(w, before)
	}
	p.now = next
}

func (p *pair) clockOf(w *world, t time.Time) time.Time {
	if w == p.staging {
		return t.Add(p.offset)
	}
	return t
}

// check notes since when staging has been healthy with its release, and fails if prod has
// promoted a release for which that was not long enough.
func (p *pair) check(w *world, before v1alpha1.BakeStatus) {
	current := w.current()
	if p.truth != nil {
		p.compare(w)
		return
	}
	_, healthy := p.proven[current.Version.Tag]
	switch {
	case w == p.staging && p.view().Unhealthy != "":
		delete(p.proven, current.Version.Tag)
	case w == p.staging && current.State() == v1alpha1.BakeInProgress && before == v1alpha1.BakeDeploying,
		w == p.staging && current.State() == v1alpha1.BakeSucceeded && !healthy:
		p.proven[current.Version.Tag] = p.now
	case w == p.prod && current.State() == v1alpha1.BakeDeploying && before != v1alpha1.BakeDeploying:
		since, ok := p.proven[current.Version.Tag]
		bypassed := strings.Contains(*current.Message, "Environments bypassed manually")
		if !bypassed && (!ok || p.now.Sub(since) < p.rule.soak) {
			p.t.Fatalf("prod takes %s after %s of %s in staging", current.Version.Tag, p.now.Sub(since), p.rule.soak)
		}
	}
}

func inStaging(is func(*world) bool) func(*pair) bool {
	return func(p *pair) bool { return is(p.staging) }
}

func inProd(is func(*world) bool) func(*pair) bool {
	return func(p *pair) bool { return is(p.prod) }
}

func push(when func(*pair) bool, tag string) turn {
	return turn{when, tag + " is pushed", func(p *pair) {
		for _, w := range []*world{p.staging, p.prod} {
			w.registry = append(w.registry, tag)
		}
	}}
}

func badRelease(when func(*pair) bool, tag string) turn {
	good := push(when, tag)
	return turn{when, tag + " is pushed, and is broken", func(p *pair) {
		good.do(p)
		p.staging.unhealthy[tag], p.prod.unhealthy[tag] = 0, 0
	}}
}

func annotate(when func(*pair) bool, key, value string) turn {
	return turn{when, "a user annotates prod with " + key + "=" + value, func(p *pair) {
		metav1.SetMetaDataAnnotation(&p.prod.rollout.ObjectMeta, key, value)
		p.prod.memory.said = true
	}}
}

var always = func(*pair) bool { return true }

var succeeded = v1alpha1.BakeSucceeded

var stories = map[string]story{
	"an upstream proves a release": {
		staging: guarded(), prod: guarded(), offset: time.Hour, rule: demand{soak: 2 * time.Hour},
		events: []turn{
			push(always, "1.0.0"),
			badRelease(inProd(once("1.0.0", succeeded)), "1.1.0"),
			push(inProd(held("1.1.0", environmentsv1.UpstreamFailedReason)), "1.1.1"),
			{always, "a user unblocks staging", func(p *pair) {
				metav1.SetMetaDataAnnotation(&p.staging.rollout.ObjectMeta, v1alpha1.UnblockFailedAnnotation, "true")
			}},
		},
		ends: [2]string{"1.1.1 Succeeded, 1.1.0 Failed, 1.0.0 Succeeded", "1.1.1 Succeeded, 1.0.0 Succeeded"},
	},
	"soak survives a restart": {
		staging: guarded(), prod: guarded(), offset: -365 * 24 * time.Hour, rule: demand{soak: 2 * time.Hour},
		events: []turn{
			push(always, "1.0.0"),
			{inProd(held("1.0.0", environmentsv1.UpstreamSoakingReason)), "staging restarts", func(p *pair) { p.staging.awayUntil = p.staging.iteration + 5 }},
			{inProd(held("1.0.0", environmentsv1.UpstreamSoakingReason)), "prod loses what it has read", func(p *pair) { p.known = nil }},
		},
		ends: [2]string{"1.0.0 Succeeded", "1.0.0 Succeeded"},
	},
	"an interruption starts the soak anew": {
		staging: guarded(), prod: guarded(), offset: time.Hour, rule: demand{soak: 2 * time.Hour},
		events: []turn{
			push(always, "1.0.0"),
			{inProd(held("1.0.0", environmentsv1.UpstreamSoakingReason)), "staging becomes unhealthy a minute before the soak ends", func(p *pair) {
				p.now = p.proven["1.0.0"].Add(2*time.Hour - time.Minute)
				p.staging.sick = true
			}},
			{func(p *pair) bool { // or the HealthCheck has seen it too late
				return held("1.0.0", environmentsv1.UpstreamPendingReason)(p.prod) || once("1.0.0", succeeded)(p.prod)
			}, "staging recovers", func(p *pair) { p.staging.sick = false }},
		},
		ends: [2]string{"1.0.0 Succeeded", "1.0.0 Succeeded"},
	},
	"staging skips a release": {
		staging: guarded(), prod: guarded().Strategy(v1alpha1.ReleaseNext), offset: time.Hour,
		events: []turn{
			push(always, "1.0.0"),
			{inProd(once("1.0.0", succeeded)), "a user pins 1.0.0 in staging", func(p *pair) { p.staging.rollout.Spec.WantedVersion = to("1.0.0") }},
			push(always, "1.1.0"),
			push(inProd(held("1.1.0", environmentsv1.UpstreamPendingReason)), "1.2.0"),
			{inProd(knows("1.2.0")), "the pin is removed", func(p *pair) { p.staging.rollout.Spec.WantedVersion = nil }},
		},
		ends: [2]string{"1.2.0 Succeeded, 1.0.0 Succeeded", "1.2.0 Succeeded, 1.0.0 Succeeded"},
	},
	"a hotfix passes with a reason": {
		staging: guarded(), prod: guarded(), offset: time.Hour, rule: demand{soak: 24 * time.Hour},
		events: []turn{
			push(always, "1.0.0"),
			push(inProd(once("1.0.0", succeeded)), "1.0.1"),
			annotate(inProd(held("1.0.1", environmentsv1.UpstreamPendingReason)), v1alpha1.DeployMessageAnnotation, "INC-4711"),
			annotate(always, v1alpha1.BypassGatesAnnotation, "1.0.1"),
		},
		ends: [2]string{"1.0.1 Succeeded, 1.0.0 Succeeded", "1.0.1 Succeeded, 1.0.0 Succeeded"},
	},
	"staging goes back": {
		staging: guarded(), prod: guarded(), offset: time.Hour, rule: demand{soak: 2 * time.Hour},
		events: []turn{
			push(always, "1.0.0"),
			push(inProd(once("1.0.0", succeeded)), "1.1.0"),
			{inProd(held("1.1.0", environmentsv1.UpstreamSoakingReason)), "a user pins 1.0.0 in staging", func(p *pair) { p.staging.rollout.Spec.WantedVersion = to("1.0.0") }},
			push(inProd(held("1.1.0", environmentsv1.UpstreamWithdrawnReason)), "1.2.0"),
			{inStaging(once("1.0.0", succeeded)), "the pin is removed", func(p *pair) { p.staging.rollout.Spec.WantedVersion = nil }},
		},
		ends: [2]string{"1.2.0 Succeeded, 1.0.0 Succeeded, 1.1.0 Succeeded, 1.0.0 Succeeded", "1.2.0 Succeeded, 1.0.0 Succeeded"},
	},
}

// Two environments whose clocks differ live side by side. In fixed order, what they do is
// compared with a golden file. With any seed, everyone acts in any order and takes any
// time, and prod never takes what staging has not proven for long enough.
func TestEnvironmentsInARow(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			t.Run("in fixed order", func(t *testing.T) { compareGolden(t, name, s.play(t, nil).lines) })
			for _, seed := range seeds(freshSeedsOfAScenario) {
				t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) { s.play(t, random(seed)) })
			}
		})
	}
}
