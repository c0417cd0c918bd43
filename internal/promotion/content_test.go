// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pulls returns an OCIRepository into which Flux has pulled 1.1.0.
func pulls(image, digest string) content.Target {
	return content.Target{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "apps", State: v1alpha1.TargetApplied, Image: image, Digest: digest,
	}
}

// seenWith sets the content with which the OCIRepository was seen applied.
func (s *situation) seenWith(digest string) *situation {
	s.input.Rollout.Status.Targets = []v1alpha1.TargetStatus{{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "apps", Version: "1.1.0", Digest: digest,
	}}
	return s
}

// alsoSeen adds another OCIRepository that was seen applied with its content, and is no
// longer applied.
func (s *situation) alsoSeen(name, digest string) *situation {
	s.input.Rollout.Status.Targets = append(s.input.Rollout.Status.Targets, v1alpha1.TargetStatus{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: name, Version: "1.1.0", Digest: digest,
	})
	other := pulls(image, "")
	other.Name, other.State = name, v1alpha1.TargetPending
	return s.targets(other)
}

// index returns 1.1.0 as an index that lists some images.
func index(digest string, lists ...string) description {
	d := bareImage("1.1.0", digest)
	d.Manifests = lists
	return d
}

func TestPulledContentIsTheReleaseOrIsSaid(t *testing.T) {
	const manifests = "registry.example.com/shop-manifests"
	// of returns a situation in which 1.1.0 is an image with that digest.
	of := func(digest string, state v1alpha1.BakeStatus) *situation {
		s := given(rollout().Releases(sha("1.1.0", digest)).History(entry("1.1.0").Version(sha("1.1.0", digest)).State(state)))
		s.input.Policy.Image = image
		return s
	}
	const deploying, baking, succeeded, failed = v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed
	type want struct {
		state v1alpha1.TargetState
		// moved is the digest that is reported as the previous one.
		moved string
	}
	isApplied, mismatch, trails := want{state: v1alpha1.TargetApplied}, want{state: v1alpha1.TargetConflict}, want{state: v1alpha1.TargetPending}
	moved := func(was string) want { return want{v1alpha1.TargetApplied, "sha256:" + was} }
	unknown := func(state v1alpha1.BakeStatus) *situation {
		s := given(rollout().Ledger("1.1.0").History(entry("1.1.0").State(state)))
		s.input.Policy.Image = image
		return s
	}
	// has returns an environment that takes what staging has proven, and that is this content.
	has := func(digest string) *ruled {
		return prod(after("staging", proven("1.1.0", withDigest("sha256:"+digest))))
	}
	byUser := func(s *situation) *situation {
		s.input.Rollout.Status.History[0].TriggeredBy = &v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "ann"}
		return s
	}
	for name, test := range map[string]struct {
		given *situation
		has   content.Target
		want  want
	}{
		"the release's content":                        {of("aaa", deploying), pulls(image, "sha256:aaa"), isApplied},
		"other content at the pull":                    {of("aaa", deploying), pulls(image, "sha256:bbb"), mismatch},
		"it stays so once the deadline has failed it":  {of("aaa", failed), pulls(image, "sha256:bbb"), mismatch},
		"a release whose digest is not known":          {unknown(deploying), pulls(image, "sha256:bbb"), isApplied},
		"content of another image":                     {of("aaa", deploying), pulls(manifests, "sha256:bbb"), isApplied},
		"a target that pulls nothing":                  {of("aaa", deploying), applied("apps"), isApplied},
		"the image is not known":                       {func() *situation { s := of("aaa", deploying); s.input.Policy.Image = ""; return s }(), pulls("", "sha256:bbb"), isApplied},
		"pushed again before the pull, and reflected":  {of("aaa", deploying).names(sha("1.1.0", "bbb")), pulls(image, "sha256:bbb"), moved("aaa")},
		"pushed again during the bake":                 {of("aaa", baking).seenWith("sha256:aaa"), pulls(image, "sha256:bbb"), moved("aaa")},
		"pushed again after it succeeded":              {of("aaa", succeeded).seenWith("sha256:aaa"), pulls(image, "sha256:bbb"), moved("aaa")},
		"pushed again after it failed":                 {of("aaa", failed).seenWith("sha256:aaa"), pulls(image, "sha256:bbb"), moved("aaa")},
		"pushed again, whatever digest was known":      {unknown(succeeded).seenWith("sha256:aaa"), pulls(image, "sha256:bbb"), moved("aaa")},
		"pushed again, of another image":               {of("ccc", succeeded).seenWith("sha256:aaa"), pulls(manifests, "sha256:bbb"), moved("aaa")},
		"pushed again before targets were looked into": {of("aaa", succeeded), pulls(image, "sha256:bbb"), moved("aaa")},
		"an image that the release's index lists": {
			of("aaa", deploying).knows(index("aaa", "sha256:arm", "sha256:bbb")),
			pulls(image, "sha256:bbb"), isApplied,
		},
		"an index that lists the release": {
			of("aaa", deploying).knows(index("bbb", "sha256:aaa")),
			pulls(image, "sha256:bbb"), mismatch,
		},
		"the content before, of a tag that another target has pulled anew": {
			of("ccc", deploying).seenWith("sha256:aaa").alsoSeen("other", "sha256:ccc"), pulls(image, "sha256:aaa"), trails,
		},
		"what was taken while the policy could not be read": {of("ccc", deploying).seenWith("sha256:aaa"), pulls(image, "sha256:aaa"), mismatch},
		"the same, and it succeeded":                        {of("aaa", succeeded).seenWith("sha256:bbb"), pulls(image, "sha256:bbb"), moved("aaa")},
		"the content that it was pushed again with":         {of("ccc", deploying).seenWith("sha256:aaa"), pulls(image, "sha256:ccc"), isApplied},
		"yet another one":                                   {of("ccc", deploying).seenWith("sha256:aaa"), pulls(image, "sha256:bbb"), moved("aaa")},
		"not proven by the environment before, before the pull": {
			of("aaa", deploying).names(sha("1.1.0", "bbb")).environments(has("aaa")), pulls(image, "sha256:bbb"), mismatch,
		},
		"not proven there, during the bake":      {of("aaa", baking).seenWith("sha256:aaa").environments(has("aaa")), pulls(image, "sha256:bbb"), mismatch},
		"not proven there, and it failed":        {of("aaa", failed).seenWith("sha256:aaa").environments(has("aaa")), pulls(image, "sha256:bbb"), mismatch},
		"not proven there, after it succeeded":   {of("aaa", succeeded).seenWith("sha256:aaa").environments(has("aaa")), pulls(image, "sha256:bbb"), moved("aaa")},
		"proven there as well":                   {of("aaa", baking).seenWith("sha256:aaa").environments(has("bbb")), pulls(image, "sha256:bbb"), moved("aaa")},
		"proven there as well, but not offered":  {of("aaa", deploying).environments(has("bbb")), pulls(image, "sha256:bbb"), mismatch},
		"a user's choice, which nobody proved":   {byUser(of("aaa", baking)).seenWith("sha256:aaa").environments(has("ccc")), pulls(image, "sha256:bbb"), moved("aaa")},
		"a user's choice of what was proven":     {byUser(of("aaa", baking)).seenWith("sha256:aaa").environments(has("aaa")), pulls(image, "sha256:bbb"), mismatch},
		"not proven there, but of another image": {of("ccc", deploying).seenWith("sha256:aaa").environments(has("ccc")), pulls(manifests, "sha256:bbb"), moved("aaa")},
		"an environment that is parallel to this one proves nothing": {
			of("aaa", baking).seenWith("sha256:aaa").environments(prod(parallel("staging"))), pulls(image, "sha256:bbb"), moved("aaa"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.targets(append([]content.Target{test.has}, test.given.input.Targets.All...)...).in()
			for range 2 { // targets that were already compared are compared again, with the same result
				in.Targets.All = in.Compared()
			}
			got := in.Targets.All[0]
			if got.State != test.want.state || got.Mismatch != (got.State == v1alpha1.TargetConflict) {
				t.Errorf("the target is %s, mismatch: %t: %s", got.State, got.Mismatch, got.Message)
			}
			if (got.Reason == v1alpha1.TargetDigestMismatch) != (got.State != v1alpha1.TargetApplied) {
				t.Errorf("the target is %s because of %q: %s", got.State, got.Reason, got.Message)
			}
			d := promotion.Decide(in)
			reported := d.Reason == v1alpha1.TagMovedReason
			if reported != (test.want.moved != "") || reported && !strings.HasSuffix(d.Message, "it is sha256:bbb now, and was "+test.want.moved) {
				t.Errorf("it is reported as %q: %s", d.Reason, d.Message)
			}
		})
	}
}

// The end of the soak of content that nobody decided here is an end that only time brings.
func TestContentThatSoaksUpstreamIsLookedAtAgain(t *testing.T) {
	soaks := soaking(time.Hour, after("staging", proven("1.1.0", withDigest("sha256:bbb"), soaked(30*time.Minute)), proven("1.1.0", withDigest("sha256:aaa"), soaked(time.Hour))))
	s := given(rollout().Releases(sha("1.1.0", "bbb")).History(entry("1.1.0").Version(sha("1.1.0", "aaa")).Deploying())).
		targets(pulls(image, "sha256:bbb")).environments(prod(soaks))
	s.input.Policy.Image = image
	in := s.in()
	in.Targets.All = in.Compared()
	diff(t, "has pulled 1.1.0 as sha256:bbb, but the release is sha256:aaa, and this content is not proven: soaks in staging for 1h0m0s, until 2026-03-02T12:30:00Z; "+
		"push each release under a tag of its own, or pin another release with spec.wantedVersion", in.Targets.All[0].Message)
	diff(t, noon.Add(30*time.Minute), promotion.Decide(in).RecheckAt)

	in.Now = noon.Add(30 * time.Minute)
	in.Targets.All = in.Compared()
	diff(t, v1alpha1.TagMovedReason, promotion.Decide(in).Reason)
}

// TestTagThatWasPushedAgainIsAnEntryOfItsOwn checks that such an entry uses up and
// answers no requests, because no user has decided it.
func TestTagThatWasPushedAgainIsAnEntryOfItsOwn(t *testing.T) {
	running := rollout().BakeTime(time.Hour).Releases(sha("1.1.0", "aaa")).History(entry("1.1.0").Version(full("1.1.0", "aaa")).Baking(eleven).ID(7)).
		Annotate(user, "ann").Annotate(message, "for the next one").Annotate(unblock, "true").Annotate(retry, "")
	s := given(running).seenWith("sha256:aaa").targets(pulls(image, "sha256:bbb"))
	s.input.Policy.Image = image
	in := s.in()
	in.Targets.All = in.Compared()
	d := promotion.Decide(in)
	diff(t, outcome{
		Action: promotion.Supersede, Release: "1.1.0", Reason: v1alpha1.TagMovedReason,
		Message: "tag 1.1.0 was pushed again, and OCIRepository shop-prod/apps has pulled it: it is sha256:bbb now, and was sha256:aaa",
	}, outcomeOf(d))
	if len(d.Consumed) > 0 || len(d.Answers) > 0 {
		t.Errorf("it uses up %v and answers %v", d.Consumed, d.Answers)
	}
	history, err := promotion.Record(in, d)
	if err != nil {
		t.Fatal(err)
	}
	fresh, before := history[0], history[1]
	diff(t, v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: promotion.SystemName}, *fresh.TriggeredBy)
	diff(t, sha("1.1.0", "bbb"), fresh.Version) // its metadata is not that of the previous content
	diff(t, []any{int64(8), v1alpha1.BakeDeploying, d.Message}, []any{*fresh.ID, *fresh.BakeStatus, *fresh.Message})
	diff(t, []any{v1alpha1.BakeCancelled, "superseded by other content of the same tag"}, []any{*before.BakeStatus, *before.BakeStatusMessage})
}

// While the controller was away, Flux pulled the tag into one object. Then the tag was
// pushed again, and Flux pulled it into another object. The controller sees both at once,
// and nothing is stored for either.
func TestOldContentOfOneTargetIsNoOtherPush(t *testing.T) {
	behind, ahead := pulls(image, "sha256:aaa"), pulls(image, "sha256:bbb")
	behind.Name, ahead.Name = "behind", "ahead"
	running := rollout().BakeTime(time.Hour).Releases(sha("1.1.0", "bbb"), sha("1.1.0", "aaa")).History(entry("1.1.0").Version(sha("1.1.0", "aaa")).Baking(eleven).ID(7))
	s := given(running).targets(behind, ahead).names(sha("1.1.0", "aaa"))
	s.input.Policy.Image = image
	in := s.in()
	in.Rollout.Status.AvailableReleases[0].Digest = sha("1.1.0", "bbb").Digest
	in.Targets.All = in.Compared()
	d := promotion.Decide(in)
	diff(t, []any{promotion.Supersede, v1alpha1.TagMovedReason}, []any{d.Action, d.Reason})
	diff(t, []string{"sha256:aaa", "sha256:bbb"}, []string{in.Content().DigestToStore(in.Targets.All[0], d.Deploys()), in.Content().DigestToStore(in.Targets.All[1], d.Deploys())})
}

// Two objects pulled the tag before and after it was pushed again, and nobody knows which
// content is the release. A bake of both would prove neither.
func TestPulledContentOfTwoTargetsMustBeTheSame(t *testing.T) {
	for seen, stored := range map[string][]v1alpha1.TargetStatus{
		"one after the other": {{Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "behind", Version: "1.1.0", Digest: "sha256:aaa"}},
		"both at once":        nil,
	} {
		t.Run(seen, func(t *testing.T) {
			behind, ahead := pulls(image, "sha256:aaa"), pulls(image, "sha256:bbb")
			behind.Name, ahead.Name = "behind", "ahead"
			s := given(rollout().BakeTime(time.Hour).History(entry("1.1.0").Deploying().ID(7))).targets(behind, ahead)
			s.input.Policy.Image, s.input.Rollout.Status.Targets = image, stored
			in := s.in()
			in.Targets.All = in.Compared()
			d := promotion.Decide(in)
			diff(t, []any{promotion.Supersede, sha("1.1.0", "bbb")}, []any{d.Action, d.Release})
		})
	}
}

// The content of another image says nothing about the release. If it counted, the target
// that pulls the release would seem to be behind, and nothing would ever fix that.
func TestPushedAgainIsReadFromTheImageOfTheRelease(t *testing.T) {
	manifests, release := pulls("registry.example/manifests", "sha256:mmm"), pulls(image, "sha256:bbb")
	manifests.Name = "manifests"
	manifests.Moved, release.Moved = "tag 1.1.0 was pushed again", "tag 1.1.0 was pushed again"
	running := rollout().BakeTime(time.Hour).History(entry("1.1.0").Version(sha("1.1.0", "aaa")).Baking(eleven).ID(7))
	s := given(running).targets(manifests, release)
	s.input.Policy.Image = image
	d := promotion.Decide(s.in())
	diff(t, sha("1.1.0", "bbb"), d.Release)
}

// TestHistorySaysWhichContentRan covers a release whose content neither policy nor
// registry has reported.
func TestHistorySaysWhichContentRan(t *testing.T) {
	s := given(deploying()).targets(pulls(image, "sha256:aaa"), applied("shop"))
	s.input.Policy.Image = image
	history, err := promotion.Record(s.in(), promotion.Decide(s.in()))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, sha("1.1.0", "aaa"), history[0].Version)
}

// While the ImagePolicy cannot be read, nobody knows which target pulls the release. The
// content that is recorded then must still be valid once the policy is back: a target
// that seemed to be behind would wait forever.
func TestPulledContentWhileThePolicyCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		// becomes is the release of the new entry; nil if there is no new entry.
		becomes *v1alpha1.VersionInfo
		stored  string
	}{
		"pushed again: an entry whose content is not known": {
			given(rollout().Releases(sha("1.1.0", "aaa")).History(entry("1.1.0").Version(sha("1.1.0", "aaa")).Baking(eleven).ID(7))).seenWith("sha256:aaa"),
			&v1alpha1.VersionInfo{Tag: "1.1.0"}, "sha256:bbb",
		},
		"pulled first: nobody can say yet whether it is the release": {
			given(rollout().Releases(sha("1.1.0", "aaa")).History(entry("1.1.0").Version(sha("1.1.0", "aaa")).Deploying().ID(7))), nil, "sha256:bbb",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.targets(pulls(image, "sha256:bbb")).in()
			in.Targets.All = in.Compared()
			d := promotion.Decide(in)
			if made := d.Reason == v1alpha1.TagMovedReason; made != (test.becomes != nil) || made && d.Release != *test.becomes {
				t.Errorf("it becomes %v for %q, want %v", d.Release, d.Reason, test.becomes)
			}
			stored := in.Content().DigestToStore(in.Targets.All[0], d.Deploys())
			diff(t, test.stored, stored)

			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			in.Rollout.Status.History, in.Policy.Image = history, image
			in.Rollout.Status.Targets = []v1alpha1.TargetStatus{{
				Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "apps", Version: "1.1.0", Digest: stored,
			}}
			if back := in.Compared()[0]; back.State == v1alpha1.TargetPending {
				t.Errorf("once the policy is back, the target %s", back.Message)
			}
		})
	}
}
