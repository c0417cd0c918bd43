// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pulling returns an OCIRepository that has pulled a revision.
func pulling(name, revision string) content.Target {
	return content.Target{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: name, State: v1alpha1.TargetPending, Pulled: revision,
	}
}

// pullingUntagged returns one whose tag is not set.
func pullingUntagged(name, revision string) content.Target {
	t := pulling(name, revision)
	t.Unset = true
	return t
}

func TestNotPromotedNamesWhatRunsBeforeTheFirstPromotion(t *testing.T) {
	const untagged = "OCIRepository shop runs latest, which was never promoted: spec.ref.tag is not set, so Flux pulls latest " +
		"until the first promotion; to end this now, pin a release in spec.wantedVersion"
	outranked := pullingUntagged("shop", "1.4.0@sha256:a")
	outranked.State, outranked.Reason, outranked.Message = v1alpha1.TargetConflict, v1alpha1.TargetOutranked, "spec.ref.semver outranks spec.ref.tag in Flux: remove it"
	adopting := func() *fixture.RolloutBuilder { return rollout().FirstRelease(v1alpha1.FirstReleaseApplied) }
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"of a target without a tag": {given(rollout()).targets(pullingUntagged("shop", "latest@sha256:a")), untagged},
		"of a target with the tag of another writer": {
			given(rollout()).targets(pulling("shop", "1.0.0@sha256:a")),
			"OCIRepository shop runs 1.0.0, which was never promoted: it runs until the first promotion; " +
				"to end this now, pin a release in spec.wantedVersion",
		},
		"of a target with another field that Flux prefers": {
			given(rollout()).targets(outranked),
			"OCIRepository shop runs 1.4.0, which was never promoted: spec.ref.semver outranks spec.ref.tag in Flux: remove it",
		},
		"of each target": {
			given(rollout()).targets(pullingUntagged("shop", "latest@sha256:a"), pending("apps"), pulling("jobs", "nightly")),
			untagged + "; OCIRepository jobs runs nightly, which was never promoted: it runs until the first promotion; " +
				"to end this now, pin a release in spec.wantedVersion",
		},
		"but nothing was pulled":                           {given(rollout()).targets(pulling("shop", ""), pending("apps")), ""},
		"but there is a history":                           {given(rollout().History(entry("1.0.0"))).targets(pullingUntagged("shop", "latest@sha256:a")), ""},
		"but the history was lost":                         {given(rollout()).owned("1.0.0").targets(pulling("shop", "1.0.0@sha256:a")), ""},
		"but the history begins with it":                   {given(adopting()).carried("latest").targets(pulling("shop", "latest@sha256:a")), ""},
		"but the history begins with what Flux pulls next": {given(adopting()).carried("1.1.0").targets(pulling("shop", "1.0.0@sha256:a")), ""},
		"which the history cannot begin with":              {given(adopting()).targets(pullingUntagged("shop", "latest@sha256:a")), untagged},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if problem := test.given.in().Content().NotPromotedProblem(); problem != nil {
				got = problem.Message
				diff(t, v1alpha1.NotPromotedReason, problem.Reason)
			}
			diff(t, test.want, got)
		})
	}
}
