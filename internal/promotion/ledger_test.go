// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestLedgerGrows(t *testing.T) {
	type result struct {
		Ledger []v1alpha1.VersionInfo
		Notes  []verdict.Note
	}
	for name, test := range map[string]struct {
		given *situation
		want  result
	}{
		"the release that the policy names is added with its digest": {
			given(rollout()).names(sha("1.0.0", "aa")),
			result{Ledger: []v1alpha1.VersionInfo{sha("1.0.0", "aa")}},
		},
		"a release that is known already is not added again": {
			given(rollout().Ledger("1.0.0", "1.1.0")).latest("1.1.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.1.0")},
		},
		"a release between two scans is taken from the last scan": {
			given(rollout().Ledger("1.0.0")).latest("1.2.0").scanned("1.0.0", "1.1.0", "1.2.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.1.0", "1.2.0")},
		},
		"a scanned release that is equal for the policy is added, too": {
			given(rollout()).ranked(numbered).latest("1.4.0_18").scanned("1.4.0_17", "1.4.0_18", "1.4.0_19", "1.5.0_1"),
			result{Ledger: fixture.Releases("1.4.0_17", "1.4.0_18", "1.4.0_19")},
		},
		"one that was trimmed pushes no other out when a scan shows it again": {
			given(rollout().Retention(1, 2).Ledger("1.4.0_18", "1.4.0_19")).ranked(numbered).latest("1.4.0_18").scanned("1.4.0_17", "1.4.0_18", "1.4.0_19"),
			result{Ledger: fixture.Releases("1.4.0_18", "1.4.0_19")},
		},
		"among equals, the one that was built later is newer": {
			given(rollout().Releases(release("1.0.0").Digest("sha256:aa").Created(noon).Obj(), release("v1.0.0").Digest("sha256:bb").Created(eleven).Obj())).latest("1.0.0"),
			result{Ledger: []v1alpha1.VersionInfo{release("v1.0.0").Digest("sha256:bb").Created(eleven).Obj(), release("1.0.0").Digest("sha256:aa").Created(noon).Obj()}},
		},
		"a scan never runs ahead of what the policy names": {
			given(rollout().Ledger("1.0.0")).latest("1.1.0").scanned("1.1.0", "1.2.0", "2.0.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.1.0")},
		},
		"a scanned tag outside the range or no version is left out": {
			given(rollout()).ranked(releases.OrderSpec{Kind: releases.BySemver, Range: ">=1.1.0"}).latest("1.3.0").
				scanned("1.0.0", "1.2.0-rc.1", "1.2.0", "sha-3f2a", "1.1", "1.3.0"),
			result{Ledger: fixture.Releases("1.2.0", "1.3.0")},
		},
		"a scan says nothing where tags are not ranked by semver": {
			given(rollout()).ranked(byNumber).latest("12").scanned("10", "11"),
			result{Ledger: fixture.Releases("12")},
		},
		"an older release that is seen late goes to its place": {
			given(rollout().Ledger("1.0.0", "2.0.0")).latest("1.5.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.5.0", "2.0.0")},
		},
		"latestRef going back to a known release changes nothing": {
			given(rollout().Ledger("1.0.0", "1.1.0", "1.2.0")).latest("1.1.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.1.0", "1.2.0")},
		},
		"latestRef vanishing changes nothing": {
			given(rollout().Ledger("1.0.0", "1.1.0")).namesNothing().scanned("0.9.0"),
			result{Ledger: fixture.Releases("1.0.0", "1.1.0")},
		},
		"a policy that cannot be used adds nothing": {
			given(rollout().Ledger("1.0.0")).latest("1.1.0").policyUnreadable(),
			result{Ledger: fixture.Releases("1.0.0")},
		},
		"a digest that was not known is filled in silently": {
			given(rollout().Ledger("1.0.0")).names(sha("1.0.0", "aa")),
			result{Ledger: []v1alpha1.VersionInfo{sha("1.0.0", "aa")}},
		},
		"a digest that is known is kept if the policy gives none": {
			given(rollout().Releases(sha("1.0.0", "aa"))).latest("1.0.0"),
			result{Ledger: []v1alpha1.VersionInfo{sha("1.0.0", "aa")}},
		},
		"the same digest again is nothing to report": {
			given(rollout().Releases(sha("1.0.0", "aa"))).names(sha("1.0.0", "aa")),
			result{Ledger: []v1alpha1.VersionInfo{sha("1.0.0", "aa")}},
		},
		"a tag that was pushed again is corrected and reported, and nothing else is known of it": {
			given(rollout().Releases(release("1.0.0").Digest("sha256:aa").Created(eleven).Obj())).names(sha("1.0.0", "bb")),
			result{
				Ledger: []v1alpha1.VersionInfo{sha("1.0.0", "bb")},
				Notes: []verdict.Note{{
					Reason:  v1alpha1.TagMovedReason,
					Message: "tag 1.0.0 was pushed again: it moved from sha256:aa to sha256:bb",
				}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, result{d.Ledger, d.Notes})
		})
	}
}

func TestLedgerIsSortedByThePolicy(t *testing.T) {
	for name, test := range map[string]struct {
		spec   releases.OrderSpec
		before []string
		latest string
		want   []string
	}{
		"by semver precedence": {
			anySemver, []string{"1.10.0", "1.9.0", "1.10.0-rc.1"}, "1.9.1",
			[]string{"1.9.0", "1.9.1", "1.10.0-rc.1", "1.10.0"},
		},
		"builds of one version by their numbers, whenever they were named": {
			numbered, []string{"1.0.0_9", "1.0.0_10"}, "1.0.0_5",
			[]string{"1.0.0_5", "1.0.0_9", "1.0.0_10"},
		},
		"what nothing tells apart stays as it appeared": {
			anySemver, []string{"v1.0.0", "1.0.0"}, "1.1.0",
			[]string{"v1.0.0", "1.0.0", "1.1.0"},
		},
		"what cannot be ranked counts as oldest, as it appeared": {
			anySemver, []string{"1.0.0", "zeta", "0.9.0", "alpha"}, "1.1.0",
			[]string{"zeta", "alpha", "0.9.0", "1.0.0", "1.1.0"},
		},
		"by number":             {byNumber, []string{"9", "11"}, "10", []string{"9", "10", "11"}},
		"by descending number":  {descending(byNumber), []string{"11", "9"}, "10", []string{"11", "10", "9"}},
		"by the alphabet":       {byAlphabet, []string{"b", "d"}, "c", []string{"b", "c", "d"}},
		"or else by appearance": {byAppearance, []string{"b", "a"}, "aa", []string{"b", "a", "aa"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(rollout().Ledger(test.before...)).ranked(test.spec).latest(test.latest).in()
			diff(t, test.want, tags(promotion.Decide(in).Ledger))
		})
	}
}

func TestLedgerIsTrimmedToTheLongestTail(t *testing.T) {
	day := 24 * time.Hour
	aged := func(tag string, days time.Duration) v1alpha1.VersionInfo {
		return release(tag).Created(noon.Add(-days * day)).Obj()
	}
	bare := func(tag string) v1alpha1.VersionInfo { return release(tag).Obj() }
	// Five known releases; the two newest are recent.
	five := []v1alpha1.VersionInfo{aged("1.0.0", 50), aged("1.1.0", 40), aged("1.2.0", 30), aged("1.3.0", 2), aged("1.4.0", 1)}
	for name, test := range map[string]struct {
		given *situation
		want  []string
	}{
		"the retention time dominates": {
			given(rollout().Retention(7, 1).Releases(five...)).latest("1.5.0"),
			[]string{"1.3.0", "1.4.0", "1.5.0"},
		},
		"the minimum count dominates": {
			given(rollout().Retention(1, 5).Releases(five...)).latest("1.5.0"),
			[]string{"1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"},
		},
		"the history dominates: what it names stays": {
			given(rollout().Retention(7, 1).Releases(five...).
				History(entry("1.3.0").Succeeded(), entry("1.1.0").Succeeded())).latest("1.5.0"),
			[]string{"1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"},
		},
		"a version that the ledger does not know protects nothing": {
			given(rollout().Retention(7, 1).Releases(five...).History(entry("0.1.0").Succeeded())).latest("1.5.0"),
			[]string{"1.3.0", "1.4.0", "1.5.0"},
		},
		"exactly as old as the retention time is recent": {
			given(rollout().Retention(7, 1).Releases(aged("1.0.0", 8), aged("1.1.0", 7))).latest("1.2.0"),
			[]string{"1.1.0", "1.2.0"},
		},
		"an unknown age counts as recent": {
			given(rollout().Retention(7, 1).Releases(aged("1.0.0", 50), bare("1.1.0"), aged("1.2.0", 2))).latest("1.3.0"),
			[]string{"1.1.0", "1.2.0", "1.3.0"},
		},
		"an unknown age below the oldest known one counts as old": {
			given(rollout().Retention(7, 1).Releases(bare("1.0.0"), aged("1.1.0", 2))).latest("1.2.0"),
			[]string{"1.1.0", "1.2.0"},
		},
		"an age that becomes known counts at once": {
			given(rollout().Retention(7, 1).Ledger("1.0.0", "1.1.0")).latest("1.2.0").
				knows(described("1.0.0", "aa").at(-8*day), described("1.1.0", "bb").at(-day)),
			[]string{"1.1.0", "1.2.0"},
		},
		"all of them recent: all stay": {
			given(rollout().Retention(90, 1).Releases(five...)).latest("1.5.0"),
			[]string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"},
		},
		"a retention that no duration can hold: all stay": {
			given(rollout().Retention(150_000, 1).Releases(five...)).latest("1.5.0"),
			[]string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"},
		},
		"all of them old: the minimum stays": {
			given(rollout().Retention(7, 2).Releases(five[:3]...)).names(aged("1.2.1", 20)),
			[]string{"1.2.0", "1.2.1"},
		},
		"the age of none is known: the minimum stays": {
			given(rollout().Retention(7, 2).Ledger("1.0.0", "1.1.0", "1.2.0")).latest("1.3.0"),
			[]string{"1.2.0", "1.3.0"},
		},
		"the age of none is known: the history stays": {
			given(rollout().Retention(7, 1).Ledger("1.0.0", "1.1.0", "1.2.0").
				History(entry("1.1.0").Succeeded())).latest("1.3.0"),
			[]string{"1.1.0", "1.2.0", "1.3.0"},
		},
		"nothing is trimmed unless the ledger grows": {
			given(rollout().Retention(7, 1).Releases(five...)).latest("1.4.0"),
			[]string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, tags(promotion.Decide(test.given.in()).Ledger))
		})
	}
}

func TestHundredsOfReleasesWithoutAgeStayBounded(t *testing.T) {
	r := rollout()
	for i := range 500 {
		in := given(r).latest(fmt.Sprintf("1.%d.0", i)).in()
		r.Releases(promotion.Decide(in).Ledger...)
	}
	known := r.Obj().Status.AvailableReleases
	if len(known) != 30 || known[29].Tag != "1.499.0" {
		t.Errorf("the ledger holds %d releases up to %s, want 30 up to 1.499.0", len(known), known[len(known)-1].Tag)
	}
}
