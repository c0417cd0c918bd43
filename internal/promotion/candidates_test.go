// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestCandidates(t *testing.T) {
	for name, test := range map[string]struct {
		spec    releases.OrderSpec
		ledger  []string
		history []*fixture.EntryBuilder
		want    []string
	}{
		"without a history every release is one, newest first": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0", "1.2.0"},
			want: []string{"1.2.0", "1.1.0", "1.0.0"},
		},
		"what is newer than the current release": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"},
			history: []*fixture.EntryBuilder{entry("1.1.0").Succeeded()},
			want:    []string{"1.3.0", "1.2.0"},
		},
		"none when the newest is deployed": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0"},
			history: []*fixture.EntryBuilder{entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()},
		},
		"never what is older than the current release, even if it was never deployed": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0", "2.0.0"},
			history: []*fixture.EntryBuilder{entry("2.0.0").Succeeded()},
		},
		"the current release need not be in the ledger": {
			spec: anySemver, ledger: []string{"1.0.0", "1.2.0"},
			history: []*fixture.EntryBuilder{entry("1.1.0").Succeeded()},
			want:    []string{"1.2.0"},
		},
		"after a rollback, all that is newer than what runs now": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0", "1.2.0"},
			history: []*fixture.EntryBuilder{entry("1.0.0").Succeeded(), entry("1.2.0").Failed()},
			want:    []string{"1.2.0", "1.1.0"},
		},
		"the state of the current release makes no difference": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0"},
			history: []*fixture.EntryBuilder{entry("1.0.0").Failed()},
			want:    []string{"1.1.0"},
		},
		"only what the policy's range admits now": {
			spec:    releases.OrderSpec{Kind: releases.BySemver, Range: "1.x"},
			ledger:  []string{"1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0"},
			history: []*fixture.EntryBuilder{entry("1.0.0").Succeeded()},
			want:    []string{"1.1.0"},
		},
		"a release outside the range is still a position": {
			spec:    releases.OrderSpec{Kind: releases.BySemver, Range: "<2.0.0"},
			ledger:  []string{"1.0.0", "1.1.0"},
			history: []*fixture.EntryBuilder{entry("2.0.0").Succeeded()},
		},
		"after a custom build, what is newer than the newest entry that can be ranked": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0", "1.2.0"},
			history: []*fixture.EntryBuilder{entry("hotfix-bob").Succeeded(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()},
			want:    []string{"1.2.0"},
		},
		"after custom builds alone, every release": {
			spec: anySemver, ledger: []string{"1.0.0", "1.1.0"},
			history: []*fixture.EntryBuilder{entry("hotfix-eve").Succeeded(), entry("hotfix-bob").Succeeded()},
			want:    []string{"1.1.0", "1.0.0"},
		},
		"a custom build in the ledger is none": {
			spec: anySemver, ledger: []string{"hotfix-bob", "1.0.0", "1.1.0"},
			history: []*fixture.EntryBuilder{entry("1.0.0").Succeeded()},
			want:    []string{"1.1.0"},
		},
		"of one version, the later builds": {
			spec: numbered, ledger: []string{"1.0.0_1", "1.0.0_2", "1.0.0_3"},
			history: []*fixture.EntryBuilder{entry("1.0.0_2").Succeeded()},
			want:    []string{"1.0.0_3"},
		},
		"an earlier build of a release outside the ledger is not newer": {
			spec: numbered, ledger: []string{"1.0.0_1", "1.1.0_1"},
			history: []*fixture.EntryBuilder{entry("1.0.0_9").Succeeded()},
			want:    []string{"1.1.0_1"},
		},
		"the higher number": {
			spec: byNumber, ledger: []string{"9", "10", "11"},
			history: []*fixture.EntryBuilder{entry("10").Succeeded()},
			want:    []string{"11"},
		},
		"the lower number where the policy descends": {
			spec: descending(byNumber), ledger: []string{"11", "10", "9"},
			history: []*fixture.EntryBuilder{entry("10").Succeeded()},
			want:    []string{"9"},
		},
		"what appeared later where nothing can be compared": {
			spec: byAppearance, ledger: []string{"zeta", "alpha", "mid"},
			history: []*fixture.EntryBuilder{entry("alpha").Succeeded()},
			want:    []string{"mid"},
		},
		"by appearance, a custom build is skipped for the newest entry that is known": {
			spec: byAppearance, ledger: []string{"zeta", "alpha", "mid"},
			history: []*fixture.EntryBuilder{entry("custom").Succeeded(), entry("zeta").Succeeded()},
			want:    []string{"mid", "alpha"},
		},
		"a release that is listed twice is one candidate, at its newest place": {
			spec: byAppearance, ledger: []string{"a", "b", "c", "b"},
			history: []*fixture.EntryBuilder{entry("a").Succeeded()},
			want:    []string{"b", "c"},
		},
		"a release that is listed twice is as new as its last place says": {
			spec: byAppearance, ledger: []string{"zeta", "alpha", "zeta"},
			history: []*fixture.EntryBuilder{entry("alpha").Succeeded()},
			want:    []string{"zeta"},
		},
		"never the current release itself, nor one before it, though it is listed twice": {
			spec: byAppearance, ledger: []string{"zeta", "alpha", "zeta"},
			history: []*fixture.EntryBuilder{entry("zeta").Succeeded()},
		},
		"never what cannot be a tag": {
			spec: byAppearance, ledger: []string{"zeta", "no tag", ""},
			history: []*fixture.EntryBuilder{entry("zeta").Succeeded()},
		},
		"none of two that a policy by number cannot rank": {
			spec: byNumber, ledger: []string{"main-a", "main-b"},
			history: []*fixture.EntryBuilder{entry("main-a").Succeeded()},
		},
		"never the current release itself, though the policy cannot rank it": {
			spec: byNumber, ledger: []string{"main-a", "10"},
			history: []*fixture.EntryBuilder{entry("main-a").Succeeded()},
			want:    []string{"10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := releases.Candidates(fixture.Releases(test.ledger...), entries(test.history...), releases.Policy{Order: order(test.spec)})
			diff(t, test.want, tags(got))
		})
	}
}

func TestCandidatesStayAsListedWhileThePolicyIsGone(t *testing.T) {
	listed := func(tags ...string) []v1alpha1.ReleaseCandidate {
		var all []v1alpha1.ReleaseCandidate
		for _, tag := range tags {
			all = append(all, v1alpha1.ReleaseCandidate{VersionInfo: v1alpha1.VersionInfo{Tag: tag}})
		}
		return all
	}
	known := func() *fixture.RolloutBuilder { return rollout().Ledger("1.0.0", "1.1.0", "1.2.0-rc.1", "1.2.0") }
	gone := releases.Policy{Name: "shop", Problem: broken, Blocking: true}
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		listed  []v1alpha1.ReleaseCandidate
		policy  releases.Policy
		want    []string
	}{
		"what it admitted, in its order": {
			rollout: known().History(entry("1.0.0").Succeeded()), listed: listed("1.2.0", "1.1.0"), policy: gone,
			want: []string{"1.2.0", "1.1.0"},
		},
		"without what was deployed meanwhile, and what is older": {
			rollout: known().History(entry("1.1.0").Succeeded()), listed: listed("1.2.0", "1.1.0"), policy: gone,
			want: []string{"1.2.0"},
		},
		"none if none was listed": {rollout: known().History(entry("1.0.0").Succeeded()), policy: gone},
		"all that it admits as soon as that is known": {
			rollout: known().History(entry("1.0.0").Succeeded()),
			policy:  releases.Policy{Name: "shop", Order: order(anySemver), Problem: broken, Blocking: true},
			want:    []string{"1.2.0", "1.2.0-rc.1", "1.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(test.rollout).in()
			in.Rollout.Status.ReleaseCandidates, in.Policy = test.listed, test.policy
			var got []string
			for _, candidate := range promotion.Decide(in).Candidates {
				got = append(got, candidate.Release.Tag)
			}
			diff(t, test.want, got)
		})
	}
}
