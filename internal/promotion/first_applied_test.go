// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func unset(name string) content.Target {
	t := pending(name)
	t.Unset = true
	return t
}

func TestFirstReleaseAppliedBeginsWithWhatRuns(t *testing.T) {
	fresh := func() *fixture.RolloutBuilder {
		return rollout().FirstRelease(v1alpha1.FirstReleaseApplied).Ledger("1.0.0", "1.1.0")
	}
	adopted := func(tag string) outcome {
		return outcome{
			Action: promotion.Adopt, Release: tag, Reason: v1alpha1.ReleaseAdoptedReason,
			Message: "spec.firstRelease is Applied; the targets carry this version",
		}
	}
	waits := func(message string) outcome {
		return outcome{Action: promotion.Wait, Reason: v1alpha1.FirstReleaseNotAppliedReason, Message: "spec.firstRelease is Applied" + message}
	}
	nothing := outcome{Action: promotion.Nothing}
	for name, test := range map[string]struct {
		given *situation
		want  outcome
	}{
		"once all targets have applied it":    {given(fresh()).carried("1.0.0").targets(applied("apps"), applied("jobs")), adopted("1.0.0")},
		"though a gate is closed":             {given(fresh()).carried("1.0.0").targets(applied("apps")).gates(gate("manual").Closed()), adopted("1.0.0")},
		"though checks are Unhealthy":         {given(fresh()).carried("1.0.0").targets(applied("apps")).checks(check("db").Unhealthy()), adopted("1.0.0")},
		"even if the ledger does not know it": {given(fresh()).carried("build-7").targets(applied("apps")), adopted("build-7")},
		"even if it was withdrawn":            {given(fresh()).carried("1.0.0").registryHas("1.1.0").targets(applied("apps")), adopted("1.0.0")},
		"though the policy names nothing":     {given(rollout().FirstRelease(v1alpha1.FirstReleaseApplied)).carried("1.0.0").targets(applied("apps")), adopted("1.0.0")},
		"not before Flux has applied it": {
			given(fresh()).carried("1.0.0").targets(pending("apps"), target("jobs", v1alpha1.TargetPending, "is suspended: resume it")),
			waits(": the history begins with 1.0.0 once every target has applied it; " +
				"Kustomization shop-prod/apps has not applied it; Kustomization shop-prod/jobs: is suspended: resume it; if nothing runs yet, set spec.wantedVersion to the first release"),
		},
		"not while Flux fails to apply it": {
			given(fresh()).carried("1.0.0").targets(target("apps", v1alpha1.TargetFailed, "timeout waiting for Deployment/apps")),
			waits(": the history begins with 1.0.0 once every target has applied it; Kustomization shop-prod/apps: timeout waiting for Deployment/apps; if nothing runs yet, set spec.wantedVersion to the first release"),
		},
		"not while there is no target": {
			given(fresh()),
			waits(", and no Flux object is annotated with this Rollout: annotate the one that runs, or set spec.wantedVersion"),
		},
		"not while targets cannot be read":    {given(fresh()).carried("1.0.0").targetsUnreadable(), nothing},
		"not while gates cannot be read":      {given(fresh()).carried("1.0.0").targets(applied("apps")).gatesUnreadable(), nothing},
		"not while the policy cannot be used": {given(fresh()).carried("1.0.0").targets(applied("apps")).policyUnreadable(), nothing},
		"unless a user chooses another release": {
			given(fresh().Pin("1.1.0")).carried("1.0.0").targets(applied("apps")),
			outcome{
				Action: promotion.Promote, Release: "1.1.0", Manual: true,
				Reason: v1alpha1.PinnedReason, Message: "pinned manually in spec.wantedVersion",
			},
		},
		"unless the controller wrote it, and the history was lost": {
			given(fresh()).carried("1.0.0").owned("1.0.0").targets(pending("apps")),
			outcome{
				Action: promotion.Adopt, Release: "1.0.0", Reason: v1alpha1.ReleaseAdoptedReason,
				Message: "the history was lost; the targets carry this version",
			},
		},
		"unless it is Newest": {
			given(rollout().FirstRelease(v1alpha1.FirstReleaseNewest).Ledger("1.0.0", "1.1.0")).targets(applied("apps")),
			outcome{
				Action: promotion.Promote, Release: "1.1.0", Reason: v1alpha1.EligibleReason,
				Message: "the first release of this environment, from ImagePolicy shop",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, outcomeOf(d))
			if d.Problem != nil {
				t.Errorf("unexpected problem: %v", d.Problem)
			}
		})
	}
}

func TestFirstReleaseAppliedAsksWhichOneRuns(t *testing.T) {
	untagged := content.Target{Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "jobs", Pulled: "latest@sha256:a", Unset: true}
	for name, test := range map[string]struct {
		carried []string
		target  content.Target
		want    verdict.Problem
	}{
		"a target that carries none, where anything may run": {
			[]string{"1.0.0"}, unset("jobs"),
			verdict.Problem{
				Reason: v1alpha1.FirstReleaseUnknownReason,
				Message: "spec.firstRelease is Applied, and Kustomization shop-prod/jobs carries no version: " +
					"set the one that runs there or in spec.wantedVersion; if nothing runs yet, set spec.firstRelease to Newest",
			},
		},
		"a target that carries none, and says what Flux has pulled": {
			nil, untagged,
			verdict.Problem{
				Reason: v1alpha1.FirstReleaseUnknownReason,
				Message: "spec.firstRelease is Applied, and OCIRepository shop-prod/jobs carries no version, but runs latest@sha256:a, " +
					"which was never promoted: set the tag of what runs there, or a release in spec.wantedVersion",
			},
		},
		"targets that disagree": {
			[]string{"1.0.0", "1.1.0"}, pending("jobs"),
			verdict.Problem{
				Reason: v1alpha1.TargetsDisagreeReason,
				Message: "spec.firstRelease is Applied, and the targets carry different versions (1.0.0, 1.1.0): " +
					"set spec.wantedVersion to the right one",
			},
		},
		"a value that is no tag": {
			[]string{"v1/2"}, pending("jobs"),
			verdict.Problem{
				Reason: v1alpha1.FirstReleaseUnknownReason,
				Message: `spec.firstRelease is Applied, and the targets carry "v1/2", which cannot be a tag: ` +
					"set spec.wantedVersion to the right one",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(rollout().FirstRelease(v1alpha1.FirstReleaseApplied).Ledger("1.0.0", "1.1.0")).carried(test.carried...).targets(applied("apps"), test.target).in()
			d := promotion.Decide(in)
			diff(t, promotion.Nothing, d.Action)
			diff(t, &test.want, d.Problem)
		})
	}
}

// Each release shows why it waits, whatever the gates allow.
func TestFirstReleaseAppliedHoldsEveryCandidate(t *testing.T) {
	in := given(rollout().FirstRelease(v1alpha1.FirstReleaseApplied).Ledger("1.0.0", "1.1.0")).carried("1.0.0").targets(pending("apps")).in()
	for _, candidate := range promotion.Decide(in).Candidates {
		if !candidate.HeldBy(v1alpha1.FirstReleaseNotAppliedReason) {
			t.Errorf("%s is not held", candidate.Release.Tag)
		}
	}
}

// The entry has the content that Flux has pulled, not the content that the tag points to
// now.
func TestFirstReleaseAppliedRecordsWhatWasPulled(t *testing.T) {
	const image, old, pushed = "registry.example.com/shop", "sha256:old", "sha256:new"
	running := applied("shop")
	running.Image, running.Digest = image, old
	for name, test := range map[string]struct {
		known, want v1alpha1.VersionInfo
	}{
		"of a tag that was pushed again": {
			v1alpha1.VersionInfo{Tag: "1.0.0", Digest: to(pushed), Revision: to("abc")},
			v1alpha1.VersionInfo{Tag: "1.0.0", Digest: to(old)},
		},
		"of a tag whose content is not known": {
			v1alpha1.VersionInfo{Tag: "1.0.0", Version: to("1.0")},
			v1alpha1.VersionInfo{Tag: "1.0.0", Version: to("1.0"), Digest: to(old)},
		},
		"of a tag that is as it was": {
			v1alpha1.VersionInfo{Tag: "1.0.0", Digest: to(old), Revision: to("abc")},
			v1alpha1.VersionInfo{Tag: "1.0.0", Digest: to(old), Revision: to("abc")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(rollout().FirstRelease(v1alpha1.FirstReleaseApplied)).names(test.known).carried("1.0.0").targets(running).in()
			in.Policy.Image = image
			d := promotion.Decide(in)
			diff(t, promotion.Adopt, d.Action)
			diff(t, test.want, d.Release)
		})
	}
}

func TestFirstReleaseAppliedIsFollowedByTheGates(t *testing.T) {
	in := given(rollout().FirstRelease(v1alpha1.FirstReleaseApplied).Ledger("1.0.0", "1.1.0")).
		carried("1.0.0").gates(gate("manual").Closed()).targets(applied("apps")).in()
	for _, want := range []promotion.Action{promotion.Adopt, promotion.FinishBake, promotion.Nothing} {
		d := promotion.Decide(in)
		diff(t, want, d.Action)
		history, err := promotion.Record(in, d)
		if err != nil {
			t.Fatal(err)
		}
		in.Rollout.Status.History, in.Targets.Carried = history, nil
	}
	diff(t, "1.0.0", in.Rollout.Current().Version.Tag)
	diff(t, to(int64(1)), in.Rollout.Current().ID)
}
