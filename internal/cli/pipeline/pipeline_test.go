// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/pipeline"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// env returns the Environment of a Rollout that has its name: "staging", or
// "namespace/staging". It comes after others, and beside those with a "~".
func env(name string, after ...string) environmentsv1.Environment {
	namespace, short := split(name)
	e := environmentsv1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: short},
		Spec: environmentsv1.EnvironmentSpec{
			RolloutRef: v1alpha1.LocalObjectReference{Name: short}, Name: "shop", Environment: short,
		},
	}
	for _, upstream := range after {
		u := environmentsv1.Upstream{}
		if other, parallel := strings.CutPrefix(upstream, "~"); parallel {
			upstream, u.Type = other, environmentsv1.Parallel
		}
		u.Namespace, u.Environment = split(upstream)
		u.Rollout = u.Environment
		e.Spec.Upstreams = append(e.Spec.Upstreams, u)
	}
	return e
}

func split(name string) (namespace, short string) {
	if namespace, short, is := strings.Cut(name, "/"); is {
		return namespace, short
	}
	return "shop", name
}

func of(application string, e environmentsv1.Environment) environmentsv1.Environment {
	e.Spec.Name = application
	return e
}

func environments(all ...environmentsv1.Environment) []environmentsv1.Environment { return all }

// drawn returns each pipeline as one line: "shop: dev, staging, prod". What does not exist
// has a question mark.
func drawn(pipelines []pipeline.Pipeline) []string {
	var all []string
	for _, p := range pipelines {
		var names []string
		for _, e := range p.Environments {
			name := e.Environment
			if e.Object == "" {
				name += "?"
			}
			names = append(names, name)
		}
		all = append(all, p.Application+": "+strings.Join(names, ", "))
	}
	return all
}

func TestPipelinesAreInTheOrderOfTheChain(t *testing.T) {
	for name, tt := range map[string]struct {
		given []environmentsv1.Environment
		want  []string
	}{
		"nothing": {nil, nil},
		"a chain": {environments(env("prod", "staging"), env("dev"), env("staging", "dev")), []string{"shop: dev, staging, prod"}},
		"two ways to the end": {
			environments(env("prod", "qa", "load"), env("qa", "dev"), env("load", "qa"), env("dev")),
			[]string{"shop: dev, qa, load, prod"},
		},
		"two first ones":            {environments(env("prod", "b", "a"), env("b"), env("a")), []string{"shop: a, b, prod"}},
		"side by side":              {environments(env("us", "dev", "~eu"), env("eu", "dev", "~us"), env("dev")), []string{"shop: dev, eu, us"}},
		"across namespaces":         {environments(env("b/prod", "a/staging"), env("a/staging", "c/dev"), env("c/dev")), []string{"shop: dev, staging, prod"}},
		"one of an empty namespace": {environments(env("prod", "staging")), []string{"shop: staging?, prod"}},
		"named twice":               {environments(env("eu", "staging"), env("us", "staging")), []string{"shop: staging?, eu, us"}},
		"a cycle of two": {
			environments(env("prod", "staging", "dev"), env("staging", "prod"), env("dev"), env("last", "prod")),
			[]string{"shop: dev, staging, prod, last"},
		},
		"after itself": {environments(env("prod", "prod")), []string{"shop: prod"}},
		"two applications": {
			environments(of("web", env("prod")), env("prod", "staging"), env("staging")),
			[]string{"shop: staging, prod", "web: prod"},
		},
		"the same name elsewhere":     {environments(env("a/prod"), env("b/prod")), []string{"shop: prod", "shop: prod"}},
		"unrelated, in one namespace": {environments(env("eu"), env("us")), []string{"shop: eu, us"}},
		"an upstream of another application": {
			environments(env("prod", "staging"), of("web", env("staging"))),
			[]string{"shop: staging?, prod", "web: staging"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, drawn(pipeline.Of(pipeline.Facts{Environments: tt.given}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrderDoesNotDependOnWhatWasReadFirst(t *testing.T) {
	all := environments(env("prod", "qa", "staging"), env("qa", "dev"), env("staging", "qa", "last"), env("dev"), env("last", "prod"))
	want := drawn(pipeline.Of(pipeline.Facts{Environments: all}))
	for i := range all {
		turned := append(all[i:len(all):len(all)], all[:i]...)
		if diff := cmp.Diff(want, drawn(pipeline.Of(pipeline.Facts{Environments: turned}))); diff != "" {
			t.Errorf("turned by %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestPipelineIsInTheNamespacesOfItsEnvironments(t *testing.T) {
	p := pipeline.Of(pipeline.Facts{Environments: environments(env("b/prod", "a/staging"))})[0]
	if !p.In("b") || p.In("a") || p.In("c") {
		t.Errorf("it is in b: %v, in a: %v, in c: %v", p.In("b"), p.In("a"), p.In("c"))
	}
}

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// runs returns a Rollout that has promoted these tags, the newest first, and knows so many
// releases.
func runs(name string, known []string, tags ...string) *v1alpha1.Rollout {
	namespace, short := split(name)
	var history []*fixture.EntryBuilder
	for _, tag := range tags {
		history = append(history, fixture.MakeEntry(tag).Succeeded().At(noon))
	}
	rollout := fixture.MakeRollout(short).Ledger(known...).History(history...).Obj()
	rollout.Namespace = namespace
	return rollout
}

func rollouts(all ...*v1alpha1.Rollout) []v1alpha1.Rollout {
	var items []v1alpha1.Rollout
	for _, r := range all {
		items = append(items, *r)
	}
	return items
}

// revisions gives the releases of a Rollout the revision of their tag, and another digest.
func revisions(r *v1alpha1.Rollout) *v1alpha1.Rollout {
	set := func(v *v1alpha1.VersionInfo) {
		revision, digest := "revision of "+strings.TrimPrefix(v.Tag, "eu-"), "sha256:"+r.Name+v.Tag
		v.Revision, v.Digest = &revision, &digest
	}
	for i := range r.Status.History {
		set(&r.Status.History[i].Version)
	}
	for i := range r.Status.AvailableReleases {
		set(&r.Status.AvailableReleases[i])
	}
	return r
}

func TestBehindCountsReleases(t *testing.T) {
	known := []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}
	byRevision := env("prod", "staging")
	byRevision.Spec.MatchBy = environmentsv1.MatchByRevision
	for name, tt := range map[string]struct {
		environments []environmentsv1.Environment
		rollouts     []v1alpha1.Rollout
		want         string
	}{
		"none":                            {nil, rollouts(runs("staging", known, "1.3.0"), runs("prod", known, "1.3.0")), "staging 0, prod 0"},
		"by the order of the policy":      {nil, rollouts(runs("staging", known, "1.3.0"), runs("prod", known, "1.0.0")), "staging 0, prod 3"},
		"what was skipped counts as well": {nil, rollouts(runs("staging", known, "1.3.0", "1.0.0"), runs("prod", known, "1.0.0")), "staging 0, prod 3"},
		"ahead":                           {nil, rollouts(runs("staging", known, "1.0.0"), runs("prod", known, "1.2.0")), "staging 0, prod -2"},
		"as only the first one knows":     {nil, rollouts(runs("staging", known, "1.3.0"), runs("prod", nil, "1.2.0")), "staging 0, prod 1"},
		"by the history":                  {nil, rollouts(runs("staging", nil, "1.3.0", "1.2.0", "1.3.0", "1.0.0"), runs("prod", nil, "1.0.0")), "staging 0, prod 2"},
		"not known":                       {nil, rollouts(runs("staging", nil, "1.3.0"), runs("prod", nil, "1.0.0")), "staging 0, prod ?"},
		"another image by the same tag":   {nil, rollouts(revisions(runs("staging", known, "1.3.0")), revisions(runs("prod", known, "1.3.0"))), "staging 0, prod ?"},
		"nothing runs":                    {nil, rollouts(runs("staging", known, "1.3.0"), runs("prod", known)), "staging 0, prod ?"},
		"a first one that does not exist": {
			environments(env("prod", "staging")), rollouts(runs("staging", known, "1.3.0"), runs("prod", known, "1.0.0")), "staging ?, prod ?",
		},
		"no Rollout of the first": {nil, rollouts(runs("prod", known, "1.3.0")), "staging ?, prod ?"},
		"built again, by revision": {
			environments(env("staging"), byRevision),
			rollouts(revisions(runs("staging", known, "1.3.0")), revisions(runs("prod", []string{"eu-1.2.0", "eu-1.3.0"}, "eu-1.2.0"))),
			"staging 0, prod 1",
		},
		"of several first ones, behind the newest": {
			environments(env("a"), env("b"), env("prod", "a", "b")),
			rollouts(runs("a", known, "1.1.0"), runs("b", known, "1.3.0"), runs("prod", known, "1.0.0")),
			"a 0, b 0, prod 3",
		},
		"the first one, and not the one before": {
			environments(env("dev"), env("staging", "dev"), env("prod", "staging")),
			rollouts(runs("dev", known, "1.3.0"), runs("staging", known, "1.1.0"), runs("prod", known, "1.0.0")),
			"dev 0, staging 2, prod 3",
		},
		"a cycle has no first one": {
			environments(env("a", "b"), env("b", "a")),
			rollouts(runs("a", known, "1.1.0"), runs("b", known, "1.3.0")),
			"a ?, b ?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.environments == nil {
				tt.environments = environments(env("staging"), env("prod", "staging"))
			}
			var got []string
			for _, e := range pipeline.Of(pipeline.Facts{Environments: tt.environments, Rollouts: tt.rollouts})[0].Environments {
				behind := "?"
				if e.Behind != nil {
					behind = fmt.Sprint(*e.Behind)
				}
				got = append(got, e.Environment+" "+behind)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// held returns a candidate with holds of these reasons.
func held(tag string, reasons ...string) v1alpha1.ReleaseCandidate {
	c := v1alpha1.ReleaseCandidate{VersionInfo: fixture.MakeRelease(tag).Obj()}
	for _, reason := range reasons {
		c.Holds = append(c.Holds, v1alpha1.CandidateHold{Reason: reason, Message: tag + ": " + reason})
	}
	return c
}

func TestRowSaysWhatRunsAndWhatIsNext(t *testing.T) {
	const pending, waiting = environmentsv1.UpstreamPendingReason, environmentsv1.AwaitingPromotionReason
	waits := func(r *v1alpha1.Rollout, candidates ...v1alpha1.ReleaseCandidate) *v1alpha1.Rollout {
		r.Status.ReleaseCandidates = candidates
		r.Status.Gates = []v1alpha1.RolloutGateStatusSummary{{Name: "environment/prod"}}
		return r
	}
	prod := func() *v1alpha1.Rollout { return runs("prod", []string{"1.0.0", "1.1.0"}, "1.0.0") }
	suspended, older := waits(prod(), held("1.1.0", pending)), waits(prod(), held("1.1.0"))
	suspended.Spec.Suspend, older.Status.Gates = true, nil
	stalled := env("prod", "staging")
	stalled.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: environmentsv1.UpstreamNotFoundReason, Message: "it has no upstream"}}
	for name, tt := range map[string]struct {
		environment environmentsv1.Environment
		rollout     *v1alpha1.Rollout
		unreadable  map[string]string
		want        string
	}{
		"up to date":                             {env("prod", "staging"), runs("prod", nil, "1.1.0"), nil, `1.1.0, proven "", next "": up to date`},
		"one hold":                               {env("prod", "staging"), waits(prod(), held("1.1.0", pending)), nil, `1.0.0, proven "", next "1.1.0": 1.1.0: UpstreamPending`},
		"two holds":                              {env("prod", "staging"), waits(prod(), held("1.1.0", pending, waiting)), nil, `1.0.0, proven "", next "1.1.0": 1.1.0: UpstreamPending (and 1 more)`},
		"proven":                                 {env("prod", "staging"), waits(prod(), held("1.2.0", pending), held("1.1.0", waiting)), nil, `1.0.0, proven "1.1.0", next "1.2.0": 1.2.0: UpstreamPending`},
		"nothing holds it":                       {env("prod", "staging"), waits(prod(), held("1.1.0")), nil, `1.0.0, proven "1.1.0", next "1.1.0": `},
		"without an upstream, nothing is proven": {env("prod"), waits(prod(), held("1.1.0")), nil, `1.0.0, proven "", next "1.1.0": `},
		"a controller without Environments says nothing": {env("prod", "staging"), older, nil, `1.0.0, proven "", next "1.1.0": `},
		"suspended": {env("prod", "staging"), suspended, nil, `1.0.0, proven "", next "1.1.0": resume`},
		"behind, and its policy offers nothing newer": {env("prod", "staging"), prod(), nil, `1.0.0, proven "", next "": its ImagePolicy offers nothing newer`},
		"nothing runs":                               {env("prod", "staging"), runs("prod", nil), nil, `nothing, proven "", next "": the controller has not looked at it yet`},
		"an Environment that is not ready":           {stalled, runs("prod", nil, "1.1.0"), nil, `1.1.0, proven "", next "": it has no upstream`},
		"a hold says it better than the Environment": {stalled, waits(prod(), held("1.1.0", pending)), nil, `1.0.0, proven "", next "1.1.0": 1.1.0: UpstreamPending`},
		"no Rollout":                                 {env("prod", "staging"), nil, nil, `nothing, proven "", next "": Rollout shop/prod does not exist`},
		"a Rollout that may not be read":             {env("prod", "staging"), nil, map[string]string{"shop": "forbidden"}, `nothing, proven "", next "": forbidden`},
		"after itself":                               {env("prod", "prod"), runs("prod", nil, "1.1.0"), nil, `1.1.0, proven "", next "": it comes after itself, so that no release can reach it: remove one of the upstreams`},
	} {
		t.Run(name, func(t *testing.T) {
			facts := pipeline.Facts{Environments: environments(env("staging"), tt.environment), Rollouts: rollouts(runs("staging", nil, "1.1.0")), Unreadable: tt.unreadable}
			if tt.rollout != nil {
				facts.Rollouts = append(facts.Rollouts, *tt.rollout)
			}
			all := pipeline.Of(facts)[0].Environments
			e := all[len(all)-1]
			if e.Environment != "prod" {
				e = all[0]
			}
			runs := "nothing"
			if e.Runs != nil {
				runs = e.Runs.Version
			}
			got := fmt.Sprintf("%s, proven %q, next %q: %s", runs, e.Proven, e.Next, e.Waits())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowSaysWhyAnUpstreamIsMissing(t *testing.T) {
	github := env("prod", "staging")
	github.Spec.Backend.Type = environmentsv1.BackendGitHub
	for name, tt := range map[string]struct {
		environment environmentsv1.Environment
		unreadable  map[string]string
		want        string
	}{
		"there is none":  {env("prod", "staging"), nil, "there is no such Environment in namespace shop: create it, or correct the upstreams of those that come after it"},
		"not readable":   {env("prod", "a/staging"), map[string]string{"a": "you may not"}, "you may not"},
		"read by others": {github, nil, "it is known to the controller of type github only"},
	} {
		t.Run(name, func(t *testing.T) {
			first := pipeline.Of(pipeline.Facts{Environments: environments(tt.environment), Unreadable: tt.unreadable})[0].Environments[0]
			if diff := cmp.Diff([]string{tt.want}, first.Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowShowsWhatIsRecordedWhereTheRolloutIsNotKnown(t *testing.T) {
	e, since := env("prod"), metav1.NewTime(noon)
	e.Status.Releases = []environmentsv1.Release{{Tag: "1.0.0"}, {Tag: "1.1.0", Digest: "sha256:11", Current: true, State: v1alpha1.BakeInProgress, Since: &since}}
	got := pipeline.Of(pipeline.Facts{Environments: environments(e), Unreadable: map[string]string{"shop": "you may not"}})[0].Environments[0]
	want := pipeline.Environment{
		Environment: "prod", Namespace: "shop", Rollout: "prod", Object: "prod", Problems: []string{"you may not"},
		Runs: &pipeline.Running{Version: "1.1.0", Digest: "sha256:11", State: v1alpha1.BakeInProgress, Since: since},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowShowsWhatRuns(t *testing.T) {
	e := env("prod")
	e.Status.Releases = []environmentsv1.Release{{Tag: "1.1.0", Current: true, Unhealthy: "HealthCheck shop/smoke"}, {Tag: "1.0.0"}}
	rollout := revisions(runs("prod", nil, "1.1.0"))
	got := pipeline.Of(pipeline.Facts{Environments: environments(e), Rollouts: rollouts(rollout)})[0].Environments[0].Runs
	want := &pipeline.Running{
		Version: "1.1.0", Digest: "sha256:prod1.1.0", Revision: "revision of 1.1.0", State: v1alpha1.BakeSucceeded,
		Since: metav1.NewTime(noon), Unhealthy: "HealthCheck shop/smoke",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
