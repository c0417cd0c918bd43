// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Digests of content.
var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
	digestC = "sha256:" + strings.Repeat("c", 64)
)

// version returns a release with its digest.
func version(tag, digest string) v1alpha1.VersionInfo { return release(tag).Digest(digest).Obj() }

// pinned sets that these targets get the digest of a release.
func (s *situation) pinned(which content.Pinned) *situation {
	s.input.Targets.Pinned, s.input.Policy.ByDigest = which, which == content.AllPinned
	return s
}

func TestDigestThatIsNotKnownHolds(t *testing.T) {
	unknown := []verdict.Hold{{
		Reason:  v1alpha1.DigestUnknownReason,
		Message: "the digest of 1.1.0 is not known: set spec.digestReflectionPolicy of ImagePolicy shop to Always, or let the controller read the registry",
	}}
	known := func(digest string) *fixture.RolloutBuilder {
		return rollout().Releases(release("1.0.0").Obj(), version("1.1.0", digest)).History(entry("1.0.0").Succeeded())
	}
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"if all targets get it":    {given(upgrade()).pinned(content.AllPinned), unknown},
		"if some targets get it":   {given(upgrade()).pinned(content.SomePinned), unknown},
		"not if no target gets it": {given(upgrade()), nil},
		"not once it is known":     {given(known(digestB)).pinned(content.AllPinned), nil},
		"if it cannot be written":  {given(known("sha256:1234")).pinned(content.AllPinned), unknown},
		"past the gates, too":      {given(upgrade().Annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")).pinned(content.AllPinned), unknown},
		"past a failure, too":      {given(upgrade().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).pinned(content.AllPinned), unknown},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Candidates[0].Holds)
			if promotes := d.Action.Promotes(); promotes == (len(test.want) > 0) {
				t.Errorf("promotes: %v", promotes)
			}
		})
	}
	t.Run("also the first release", func(t *testing.T) {
		d := promotion.Decide(given(rollout().Ledger("1.0.0")).pinned(content.AllPinned).in())
		if d.Action.Promotes() {
			t.Error("promoted without a digest")
		}
	})
}

func TestPeopleAndRollbacksDoNotWaitForADigest(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"a pin":      {given(upgrade().Pin("1.1.0")), "1.1.0"},
		"a force":    {given(upgrade().Annotate(v1alpha1.ForceDeployAnnotation, "1.1.0")), "1.1.0"},
		"a rollback": {given(afterProven()), "1.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.pinned(content.AllPinned).in())
			if d.Release.Tag != test.want || d.Release.Digest != nil {
				t.Errorf("promotes %v", d.Release)
			}
		})
	}
}

func TestReleaseIsPinnedByItsDigest(t *testing.T) {
	runs := func(pin string) *situation {
		return given(rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB)).
			History(entry("1.0.0").Version(version("1.0.0", digestA)).Succeeded()).Pin(pin))
	}
	for name, test := range map[string]struct {
		given *situation
		want  *v1alpha1.VersionInfo
	}{
		"a known release":                  {runs("1.1.0@" + digestB), new(version("1.1.0", digestB))},
		"content that nobody knows":        {runs("1.1.0@" + digestC), new(version("1.1.0", digestC))},
		"older content of the current tag": {runs("1.0.0@" + digestC), new(version("1.0.0", digestC))},
		"what is deployed":                 {runs("1.0.0@" + digestA), nil},
		"by its tag alone":                 {runs("1.0.0"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			if test.want == nil {
				diff(t, promotion.Nothing, d.Action)
				return
			}
			diff(t, outcome{Action: promotion.Promote, Release: test.want.Tag, Manual: true, Reason: v1alpha1.PinnedReason, Message: "pinned manually in spec.wantedVersion"}, outcomeOf(d))
			diff(t, *test.want, d.Release)
		})
	}
	t.Run("and holds the tag with other content", func(t *testing.T) {
		d := promotion.Decide(runs("1.1.0@" + digestB).in())
		diff(t, []string{}, reasons(d)["1.1.0"])
		d = promotion.Decide(runs("1.1.0@" + digestC).in())
		diff(t, []string{v1alpha1.PinnedReason}, reasons(d)["1.1.0"])
	})
	for _, pin := range []string{"1.1.0@", "1.1.0@sha256:1234", "1.1.0@" + strings.ToUpper(digestB), "1.1.0@sha512:" + strings.Repeat("b", 128), "1.1.0@" + digestB[:70], "@" + digestB} {
		t.Run("not by "+pin, func(t *testing.T) {
			d := promotion.Decide(runs(pin).in())
			diff(t, promotion.Nothing, d.Action)
			want := "spec.wantedVersion " + verdict.Quote(pin) + " is neither a tag nor a tag with its digest, <tag>@sha256:<64 hexadecimal digits>: correct or remove it"
			diff(t, &verdict.Problem{Reason: v1alpha1.InvalidWantedVersionReason, Message: want}, d.Problem)
		})
	}
}

func TestGateAllowsOneContent(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		want    []string
	}{
		"by its tag":              {[]string{"1.1.0"}, []string{}},
		"by its tag and digest":   {[]string{"1.1.0@" + digestB}, []string{}},
		"not another one":         {[]string{"1.1.0@" + digestA}, []string{v1alpha1.NoAllowedVersionsReason}},
		"not by the digest alone": {[]string{digestB}, []string{v1alpha1.NoAllowedVersionsReason}},
		"one of several":          {[]string{"1.0.0", "1.1.0@" + digestA, "1.1.0@" + digestB}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(entry("1.0.0").Version(version("1.0.0", digestA)).Succeeded())
			diff(t, test.want, reasons(promotion.Decide(given(r).gates(gate("qa").Allow(test.allowed...)).in()))["1.1.0"])
			first := promotion.Decide(given(rollout().Releases(version("1.1.0", digestB))).gates(gate("qa").Allow(test.allowed...)).in())
			if first.Action.Promotes() == (len(test.want) > 0) {
				t.Errorf("the first release: %v", first.Action)
			}
		})
	}
}

// pushedAgain returns a Rollout on which the tag latest runs with one content, and now points
// to another.
func pushedAgain(before ...*fixture.EntryBuilder) *fixture.RolloutBuilder {
	runs := entry("latest").ID(9).Version(version("latest", digestA)).Succeeded()
	return rollout().Releases(version("latest", digestB)).History(append([]*fixture.EntryBuilder{runs}, before...)...)
}

func TestTagThatIsPushedAgainIsARelease(t *testing.T) {
	onlyLatest := func(s *situation) *situation { return s.ranked(byAppearance).pinned(content.AllPinned) }
	t.Run("that goes when nothing holds it", func(t *testing.T) {
		d := promotion.Decide(onlyLatest(given(pushedAgain())).in())
		diff(t, outcome{
			Action: promotion.Promote, Release: "latest", Reason: v1alpha1.EligibleReason, Message: "the newest eligible release of ImagePolicy shop",
		}, outcomeOf(d))
		diff(t, version("latest", digestB), d.Release)
		diff(t, v1alpha1.GroundsNewest, d.Grounds)
		if len(d.Notes) > 0 {
			t.Errorf("reported as a tag that moved: %v", d.Notes)
		}
	})
	t.Run("that a gate holds", func(t *testing.T) {
		d := promotion.Decide(onlyLatest(given(pushedAgain())).gates(gate("qa").Closed()).in())
		diff(t, map[string][]string{"latest": {v1alpha1.SomeGatesBlockingReason}}, reasons(d))
	})
	t.Run("not if a target pulls by the tag", func(t *testing.T) {
		d := promotion.Decide(given(pushedAgain()).ranked(byAppearance).pinned(content.SomePinned).in())
		diff(t, map[string][]string{}, reasons(d))
	})
	t.Run("not without another digest", func(t *testing.T) {
		same := rollout().Releases(version("latest", digestA)).History(entry("latest").Version(version("latest", digestA)).Succeeded())
		diff(t, map[string][]string{}, reasons(promotion.Decide(onlyLatest(given(same)).in())))
	})
	t.Run("that failed here before", func(t *testing.T) {
		failed := pushedAgain(entry("latest").ID(8).Version(version("latest", digestB)).Failed())
		diff(t, map[string][]string{"latest": {v1alpha1.FailedBeforeReason}}, reasons(promotion.Decide(onlyLatest(given(failed)).in())))
		other := pushedAgain(entry("latest").ID(8).Version(version("latest", digestC)).Failed())
		diff(t, map[string][]string{"latest": {}}, reasons(promotion.Decide(onlyLatest(given(other)).in())))
	})
	t.Run("next after the current one", func(t *testing.T) {
		r := rollout().Releases(version("1.0.0", digestB), version("1.1.0", digestC)).
			History(entry("1.0.0").Version(version("1.0.0", digestA)).Succeeded()).Strategy(v1alpha1.ReleaseNext)
		d := promotion.Decide(given(r).pinned(content.AllPinned).in())
		diff(t, version("1.0.0", digestB), d.Release)
		diff(t, map[string][]string{"1.0.0": {}, "1.1.0": {v1alpha1.NotNextReason}}, reasons(d))
	})
}

func TestRollbackToOtherContentOfTheTag(t *testing.T) {
	failed := entry("latest").ID(7).Version(version("latest", digestB)).Failed(failedCheck("db", "down")).Because("HealthCheck shop-prod/db: down").
		Due(v1alpha1.CauseHealthCheckFailed, noon)
	before := entry("latest").ID(5).Version(version("latest", digestA)).Succeeded()
	r := rollout().Releases(version("latest", digestB)).RollsBack().History(failed, before)
	d := promotion.Decide(given(r).ranked(byAppearance).pinned(content.AllPinned).in())
	diff(t, v1alpha1.AutomaticRollbackReason, d.Reason)
	diff(t, version("latest", digestA), d.Release)

	byTag := promotion.Decide(given(r).ranked(byAppearance).in())
	if byTag.Action.Promotes() {
		t.Error("went back to a tag that brings what failed")
	}
}

func TestPinnedContentIsNotReplacedByWhatFluxPulls(t *testing.T) {
	r := rollout().Releases(version("1.0.0", digestB)).Pin("1.0.0@" + digestA).
		History(entry("1.0.0").Version(version("1.0.0", digestA)).Succeeded())
	pulled := content.Target{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "web", State: v1alpha1.TargetApplied, Image: "registry.example.com/shop", Digest: digestB,
	}
	s := given(r).targets(pulled)
	s.input.Policy.Image = "registry.example.com/shop"
	in := s.in()
	in.Targets.All = in.Content().Compared(func(content.Target) *verdict.Hold { return nil })
	diff(t, v1alpha1.TargetConflict, in.Targets.All[0].State)
	diff(t, "has pulled 1.0.0 as "+digestB+", but spec.wantedVersion pins "+digestA+": let the Rollout write the digest, too, by the annotation "+
		"digest.rollout.kuberik.com/ref, or pin another release", in.Targets.All[0].Message)
	diff(t, promotion.Nothing, promotion.Decide(in).Action)
}

func TestStandingOfOneContent(t *testing.T) {
	s := given(pushedAgain()).ranked(byAppearance).pinned(content.AllPinned)
	d := promotion.Decide(s.in())
	for name, want := range map[string]promotion.Position{
		"latest":             promotion.Deployed,
		"latest@" + digestA:  promotion.Deployed,
		"latest@" + digestB:  promotion.Candidate,
		"latest@" + digestC:  promotion.NotSeen,
		"latest@sha256:1234": promotion.NoTag,
		"other@" + digestA:   promotion.NotSeen,
	} {
		diff(t, want, promotion.StandingOf(s.in(), d, name).Position)
	}
}
