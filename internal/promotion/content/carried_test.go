// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pulling returns an OCIRepository that has pulled a revision.
func pulling(name, revision string) content.Target {
	t := target("OCIRepository", name, v1alpha1.TargetPending)
	t.Pulled = revision
	return t
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
	all := func(targets ...content.Target) content.Targets { return content.Targets{All: targets} }
	carried := func(version string, target content.Target) content.Targets {
		return content.Targets{All: []content.Target{target}, Carried: []string{version}}
	}
	adopting := func() *fixture.RolloutBuilder { return rollout().FirstRelease(v1alpha1.FirstReleaseApplied) }
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		targets content.Targets
		want    string
	}{
		"of a target without a tag": {rollout(), all(pullingUntagged("shop", "latest@sha256:a")), untagged},
		"of a target with the tag of another writer": {
			rollout(), all(pulling("shop", "1.0.0@sha256:a")),
			"OCIRepository shop runs 1.0.0, which was never promoted: it runs until the first promotion; " +
				"to end this now, pin a release in spec.wantedVersion",
		},
		"of a target with another field that Flux prefers": {
			rollout(), all(outranked),
			"OCIRepository shop runs 1.4.0, which was never promoted: spec.ref.semver outranks spec.ref.tag in Flux: remove it",
		},
		"of each target": {
			rollout(), all(pullingUntagged("shop", "latest@sha256:a"), target("Kustomization", "apps", v1alpha1.TargetPending), pulling("jobs", "nightly")),
			untagged + "; OCIRepository jobs runs nightly, which was never promoted: it runs until the first promotion; " +
				"to end this now, pin a release in spec.wantedVersion",
		},
		"but nothing was pulled":                           {rollout(), all(pulling("shop", ""), target("Kustomization", "apps", v1alpha1.TargetPending)), ""},
		"but there is a history":                           {rollout().History(entry("1.0.0")), all(pullingUntagged("shop", "latest@sha256:a")), ""},
		"but the history was lost":                         {rollout(), content.Targets{All: []content.Target{pulling("shop", "1.0.0@sha256:a")}, Owned: []string{"1.0.0"}}, ""},
		"but the history begins with it":                   {adopting(), carried("latest", pulling("shop", "latest@sha256:a")), ""},
		"but the history begins with what Flux pulls next": {adopting(), carried("1.1.0", pulling("shop", "1.0.0@sha256:a")), ""},
		"which the history cannot begin with":              {adopting(), all(pullingUntagged("shop", "latest@sha256:a")), untagged},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if problem := (content.Running{Rollout: test.rollout.Obj(), Targets: test.targets}).NotPromotedProblem(); problem != nil {
				got = problem.Message
				diff(t, v1alpha1.NotPromotedReason, problem.Reason)
			}
			diff(t, test.want, got)
		})
	}
}
