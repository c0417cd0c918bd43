// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// looks are the last looks at upstreams, by their names.
type looks map[string]gather.Fetched

func (l looks) Last(_ *environmentsv1.Environment, u environmentsv1.Upstream) (gather.Fetched, bool) {
	look, ok := l[u.Environment]
	return look, ok
}

func succeeded(tags ...string) []environmentsv1.Release {
	var all []environmentsv1.Release
	for i, tag := range tags {
		all = append(all, environmentsv1.Release{Tag: tag, Digest: "sha256:" + tag, State: v1alpha1.BakeSucceeded, Current: i == 0})
	}
	return all
}

// prodOf is the Environment of production, after staging in another cluster.
func prodOf(known ...environmentsv1.UpstreamStatus) *environmentsv1.Environment {
	e := fixture.MakeEnvironment("prod").After("staging", fixture.Remote("staging-eu"), fixture.Soak(time.Hour)).Observed().Obj()
	e.Spec.Backend.Type = environmentsv1.BackendOCI
	e.Status.Upstreams = known
	return e
}

func verified(releases []environmentsv1.Release) environmentsv1.UpstreamStatus {
	return environmentsv1.UpstreamStatus{
		Environment: "staging", Source: "shop/staging-eu/shop/staging", Sequence: 7, Releases: releases,
		ObservedDigest: environment.Observed(7, releases), VerifiedTime: &metav1.Time{Time: fixture.Noon},
	}
}

// says describes what was read of the only upstream.
func says(u upstream.Upstream) string {
	var tags []string
	for i := range u.Releases {
		tags = append(tags, u.Releases[i].Tag)
	}
	text := fmt.Sprintf("says [%s]", strings.Join(tags, " "))
	if !u.Seen.IsZero() {
		text += ", seen"
	}
	if u.Problem != nil {
		text += ", " + u.Problem.Reason + ": " + u.Problem.Message
	}
	return text
}

func TestUpstreamInAnotherCluster(t *testing.T) {
	away := &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: "the registry is away"}
	other, broken := verified(succeeded("1.0.0")), verified(succeeded("1.0.0"))
	other.Source = "shop/staging-us/shop/staging"
	broken.Reason, broken.Message = environmentsv1.UpstreamNotTrustedReason, "no key signed it"
	for name, test := range map[string]struct {
		known *environmentsv1.UpstreamStatus
		looks looks
		want  string
	}{
		"nothing was ever read": {
			nil, nil, "says [], UpstreamUnreadable: the report of staging in registry.example.com/promotions/staging has not been read yet: " +
				"the controller environment looks for it",
		},
		"it is recorded":                     {new(verified(succeeded("1.0.0"))), nil, "says [1.0.0], seen"},
		"it is recorded, and not trusted":    {&broken, nil, "says [1.0.0], seen, UpstreamNotTrusted: no key signed it"},
		"it was recorded of another cluster": {&other, nil, "says [], UpstreamUnreadable: the report of staging in registry.example.com/promotions/staging has not been read yet: the controller environment looks for it"},
		"it says something else now": {
			new(verified(succeeded("1.0.0"))), looks{"staging": {Sequence: 8, Releases: succeeded("1.1.0", "1.0.0")}}, "says [1.1.0 1.0.0]",
		},
		"it says the same in a newer report": {
			new(verified(succeeded("1.0.0"))), looks{"staging": {Sequence: 8, Releases: succeeded("1.0.0")}}, "says [1.0.0]",
		},
		"it is the same report": {
			new(verified(succeeded("1.0.0"))), looks{"staging": {Sequence: 7, Releases: succeeded("1.0.0")}}, "says [1.0.0], seen",
		},
		"it cannot be read now": {
			new(verified(succeeded("1.0.0"))), looks{"staging": {Problem: away}}, "says [1.0.0], seen, UpstreamUnreadable: the registry is away",
		},
		"it can be read again": {&broken, looks{"staging": {Sequence: 8, Releases: succeeded("1.0.0")}}, "says [1.0.0]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := prodOf()
			if test.known != nil {
				e = prodOf(*test.known)
			}
			read, err := gather.Gatherer{Reports: test.looks}.Environment(t.Context(), e)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Problem).To(BeNil())
			g.Expect(says(read.Upstreams[0])).To(Equal(test.want))
			g.Expect(read.Upstreams[0].Sequence).To(Equal(test.looks["staging"].Sequence), "the number of the report that says it")
		})
	}
}

// TestSlowRegistryConfirmsAnUpstream: a look counts from its beginning, and may take longer
// than the interval of the Environment.
func TestSlowRegistryConfirmsAnUpstream(t *testing.T) {
	for seconds, want := range map[int]bool{30: true, 31: false} {
		g := NewWithT(t)
		s := gather.Snapshot{Input: promotion.Input{Now: fixture.Noon}}
		e := prodOf(verified(succeeded("1.0.0")))
		e.Spec.RequeueInterval = &metav1.Duration{Duration: 10 * time.Second}
		read, err := gather.Gatherer{}.Environment(t.Context(), e)
		g.Expect(err).NotTo(HaveOccurred())
		s.Upstreams.Environments = []upstream.Environment{read}
		found := looks{"staging": {At: fixture.Noon.Add(-time.Duration(seconds) * time.Second), Sequence: 7, Releases: succeeded("1.0.0")}}
		confirmed, err := gather.Gatherer{Reports: found}.ConfirmUpstreams(t.Context(), &s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(confirmed).To(Equal(want), "%d seconds ago", seconds)
	}
}

// TestSilenceIsKnownWithoutASoakTime: a release that bakes there waits for news, too.
func TestSilenceIsKnownWithoutASoakTime(t *testing.T) {
	g := NewWithT(t)
	e := prodOf(verified(succeeded("1.0.0")))
	e.Spec.Upstreams[0].SoakTime = nil
	read, err := gather.Gatherer{}.Environment(t.Context(), e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(says(read.Upstreams[0])).To(Equal("says [1.0.0], seen"))
}

func TestOnlyARecentLookConfirmsAnUpstream(t *testing.T) {
	away := &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: "the registry is away"}
	at := func(ago time.Duration, tags ...string) looks {
		return looks{"staging": {At: fixture.Noon.Add(-ago), Sequence: 7, Releases: succeeded(tags...)}}
	}
	for name, test := range map[string]struct {
		looks     looks
		confirmed bool
		want      string
	}{
		"nobody has looked":            {nil, false, "says [1.0.0], seen"},
		"it was confirmed a while ago": {at(time.Minute+time.Second, "1.0.0"), false, "says [1.0.0], seen"},
		"it was confirmed just now":    {at(time.Minute, "1.0.0"), true, "says [1.0.0], seen"},
		"it says something else now":   {at(0, "1.1.0"), true, "says [1.1.0]"},
		"it cannot be read now": {
			looks{"staging": {At: fixture.Noon.Add(-time.Hour), Sequence: 7, Releases: succeeded("1.0.0"), Problem: away}}, true,
			"says [1.0.0], seen, UpstreamUnreadable: the registry is away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := gather.Snapshot{Input: promotion.Input{Now: fixture.Noon}}
			read, err := gather.Gatherer{}.Environment(t.Context(), prodOf(verified(succeeded("1.0.0"))))
			g.Expect(err).NotTo(HaveOccurred())
			s.Upstreams.Environments = []upstream.Environment{read}
			confirmed, err := gather.Gatherer{Reports: test.looks}.ConfirmUpstreams(t.Context(), &s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(confirmed).To(Equal(test.confirmed))
			g.Expect(says(s.Upstreams.Environments[0].Upstreams[0])).To(Equal(test.want))
		})
	}
}
