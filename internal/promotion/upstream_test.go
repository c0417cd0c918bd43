// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// environments sets the Environments that name the Rollout.
func (s *situation) environments(all ...*ruled) *situation {
	for _, e := range all {
		s.input.Upstreams.Environments = append(s.input.Upstreams.Environments, upstream.Environment(*e))
	}
	return s
}

func (s *situation) said(why string) *situation {
	s.input.Rollout.Annotations[v1alpha1.DeployMessageAnnotation] = why
	return s
}

// ruled builds an Environment with what its upstreams say.
type ruled upstream.Environment

func prod(upstreams ...upstream.Upstream) *ruled {
	e := &environmentsv1.Environment{}
	e.Name = "prod"
	return &ruled{Environment: e, Upstreams: upstreams}
}

func (e *ruled) oneOf() *ruled {
	e.Spec.Availability = environmentsv1.OneOfUpstreams
	return e
}

func (e *ruled) byRevision() *ruled {
	e.Spec.MatchBy = environmentsv1.MatchByRevision
	return e
}

func (e *ruled) onlyCurrent() *ruled {
	e.Spec.Selection = environmentsv1.SelectCurrent
	return e
}

func (e *ruled) afterBypass(then environmentsv1.AfterBypass) *ruled {
	e.Spec.AfterBypass = then
	return e
}

func (e *ruled) manual() *ruled {
	e.Spec.Promotion = environmentsv1.PromoteManually
	return e
}

func (e *ruled) bypass(b environmentsv1.Bypass) *ruled {
	e.Spec.Bypass = b
	return e
}

func (e *ruled) broken(why string) *ruled {
	e.Problem = &verdict.Problem{Message: why}
	return e
}

// after returns an upstream of type After; the first of its releases is current.
func after(name string, releases ...environmentsv1.Release) upstream.Upstream {
	if len(releases) > 0 {
		releases[0].Current = true
	}
	return upstream.Upstream{
		Upstream: environmentsv1.Upstream{Environment: name, Type: environmentsv1.After}, Releases: releases, Seen: noon,
	}
}

func parallel(name string, releases ...environmentsv1.Release) upstream.Upstream {
	u := after(name, releases...)
	u.Type = environmentsv1.Parallel
	return u
}

func soaking(d time.Duration, u upstream.Upstream) upstream.Upstream {
	u.SoakTime = &metav1.Duration{Duration: d}
	return u
}

func unknownUpstream(name, why string) upstream.Upstream {
	u := after(name)
	u.Problem = &verdict.Problem{Message: why}
	return u
}

// imageOf returns the digest that a tag has in every environment of these tests.
func imageOf(tag string) string { return "sha256:" + tag }

func there(tag string, state v1alpha1.BakeStatus, changes ...func(*environmentsv1.Release)) environmentsv1.Release {
	r := environmentsv1.Release{Tag: tag, Digest: imageOf(tag), State: state}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func proven(tag string, changes ...func(*environmentsv1.Release)) environmentsv1.Release {
	return there(tag, v1alpha1.BakeSucceeded, changes...)
}

func by(evidence environmentsv1.Evidence) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Evidence = evidence }
}

func atLeast(evidence environmentsv1.Evidence, u upstream.Upstream) upstream.Upstream {
	u.MinimumEvidence = evidence
	return u
}

func from(t time.Time) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Since = wireTime(t) }
}

func until(t time.Time) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Until = wireTime(t) }
}

func soakedBefore(d time.Duration) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.LongestSoak = &metav1.Duration{Duration: d} }
}

func soaked(d time.Duration) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Soaked = &metav1.Duration{Duration: d} }
}

func messaged(text string) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Message = text }
}

func unwell(text string) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Unhealthy = text }
}

func wentBack(text string) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Withdrawn = text }
}

func current(r *environmentsv1.Release) { r.Current = true }

func withDigest(digest string) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Digest = digest }
}

func withRevision(revision string) func(*environmentsv1.Release) {
	return func(r *environmentsv1.Release) { r.Revision = revision }
}

// offered returns a Rollout that runs 1.3.0 and knows 1.4.0 by the digest that it has in
// every environment.
func offered() *fixture.RolloutBuilder {
	return rollout().Releases(known("1.3.0"), known("1.4.0")).History(entry("1.3.0").Succeeded())
}

func known(tag string) v1alpha1.VersionInfo { return release(tag).Digest(imageOf(tag)).Obj() }

func TestReleaseWaitsUntilTheUpstreamHasProvenIt(t *testing.T) {
	pending := func(message string) []verdict.Hold {
		return []verdict.Hold{{Reason: environmentsv1.UpstreamPendingReason, Message: message}}
	}
	held := func(reason, message string) []verdict.Hold {
		return []verdict.Hold{{Reason: reason, Message: message}}
	}
	deploying, baking, failed := v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeFailed
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"proven: it goes": {given(offered()).environments(prod(after("staging", proven("1.4.0")))), nil},
		"nothing was deployed there": {
			given(offered()).environments(prod(after("staging", proven("1.4.0", by(environmentsv1.EvidenceNone))))),
			pending("staging has not deployed 1.4.0: no Flux object there is annotated with its Rollout"),
		},
		"nothing was deployed there, and now it runs another release": {
			given(offered()).environments(prod(after("staging", proven("1.5.0"), proven("1.4.0", by(environmentsv1.EvidenceNone))))),
			held(environmentsv1.UpstreamSkippedReason, "staging has not deployed 1.4.0: no Flux object there is annotated with its Rollout"),
		},
		"it was only applied, and must be healthy": {
			given(offered()).environments(prod(atLeast(environmentsv1.EvidenceHealthy, after("staging", proven("1.4.0", onlyApplied))))),
			pending("staging has proven 1.4.0 only by evidence Applied, and spec.upstreams asks for Healthy"),
		},
		"it baked, and must be healthy": {
			given(offered()).environments(prod(atLeast(environmentsv1.EvidenceHealthy, after("staging", proven("1.4.0", by(environmentsv1.EvidenceBaked)))))), nil,
		},
		"the upstream has no release": {
			given(offered()).environments(prod(after("staging"))), pending("waits for staging, which has no release yet"),
		},
		"nothing is known of it": {
			given(offered()).environments(prod(after("staging", proven("1.3.0")))), pending("waits for staging, which runs 1.3.0"),
		},
		"Flux applies it": {
			given(offered()).environments(prod(after("staging", there("1.4.0", deploying, from(eleven))))),
			pending("waits for staging: Flux applies it there since 2026-03-02T11:00:00Z"),
		},
		"it bakes": {
			given(offered()).environments(prod(after("staging", there("1.4.0", baking, from(eleven), until(one))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamPendingReason, Changes: noon.Add(2*time.Hour + 5*time.Minute),
				Message: "waits for staging: it bakes there since 2026-03-02T11:00:00Z, until 2026-03-02T13:00:00Z",
			}},
		},
		"it should have baked for long enough, an instant before that is said": {
			given(offered()).at(noon.Add(2*time.Hour + 5*time.Minute - instant)).environments(prod(after("staging", there("1.4.0", baking, from(eleven), until(one))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamPendingReason, Changes: noon.Add(2*time.Hour + 5*time.Minute),
				Message: "waits for staging: it bakes there since 2026-03-02T11:00:00Z, until 2026-03-02T13:00:00Z",
			}},
		},
		"it should have baked for long enough": {
			given(offered()).at(noon.Add(2*time.Hour + 5*time.Minute)).environments(prod(after("staging", there("1.4.0", baking, from(eleven), until(one))))),
			pending("waits for staging: it bakes there since 2026-03-02T11:00:00Z, until 2026-03-02T13:00:00Z; " +
				"staging has not reported since 2026-03-02T12:00:00Z"),
		},
		"it bakes for longer than anybody lives": {
			given(offered()).environments(prod(after("staging", there("1.4.0", baking, from(eleven), until(noon.AddDate(800, 0, 0)))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamPendingReason, Changes: noon.Add(10*365*24*time.Hour + 5*time.Minute),
				Message: "waits for staging: it bakes there since 2026-03-02T11:00:00Z, until 2826-03-02T12:00:00Z",
			}},
		},
		"it bakes, and ended before it began": {
			given(offered()).environments(prod(after("staging", there("1.4.0", baking, from(one), until(eleven))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamPendingReason, Changes: noon.Add(5 * time.Minute),
				Message: "waits for staging: it bakes there since 2026-03-02T13:00:00Z, until 2026-03-02T11:00:00Z",
			}},
		},
		"it has failed": {
			given(offered()).environments(prod(after("staging", there("1.4.0", failed, messaged("3 of 9 tests fail"))))),
			held(environmentsv1.UpstreamFailedReason, "1.4.0 failed in staging: 3 of 9 tests fail"),
		},
		"it has become unhealthy": {
			given(offered()).environments(prod(after("staging", proven("1.4.0", unwell("HealthCheck shop/smoke"))))),
			pending("waits for staging, where it is unhealthy: HealthCheck shop/smoke"),
		},
		"another image by the same tag": {
			given(offered()).environments(prod(after("staging", proven("1.4.0", withDigest("sha256:other"))))),
			pending("waits for staging, which runs another image by the tag 1.4.0"),
		},
		"the same image by another tag: it goes": {
			given(offered()).environments(prod(after("staging", proven("v1.4", withDigest(imageOf("1.4.0")))))), nil,
		},
		"another tag of a digest that failed": {
			given(offered()).environments(prod(after("staging", proven("1.3.0"), there("1.4.0-rc.1", failed, withDigest(imageOf("1.4.0")))))),
			held(environmentsv1.UpstreamFailedReason, "1.4.0 failed in staging"),
		},
		"the digest is not known here": {
			given(rollout().Ledger("1.3.0", "1.4.0").History(entry("1.3.0").Succeeded())).environments(prod(after("staging", proven("1.4.0")))),
			held(environmentsv1.UpstreamUnknownReason, "the digest of 1.4.0 is not known here: set spec.digestReflectionPolicy of the ImagePolicy"),
		},
		"the digest is not known there": {
			given(offered()).environments(prod(after("staging", proven("1.4.0", withDigest(""))))),
			held(environmentsv1.UpstreamUnknownReason, "the digest of 1.4.0 is not known in staging: there, set spec.digestReflectionPolicy of the ImagePolicy"),
		},
		"built again from the same revision: it goes by Revision": {
			given(rollout().Releases(known("1.3.0"), release("1.4.0").Digest("sha256:own").Revision("3f2a").Obj()).History(entry("1.3.0").Succeeded())).
				environments(prod(after("staging", proven("1.4.0", withRevision("3f2a")))).byRevision()), nil,
		},
		"an empty revision connects nothing": {
			given(offered()).environments(prod(after("staging", proven("1.4.0"))).byRevision()),
			held(environmentsv1.UpstreamUnknownReason, "the revision of 1.4.0 is not known here: label the image with org.opencontainers.image.revision"),
		},
		"a revision that is not known there": {
			given(rollout().Releases(known("1.3.0"), release("1.4.0").Digest("sha256:own").Revision("3f2a").Obj()).History(entry("1.3.0").Succeeded())).
				environments(prod(after("staging", proven("1.4.0"))).byRevision()),
			held(environmentsv1.UpstreamUnknownReason, "the revision of 1.4.0 is not known in staging: there, label the image with org.opencontainers.image.revision"),
		},
		"cancelled there, which says nothing of it": {
			given(offered()).environments(prod(after("staging", proven("1.3.0"), there("1.4.0", v1alpha1.BakeCancelled)))),
			pending("waits for staging, which runs 1.3.0"),
		},
		"a type that is not known counts as After": {
			given(offered()).environments(prod(upstream.Upstream{
				Upstream: environmentsv1.Upstream{Environment: "staging", Type: "Beside"}, Releases: []environmentsv1.Release{proven("1.3.0", current)},
			})), pending("waits for staging, which runs 1.3.0"),
		},
		"skipped": {
			given(offered()).environments(prod(after("staging", proven("1.5.0")))),
			held(environmentsv1.UpstreamSkippedReason, "staging skipped 1.4.0 for 1.5.0"),
		},
		"left after it was proven: it still goes": {
			given(offered()).environments(prod(after("staging", proven("1.5.0"), proven("1.4.0")))), nil,
		},
		"left, and only what runs there may come": {
			given(offered()).environments(prod(after("staging", proven("1.5.0"), proven("1.4.0"))).onlyCurrent()),
			held(environmentsv1.UpstreamSkippedReason, "staging has left 1.4.0 for 1.5.0, and spec.selection of Environment prod takes only what runs there"),
		},
		"it runs there, and only that may come: it goes": {
			given(offered()).environments(prod(after("staging", proven("1.4.0"))).onlyCurrent()), nil,
		},
		"withdrawn, and only what runs there may come": {
			given(offered()).environments(prod(after("staging", proven("1.3.0"), proven("1.4.0", wentBack("went back to 1.3.0")))).onlyCurrent()),
			held(environmentsv1.UpstreamWithdrawnReason, "1.4.0 no longer counts in staging, which went back to 1.3.0"),
		},
		"withdrawn": {
			given(offered()).environments(prod(after("staging", proven("1.3.0"), proven("1.4.0", wentBack("went back to 1.3.0, by alice"))))),
			held(environmentsv1.UpstreamWithdrawnReason, "1.4.0 no longer counts in staging, which went back to 1.3.0, by alice"),
		},
		"promoted there again after it was withdrawn": {
			given(offered()).environments(prod(after("staging", there("1.4.0", deploying, from(eleven), wentBack("went back to 1.3.0"))))),
			pending("waits for staging: Flux applies it there since 2026-03-02T11:00:00Z"),
		},
		"the upstream cannot be read": {
			given(offered()).environments(prod(unknownUpstream("staging", "Environment shop/staging does not exist"))),
			held(environmentsv1.UpstreamUnknownReason, "Environment shop/staging does not exist"),
		},
		"the Environment cannot be used": {
			given(offered()).environments(prod(after("staging", proven("1.4.0"))).broken("it is broken")),
			held(environmentsv1.UpstreamUnknownReason, "it is broken"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, promotion.Decide(test.given.in()).Candidates[0].Holds)
		})
	}
}

func TestSoakCountsOnlyTheOwnClockAndWhatTheUpstreamHasMeasured(t *testing.T) {
	soaks := func(d time.Duration) *situation {
		return given(offered()).environments(prod(soaking(2*time.Hour, after("staging", proven("1.4.0", soaked(d))))))
	}
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"measured there, and the rest here": {
			soaks(90 * time.Minute),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamSoakingReason, Message: "soaks in staging for 2h0m0s, until 2026-03-02T12:30:00Z", Until: noon.Add(30 * time.Minute),
			}},
		},
		"an instant before it is over": {
			soaks(90 * time.Minute).at(noon.Add(30*time.Minute - instant)),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamSoakingReason, Message: "soaks in staging for 2h0m0s, until 2026-03-02T12:30:00Z", Until: noon.Add(30 * time.Minute),
			}},
		},
		"to the second":      {soaks(90 * time.Minute).at(noon.Add(30 * time.Minute)), nil},
		"all of it measured": {soaks(2 * time.Hour), nil},
		"read for the first time: it is recorded before its end is known": {
			given(offered()).environments(prod(unseen(soaking(2*time.Hour, after("staging", proven("1.4.0", soaked(time.Hour))))))),
			[]verdict.Hold{{Reason: environmentsv1.UpstreamSoakingReason, Message: "soaks in staging for 2h0m0s"}},
		},
		"left too early: time goes on for nothing": {
			given(offered()).at(noon.Add(24 * time.Hour)).
				environments(prod(soaking(2*time.Hour, after("staging", proven("1.5.0"), proven("1.4.0", soaked(20*time.Minute)))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamSkippedReason, Message: "staging left 1.4.0 for 1.5.0 after 20m0s of the soak time of 2h0m0s",
			}},
		},
		"nobody knows what runs there": {
			given(offered()).environments(prod(soaking(2*time.Hour, withoutHistory(proven("1.4.0", soaked(time.Hour)))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamSkippedReason, Message: "staging left 1.4.0 after 1h0m0s of the soak time of 2h0m0s",
			}},
		},
		"it had soaked for long enough before it came back there": {
			given(offered()).environments(prod(soaking(2*time.Hour, after("staging", proven("1.4.0", soaked(0), soakedBefore(2*time.Hour)))))), nil,
		},
		"it had soaked before, but not for long enough: two soaks are not added up": {
			given(offered()).environments(prod(soaking(2*time.Hour, after("staging", proven("1.4.0", soaked(90*time.Minute), soakedBefore(119*time.Minute)))))),
			[]verdict.Hold{{
				Reason: environmentsv1.UpstreamSoakingReason, Message: "soaks in staging for 2h0m0s, until 2026-03-02T12:30:00Z", Until: noon.Add(30 * time.Minute),
			}},
		},
		"left after the soak": {
			given(offered()).environments(prod(soaking(2*time.Hour, after("staging", proven("1.5.0"), proven("1.4.0", soaked(2*time.Hour)))))), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Candidates[0].Holds)
			if len(test.want) > 0 {
				diff(t, test.want[0].Until, d.RecheckAt)
			}
		})
	}
}

func withoutHistory(releases ...environmentsv1.Release) upstream.Upstream {
	u := after("staging")
	u.Releases = releases
	return u
}

func unseen(u upstream.Upstream) upstream.Upstream {
	u.Seen = time.Time{}
	return u
}

func TestSeveralUpstreams(t *testing.T) {
	failed := there("1.4.0", v1alpha1.BakeFailed)
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"All have proven it, and another environment has, too": {
			given(offered()).environments(prod(after("a", proven("1.4.0")), after("b", proven("1.4.0")), after("c", proven("1.5.0"), proven("1.4.0")))), "",
		},
		"All: each that has not is named": {
			given(offered()).environments(prod(after("a", proven("1.4.0")), after("b", proven("1.3.0")), after("c"))),
			"UpstreamPending: waits for b, which runs 1.3.0; waits for c, which has no release yet",
		},
		"All: the most important reason is said first": {
			given(offered()).environments(prod(after("a", proven("1.3.0")), unknownUpstream("b", "b is away"), after("c", failed))),
			"UpstreamFailed: 1.4.0 failed in c; b is away; waits for a, which runs 1.3.0",
		},
		"All: one cannot be read": {
			given(offered()).environments(prod(after("a", proven("1.4.0")), unknownUpstream("b", "b is away"))), "UpstreamUnknown: b is away",
		},
		"OneOf has, and one cannot be read": {
			given(offered()).environments(prod(unknownUpstream("a", "a is away"), after("b", proven("1.4.0"))).oneOf()), "",
		},
		"OneOf: none has": {
			given(offered()).environments(prod(after("a", failed), after("b", proven("1.3.0"))).oneOf()),
			"UpstreamPending: 1.4.0 failed in a; waits for b, which runs 1.3.0",
		},
		"Parallel does not wait":       {given(offered()).environments(prod(parallel("a", proven("1.3.0")), parallel("b"))), ""},
		"Parallel holds what failed":   {given(offered()).environments(prod(parallel("a", failed))), "UpstreamFailed: 1.4.0 failed in a"},
		"Parallel holds next to OneOf": {given(offered()).environments(prod(after("a", proven("1.4.0")), parallel("b", failed)).oneOf()), "UpstreamFailed: 1.4.0 failed in b"},
		"Parallel without a known digest": {
			given(rollout().Ledger("1.3.0", "1.4.0").History(entry("1.3.0").Succeeded())).environments(prod(parallel("a", proven("1.3.0")))),
			"UpstreamUnknown: the digest of 1.4.0 is not known here: set spec.digestReflectionPolicy of the ImagePolicy",
		},
		"Parallel without a digest that is known there": {
			given(offered()).environments(prod(parallel("a", there("1.4.0", v1alpha1.BakeFailed, withDigest(""))))),
			"UpstreamUnknown: the digest of 1.4.0 is not known in a: there, set spec.digestReflectionPolicy of the ImagePolicy",
		},
		"Parallel without a known revision": {
			given(offered()).environments(prod(parallel("a", failed)).byRevision()),
			"UpstreamUnknown: the revision of 1.4.0 is not known here: label the image with org.opencontainers.image.revision",
		},
		"two Environments must both agree": {
			given(offered()).environments(prod(after("a", proven("1.4.0"))), prod(after("b", proven("1.3.0")))),
			"UpstreamPending: waits for b, which runs 1.3.0",
		},
		"the last soak counts with All": {
			given(offered()).environments(prod(soaking(2*time.Hour, after("a", proven("1.4.0"))), soaking(time.Hour, after("b", proven("1.4.0"))))),
			"UpstreamSoaking until 2026-03-02T14:00:00Z: soaks in a for 2h0m0s, until 2026-03-02T14:00:00Z; soaks in b for 1h0m0s, until 2026-03-02T13:00:00Z",
		},
		"the first soak counts with OneOf": {
			given(offered()).environments(prod(soaking(2*time.Hour, after("a", proven("1.4.0"))), soaking(time.Hour, after("b", proven("1.4.0")))).oneOf()),
			"UpstreamSoaking until 2026-03-02T13:00:00Z: soaks in a for 2h0m0s, until 2026-03-02T14:00:00Z; soaks in b for 1h0m0s, until 2026-03-02T13:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, firstHold(promotion.Decide(test.given.in()).Candidates[0]))
		})
	}
}

// firstHold returns the first hold of a candidate as one line; empty if nothing holds it.
func firstHold(v promotion.Verdict) string {
	if v.Eligible() {
		return ""
	}
	hold := v.Holds[0]
	if !hold.Until.IsZero() {
		return hold.Reason + " until " + hold.Until.Format(time.RFC3339) + ": " + hold.Message
	}
	return hold.Reason + ": " + hold.Message
}

func TestProvenReleaseGoesWhileNewerOnesWait(t *testing.T) {
	three := func() *fixture.RolloutBuilder {
		return rollout().Releases(known("1.3.0"), known("1.3.9"), known("1.4.0"), known("1.5.0")).History(entry("1.3.0").Succeeded())
	}
	next := func() *fixture.RolloutBuilder { return three().Strategy(v1alpha1.ReleaseNext) }
	for name, test := range map[string]struct {
		given *situation
		want  string
		holds map[string]string
	}{
		"Newest takes the newest proven one": {
			given(three()).environments(prod(after("staging", proven("1.4.0")))), "Promote 1.4.0",
			map[string]string{"1.5.0": "waits for staging, which runs 1.4.0", "1.3.9": "staging skipped 1.3.9 for 1.4.0"},
		},
		"Next goes on after what the upstream skipped": {
			given(next()).environments(prod(after("staging", proven("1.4.0")))), "Promote 1.4.0",
			map[string]string{"1.5.0": "spec.releaseStrategy takes 1.4.0 first", "1.3.9": "staging skipped 1.3.9 for 1.4.0"},
		},
		"Next goes on after what failed there": {
			given(next()).environments(prod(after("staging", proven("1.4.0"), there("1.3.9", v1alpha1.BakeFailed)))), "Promote 1.4.0",
			map[string]string{"1.5.0": "spec.releaseStrategy takes 1.4.0 first", "1.3.9": "1.3.9 failed in staging"},
		},
		"Next waits for what the upstream still runs": {
			given(next()).environments(prod(after("staging", there("1.3.9", v1alpha1.BakeFailed)))), "Nothing",
			map[string]string{
				"1.5.0": "spec.releaseStrategy takes 1.3.9 first", "1.4.0": "spec.releaseStrategy takes 1.3.9 first", "1.3.9": "1.3.9 failed in staging",
			},
		},
		"Next does not go on while one of several could prove it": {
			given(next()).environments(prod(after("a", proven("1.4.0")), after("b", proven("1.3.0"))).oneOf()), "Nothing",
			map[string]string{
				"1.5.0": "spec.releaseStrategy takes 1.3.9 first", "1.4.0": "spec.releaseStrategy takes 1.3.9 first",
				"1.3.9": "a skipped 1.3.9 for 1.4.0; waits for b, which runs 1.3.0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, settledBy(d).Does)
			diff(t, test.holds, holdsOf(d))
		})
	}
}

func TestFirstReleaseWaitsForItsProofToo(t *testing.T) {
	empty := func() *fixture.RolloutBuilder {
		return rollout().Releases(known("1.3.0"), known("1.4.0"), known("1.5.0"))
	}
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"nothing is proven":               {given(empty()).environments(prod(after("staging"))), "Nothing"},
		"the newest proven one":           {given(empty()).environments(prod(after("staging", proven("1.4.0"), proven("1.3.0")))), "Promote 1.4.0"},
		"the Environment does not exist":  {given(empty()).withoutEnvironment("Environment prod does not exist"), "Nothing"},
		"a pin goes":                      {given(empty().Pin("1.5.0")).environments(prod(after("staging"))), "Promote 1.5.0"},
		"a pin goes without Environment":  {given(empty().Pin("1.5.0")).withoutEnvironment("Environment prod does not exist"), "Promote 1.5.0"},
		"a force goes":                    {given(empty().Annotate(v1alpha1.ForceDeployAnnotation, "1.5.0")).environments(prod(after("staging"))), "Promote 1.5.0"},
		"a lost history is taken over":    {given(empty()).owned("1.3.0").environments(prod(after("staging"))), "Adopt 1.3.0"},
		"a bypass with its reason goes":   {given(empty().Annotate(v1alpha1.BypassGatesAnnotation, "1.5.0")).said("INC-1").environments(prod(after("staging"))), "Promote 1.5.0"},
		"what users promote waits for it": {given(empty()).environments(prod(after("staging", proven("1.4.0"))).manual()), "Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, settledBy(promotion.Decide(test.given.in())).Does)
		})
	}
}

// The registry says the digests of a new Rollout's releases one after the other.
func TestFirstReleaseWaitsForDigestsOfNewerOnes(t *testing.T) {
	fresh := func(newer v1alpha1.VersionInfo) *situation {
		r := rollout().Releases(known("1.3.0"), newer)
		s := given(r).environments(prod(after("staging", proven("1.4.0"), proven("1.3.0"))))
		s.input.Rollout.CreationTimestamp = metav1.Time{Time: noon}
		return s
	}
	unknown := release("1.4.0").Obj()
	d := promotion.Decide(fresh(unknown).at(noon).in())
	diff(t, promotion.Nothing, d.Action)
	diff(t, noon.Add(time.Minute), d.RecheckAt)
	diff(t, "Promote 1.4.0", settledBy(promotion.Decide(fresh(known("1.4.0")).at(noon).in())).Does)
	diff(t, "Promote 1.3.0", settledBy(promotion.Decide(fresh(unknown).at(noon.Add(time.Minute)).in())).Does)
}

func (s *situation) withoutEnvironment(why string) *situation {
	s.input.Upstreams.Problem = why
	return s
}

func TestBypassOfAnEnvironment(t *testing.T) {
	asked := func() *situation { return given(offered().Annotate(v1alpha1.BypassGatesAnnotation, "1.4.0")) }
	unproven := func() *ruled { return prod(after("staging", proven("1.3.0"))) }
	ended := func(reason, message string) []verdict.Note {
		return []verdict.Note{{Reason: reason, Message: v1alpha1.BypassGatesAnnotation + message}}
	}
	needsReason := ended(environmentsv1.BypassNeedsReasonReason,
		" lets 1.4.0 past Environment prod only with a reason: annotate it again, together with rollout.kuberik.com/deploy-message")
	for name, test := range map[string]struct {
		given   *situation
		want    string
		message string
		ended   []verdict.Note
	}{
		"without a reason": {asked().environments(unproven()), "Nothing", "", needsReason},
		"with one": {
			asked().said("INC-1").environments(unproven()), "Promote 1.4.0",
			"the newest eligible release of ImagePolicy shop; gates bypassed manually; Environments bypassed manually: INC-1", nil,
		},
		"where none is required": {
			asked().environments(unproven().bypass(environmentsv1.BypassAllowed)), "Promote 1.4.0",
			"the newest eligible release of ImagePolicy shop; gates bypassed manually; Environments bypassed manually", nil,
		},
		"with words that the dashboard writes by itself": {asked().said("Cleared version pin").environments(unproven()), "Nothing", "", needsReason},
		"with the words that it writes next to a pin":    {asked().said("Pinned to version 1.3.0").environments(unproven()), "Nothing", "", needsReason},
		"of what is no candidate": {
			given(offered().Annotate(v1alpha1.BypassGatesAnnotation, "9.9.9")).said("INC-1").environments(unproven()), "Nothing", "",
			ended(environmentsv1.BypassEndedReason, ` names "9.9.9", which is not a candidate: annotate it again once it is`),
		},
		"if another one goes first": {
			given(offered().Annotate(v1alpha1.BypassGatesAnnotation, "1.4.0").Pin("1.2.0")).said("INC-1").environments(unproven()), "Promote 1.2.0",
			"INC-1", ended(environmentsv1.BypassEndedReason, ` names "1.4.0", and 1.2.0 was promoted first: annotate it again to let it go now`),
		},
		"denied": {
			asked().said("INC-1").environments(unproven().bypass(environmentsv1.BypassDenied)), "Nothing", "",
			ended(environmentsv1.BypassDeniedReason, " does not let 1.4.0 past Environment prod: its spec.bypass is Deny"),
		},
		"of what is proven: nothing is refused": {
			asked().environments(prod(after("staging", proven("1.4.0")))), "Promote 1.4.0",
			"the newest eligible release of ImagePolicy shop; gates bypassed manually", nil,
		},
		"past an Environment that leaves promotions to users": {
			asked().said("INC-1").environments(prod(after("staging", proven("1.4.0"))).manual()), "Promote 1.4.0",
			"the newest eligible release of ImagePolicy shop; gates bypassed manually; Environments bypassed manually: INC-1", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			d := promotion.Decide(in)
			diff(t, test.want, settledBy(d).Does)
			diff(t, test.ended, d.Answers)
			diff(t, d.Action.Promotes() || test.ended != nil, slices.Contains(d.Consumed, v1alpha1.BypassGatesAnnotation))
			if d.Action.Promotes() {
				history, err := promotion.Record(in, d)
				if err != nil {
					t.Fatal(err)
				}
				diff(t, test.message, *history[0].Message)
			}
		})
	}
}

func TestPromotionThatIsLeftToUsers(t *testing.T) {
	manual := func(releases ...environmentsv1.Release) *ruled {
		return prod(after("staging", releases...)).manual()
	}
	asked := func(tag string) *situation { return given(offered().Annotate(v1alpha1.PromoteAnnotation, tag)) }
	for name, test := range map[string]struct {
		given    *situation
		want     string
		hold     string
		declined *verdict.Problem
		answers  []verdict.Note
	}{
		"waits": {
			given: given(offered()).environments(manual(proven("1.4.0"))), want: "Nothing",
			hold: "AwaitingPromotion: Environment prod leaves promotions to users: annotate the Rollout with rollout.kuberik.com/promote: 1.4.0",
		},
		"goes when it is proven": {given: asked("1.4.0").environments(manual(proven("1.4.0"))), want: "Promote 1.4.0"},
		"waits for its proof": {
			given: asked("1.4.0").environments(manual(proven("1.3.0"))), want: "Nothing", hold: "UpstreamPending: waits for staging, which runs 1.3.0",
		},
		"is held by gates all the same": {
			given: asked("1.4.0").gates(gate("qa").Closed()).environments(manual(proven("1.4.0"))), want: "Nothing",
			hold: "SomeGatesBlocking: not passing: RolloutGate qa",
		},
		"names what does not exist": {
			given: asked("9.9.9").environments(manual(proven("1.4.0"))), want: "Nothing",
			hold: "AwaitingPromotion: Environment prod leaves promotions to users: annotate the Rollout with rollout.kuberik.com/promote: 1.4.0",
			declined: &verdict.Problem{
				Reason:  v1alpha1.NoSuchCandidateReason,
				Message: `rollout.kuberik.com/promote names "9.9.9", which is not a candidate; the request takes effect once it is`,
			},
		},
		"names what is deployed": {
			given: asked("1.3.0").environments(manual(proven("1.4.0"))), want: "Nothing",
			hold: "AwaitingPromotion: Environment prod leaves promotions to users: annotate the Rollout with rollout.kuberik.com/promote: 1.4.0",
			answers: []verdict.Note{{
				Reason: environmentsv1.PromoteNotNeededReason, Message: "rollout.kuberik.com/promote names 1.3.0, which is deployed already",
			}},
		},
		"is not needed where promotions are automatic": {
			given: asked("1.4.0").gates(gate("qa").Closed()).environments(prod(after("staging", proven("1.4.0")))), want: "Nothing",
			hold: "SomeGatesBlocking: not passing: RolloutGate qa",
			answers: []verdict.Note{{
				Reason: environmentsv1.PromoteNotNeededReason, Message: "rollout.kuberik.com/promote has no effect: no Environment leaves promotions to users",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, settledBy(d).Does)
			diff(t, test.hold, firstHold(d.Candidates[0]))
			diff(t, test.declined, d.Declined)
			diff(t, test.answers, d.Answers)
		})
	}
}

// 1.3.0 is a hotfix that went past staging. 1.4.0, which staging has proven meanwhile, was built
// before it.
func TestWhatFollowsABypassWaitsForAPerson(t *testing.T) {
	hotfix := func(grounds v1alpha1.Grounds, lifted ...v1alpha1.LiftedHold) *fixture.RolloutBuilder {
		return rollout().Releases(known("1.3.0"), known("1.4.0")).History(entry("1.3.0").Grounds(grounds, lifted...).Succeeded())
	}
	past := func() *fixture.RolloutBuilder { return hotfix(v1alpha1.GroundsNewest, v1alpha1.LiftedUpstreams) }
	proves := func() *ruled { return prod(after("staging", proven("1.4.0"))) }
	waits := "AwaitingPromotion: 1.3.0 went past Environment prod, and what follows may lack its changes: annotate the Rollout with rollout.kuberik.com/promote: 1.4.0"
	for name, test := range map[string]struct {
		given *situation
		want  string
		hold  string
	}{
		"waits":                               {given(past()).environments(proves()), "Nothing", waits},
		"after a force":                       {given(hotfix(v1alpha1.GroundsForced, v1alpha1.LiftedUpstreams)).environments(proves()), "Nothing", waits},
		"not after what was proven":           {given(hotfix(v1alpha1.GroundsForced)).environments(proves()), "Promote 1.4.0", ""},
		"unless it is to proceed":             {given(past()).environments(proves().afterBypass(environmentsv1.AfterBypassProceed)), "Promote 1.4.0", ""},
		"unless nothing comes before":         {given(past()).environments(prod()), "Promote 1.4.0", ""},
		"goes when a user promotes it":        {given(past().Annotate(v1alpha1.PromoteAnnotation, "1.4.0")).environments(proves()), "Promote 1.4.0", ""},
		"goes when another bypass names it":   {given(past().Annotate(v1alpha1.BypassGatesAnnotation, "1.4.0")).said("INC-2").environments(proves()), "Promote 1.4.0", ""},
		"waits for its proof, whoever asks":   {given(past().Annotate(v1alpha1.PromoteAnnotation, "1.4.0")).environments(prod(after("staging", proven("1.3.0")))), "Nothing", "UpstreamPending: waits for staging, which runs 1.3.0"},
		"waits for its proof before a person": {given(past()).environments(prod(after("staging", proven("1.3.0")))), "Nothing", "UpstreamPending: waits for staging, which runs 1.3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, settledBy(d).Does)
			if test.hold != "" {
				diff(t, test.hold, firstHold(d.Candidates[0]))
			}
		})
	}

	forced := promotion.Decide(given(offered().Annotate(v1alpha1.ForceDeployAnnotation, "1.4.0")).environments(prod(after("staging", proven("1.3.0")))).in())
	diff(t, []v1alpha1.LiftedHold{v1alpha1.LiftedUpstreams}, forced.Lifted)
	forced = promotion.Decide(given(offered().Annotate(v1alpha1.ForceDeployAnnotation, "1.4.0")).environments(proves()).in())
	diff(t, []v1alpha1.LiftedHold(nil), forced.Lifted)
}

func TestPromotionByAUserIsSignedByThatUser(t *testing.T) {
	in := given(offered().Annotate(v1alpha1.PromoteAnnotation, "1.4.0").Annotate(v1alpha1.DeployUserAnnotation, "alice")).said("spring prices").
		environments(prod(after("staging", proven("1.4.0"))).manual()).in()
	d := promotion.Decide(in)
	history, err := promotion.Record(in, d)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "spring prices", *history[0].Message)
	diff(t, v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "alice"}, *history[0].TriggeredBy)
	diff(t, []string{v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation, v1alpha1.PromoteAnnotation}, d.Consumed)
}

func TestFirstReleaseSaysWhoseRequestItWas(t *testing.T) {
	empty := func(key string) *situation {
		return given(rollout().Releases(known("1.4.0")).Annotate(key, "1.4.0").Annotate(v1alpha1.DeployUserAnnotation, "alice")).said("INC-1")
	}
	for want, s := range map[string]*situation{
		"the first release of this environment, from ImagePolicy shop; gates bypassed manually; Environments bypassed manually by alice: INC-1": empty(v1alpha1.BypassGatesAnnotation).
			environments(prod(after("staging"))),
		"INC-1": empty(v1alpha1.PromoteAnnotation).environments(prod(after("staging", proven("1.4.0"))).manual()),
	} {
		history, err := promotion.Record(s.in(), promotion.Decide(s.in()))
		if err != nil {
			t.Fatal(err)
		}
		diff(t, want, *history[0].Message)
	}
}

func TestPromotionByAUserUsesUpAnUnblock(t *testing.T) {
	d := promotion.Decide(given(rollout().Releases(known("1.3.0"), known("1.4.0")).History(entry("1.3.0").Failed()).
		Annotate(v1alpha1.PromoteAnnotation, "1.4.0").Annotate(v1alpha1.UnblockFailedAnnotation, "true")).
		environments(prod(after("staging", proven("1.4.0"))).manual()).in())
	diff(t, "Promote 1.4.0", settledBy(d).Does)
	diff(t, []string{v1alpha1.UnblockFailedAnnotation, v1alpha1.PromoteAnnotation}, d.Consumed)
}

func TestEnvironmentsHoldAsGatesDo(t *testing.T) {
	d := promotion.Decide(given(offered()).environments(prod(after("staging", proven("1.3.0"))).manual()).in())
	for _, hold := range d.Candidates[0].Holds {
		if single := (promotion.Verdict{Holds: []verdict.Hold{hold}}); !single.HeldByGates() {
			t.Errorf("%s is not a reason of gates", hold.Reason)
		}
	}
}

func TestSoakIsGrantedAsFarAsSomethingIsHeard(t *testing.T) {
	renewed := func(d time.Duration) func(*environmentsv1.Release) {
		return func(r *environmentsv1.Release) { r.RenewAfter = &metav1.Duration{Duration: d} }
	}
	accepted := func(u upstream.Upstream) upstream.Upstream {
		u.Silence = environmentsv1.SilenceAccepted
		return u
	}
	staging := func(changes ...func(*environmentsv1.Release)) upstream.Upstream {
		return soaking(2*time.Hour, after("staging", proven("1.4.0", append(changes, soaked(time.Hour))...)))
	}
	const counts, silent = "UpstreamSoaking until 2026-03-02T13:00:00Z: soaks in staging for 2h0m0s, until 2026-03-02T13:00:00Z",
		"UpstreamPending: soaks in staging for 2h0m0s; staging has not reported since 2026-03-02T12:00:00Z"
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	for name, test := range map[string]struct {
		upstream upstream.Upstream
		at       time.Time
		want     string
		recheck  time.Time
	}{
		"it counts":                            {staging(renewed(10 * time.Minute)), minutes(19), counts, minutes(20)},
		"nothing more was heard":               {staging(renewed(10 * time.Minute)), minutes(20), silent, time.Time{}},
		"and it would be over by now":          {staging(renewed(10 * time.Minute)), minutes(90), silent, time.Time{}},
		"it is over before more must be heard": {staging(renewed(time.Hour)), minutes(60), "", time.Time{}},
		"and stays so":                         {staging(renewed(time.Hour)), minutes(600), "", time.Time{}},
		"nothing more is announced":            {staging(), minutes(20), counts, minutes(60)},
		"silence is accepted":                  {accepted(staging(renewed(10 * time.Minute))), minutes(20), counts, minutes(60)},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(offered()).environments(prod(test.upstream)).in()
			in.Now = test.at
			d := promotion.Decide(in)
			diff(t, test.want, firstHold(d.Candidates[0]))
			if test.want != "" {
				diff(t, test.recheck, d.RecheckAt)
			}
		})
	}
}
