// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// ranking returns the Input of a Rollout, on the order of a policy.
func ranking(t *testing.T, spec releases.OrderSpec, rollout *v1alpha1.Rollout) Input {
	t.Helper()
	order, err := releases.NewOrder(spec)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Now: fixture.Noon, Rollout: rollout, Policy: releases.Policy{Name: "shop", Order: order}}
}

// goingBack returns a Rollout that goes back by itself.
func goingBack(rollout *fixture.RolloutBuilder, changes ...func(*v1alpha1.RolloutRollback)) *v1alpha1.Rollout {
	r := rollout.Obj()
	r.Spec.Rollback = &v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}
	for _, change := range changes {
		change(r.Spec.Rollback)
	}
	return r
}

func ignoringMarks(r *v1alpha1.RolloutRollback) { r.Barriers = v1alpha1.RollbackBarriersIgnore }

// marked returns a release whose digest is its tag, and of which it is known whether it
// is forward-only.
func marked(tag string, forwardOnly bool) v1alpha1.VersionInfo {
	release := unmarked(tag)
	release.ForwardOnly = &forwardOnly
	return release
}

func unmarked(tag string) v1alpha1.VersionInfo {
	return fixture.MakeRelease(tag).Digest("sha256:" + tag).Revision("main").Obj()
}

func tagsIn(releases []v1alpha1.VersionInfo) []string {
	var tags []string
	for _, release := range releases {
		tags = append(tags, release.Tag)
	}
	return tags
}

func differ(t *testing.T, want, got any, options ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, options...); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

func TestWhatARollbackTakesBack(t *testing.T) {
	semver := releases.OrderSpec{Kind: releases.BySemver, Range: ">=1.0.0-0 <3.0.0"}
	numbered := releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^(?P<v>.+)_(?P<b>\d+)$`, Extract: "$v+$b"}
	for name, test := range map[string]struct {
		spec           releases.OrderSpec
		ledger         []string
		target, failed string
		want           []string
	}{
		"the failed release": {
			semver, []string{"1.0.0", "1.1.0"}, "1.0.0", "1.1.0", []string{"1.1.0"},
		},
		"and the skipped ones, newest first": {
			semver, []string{"1.0.0", "1.1.0", "1.2.0", "1.10.0"}, "1.0.0", "1.10.0", []string{"1.10.0", "1.2.0", "1.1.0"},
		},
		"but nothing older or newer": {
			semver, []string{"0.9.0", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0"}, "1.0.0", "1.2.0", []string{"1.2.0", "1.1.0"},
		},
		"also what the policy admits no more": {
			semver, []string{"1.0.0", "3.0.0", "4.0.0"}, "1.0.0", "4.0.0", []string{"4.0.0", "3.0.0"},
		},
		"the failed release even if it is not known": {
			semver, []string{"1.0.0", "1.1.0"}, "1.0.0", "1.2.0", []string{"1.2.0", "1.1.0"},
		},
		"what is newer than a target that is not known": {
			semver, []string{"0.9.0", "1.1.0", "1.2.0"}, "1.0.0", "1.2.0", []string{"1.2.0", "1.1.0"},
		},
		"nothing if the failed release is older than the target": {
			semver, []string{"1.0.0", "1.1.0", "1.2.0"}, "1.2.0", "1.0.0", nil,
		},
		"nothing, not even what cannot be ranked, if it is older": {
			semver, []string{"hotfix", "1.0.0", "1.1.0"}, "1.1.0", "1.0.0", nil,
		},
		"what cannot be ranked": {
			semver, []string{"hotfix", "1.0.0", "1.1.0", "1.2.0"}, "1.0.0", "1.1.0", []string{"1.1.0", "hotfix"},
		},
		"all that is newer than the target if the failed release cannot be ranked": {
			semver, []string{"hotfix", "0.9.0", "1.0.0", "1.1.0", "1.2.0"}, "1.0.0", "hotfix", []string{"hotfix", "1.2.0", "1.1.0"},
		},
		"all up to the failed release if the target cannot be ranked": {
			semver, []string{"hotfix", "1.0.0", "1.1.0", "1.2.0"}, "hotfix", "1.1.0", []string{"1.1.0", "1.0.0"},
		},
		"all if neither can be ranked": {
			semver, []string{"1.0.0", "1.1.0"}, "hotfix-1", "hotfix-2", []string{"hotfix-2", "1.1.0", "1.0.0"},
		},
		"nothing that cannot be a tag": {
			semver, []string{"not a tag", "1.0.0", "1.1.0"}, "1.0.0", "1.1.0", []string{"1.1.0"},
		},
		"among equals, what is listed in between": {
			numbered, []string{"1.0.0_1", "1.0.0_2", "1.0.0_3", "1.0.0_4"}, "1.0.0_1", "1.0.0_3", []string{"1.0.0_3", "1.0.0_2"},
		},
		"all equals of a failed release that is not known": {
			numbered, []string{"1.0.0_1", "1.0.0_2", "1.0.0_3"}, "1.0.0_1", "1.0.0_9", []string{"1.0.0_9", "1.0.0_3", "1.0.0_2"},
		},
		"nothing if the failed release is an older equal of the target": {
			numbered, []string{"1.0.0_1", "1.0.0_2"}, "1.0.0_2", "1.0.0_1", nil,
		},
		"what is lower where the policy descends": {
			releases.OrderSpec{Kind: releases.ByNumber, Descending: true}, []string{"9", "8", "7", "6"}, "9", "7", []string{"7", "8"},
		},
		"by appearance, what is listed in between": {
			releases.OrderSpec{}, []string{"zeta", "alpha", "mid", "beta"}, "zeta", "mid", []string{"mid", "alpha"},
		},
		"by appearance, all up to the failed release if the target is not known": {
			releases.OrderSpec{}, []string{"zeta", "alpha", "mid"}, "custom", "alpha", []string{"alpha", "zeta"},
		},
		"by appearance, all after the target if the failed release is not known": {
			releases.OrderSpec{}, []string{"zeta", "alpha", "mid"}, "zeta", "custom", []string{"custom", "mid", "alpha"},
		},
		"by appearance, nothing if the failed release is listed before the target": {
			releases.OrderSpec{}, []string{"zeta", "alpha", "mid"}, "mid", "zeta", nil,
		},
		"each tag once, at its newest place": {
			releases.OrderSpec{}, []string{"a", "b", "c", "b", "d", "c", "c"}, "a", "d", []string{"d", "b"},
		},
		"the failed release once": {
			semver, []string{"1.0.0", "1.1.0", "1.1.0"}, "1.0.0", "1.1.0", []string{"1.1.0"},
		},
		"nothing if both are the same": {
			semver, []string{"1.0.0", "1.1.0"}, "1.1.0", "1.1.0", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := ranking(t, test.spec, fixture.MakeRollout("shop").Obj())
			differ(t, test.want, tagsIn(inRange(in.Content(), fixture.Releases(test.ledger...), test.target, test.failed)))
		})
	}
}

func TestFailedReleaseIsTheContentThatWasDeployed(t *testing.T) {
	other := fixture.MakeRelease("1.1.0").Digest("sha256:other").Obj()
	onlyTag := v1alpha1.VersionInfo{Tag: "1.1.0"}
	mark := true
	withoutDigest := v1alpha1.VersionInfo{Tag: "1.1.0", ForwardOnly: &mark}
	for name, test := range map[string]struct {
		listed, entry, want v1alpha1.VersionInfo
	}{
		"and all is known of it":                      {marked("1.1.0", true), unmarked("1.1.0"), marked("1.1.0", true)},
		"though only the history says so":             {unmarked("1.1.0"), marked("1.1.0", true), marked("1.1.0", true)},
		"and not what was pushed later":               {marked("1.1.0", false), other, other},
		"of which only the history knows the content": {onlyTag, marked("1.1.0", true), marked("1.1.0", true)},
		"and its tag is all that is known":            {onlyTag, onlyTag, onlyTag},
		"or what its tag points to":                   {marked("1.1.0", false), onlyTag, marked("1.1.0", false)},
		"and a mark without a digest is asked for":    {withoutDigest, unmarked("1.1.0"), unmarked("1.1.0")},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.1.0").Version(test.entry).Failed(),
				fixture.MakeEntry("1.0.0").Succeeded(), fixture.MakeEntry("1.1.0").Version(marked("1.1.0", true)).Cancelled())
			in := ranking(t, releases.OrderSpec{Kind: releases.BySemver, Range: "*"}, rollout.Obj())
			ledger := []v1alpha1.VersionInfo{unmarked("1.0.0"), test.listed}
			differ(t, []v1alpha1.VersionInfo{test.want}, inRange(in.Content(), ledger, "1.0.0", "1.1.0"))
		})
	}
}

func TestBarrier(t *testing.T) {
	read := func(tag string, forwardOnly bool) releases.Metadata {
		return releases.Metadata{Tag: tag, Digest: "sha256:" + tag, ForwardOnly: forwardOnly}
	}
	for name, test := range map[string]struct {
		ledger   []v1alpha1.VersionInfo
		metadata []releases.Metadata
		want     barrier
	}{
		"none": {
			ledger: []v1alpha1.VersionInfo{marked("1.0.0", true), marked("1.1.0", false), marked("1.2.0", false), marked("1.3.0", true)},
		},
		"of a release that was skipped": {
			ledger: []v1alpha1.VersionInfo{marked("1.0.0", false), marked("1.1.0", true), marked("1.2.0", false)},
			want:   barrier{forwardOnly: []string{"1.1.0"}},
		},
		"of several, newest first": {
			ledger: []v1alpha1.VersionInfo{marked("1.0.0", false), marked("1.1.0", true), marked("1.1.1", true), marked("1.2.0", true)},
			want:   barrier{forwardOnly: []string{"1.2.0", "1.1.1", "1.1.0"}},
		},
		"not known": {
			ledger: []v1alpha1.VersionInfo{unmarked("1.0.0"), unmarked("1.1.0"), marked("1.1.5", true), unmarked("1.2.0")},
			want:   barrier{forwardOnly: []string{"1.1.5"}, unknown: []v1alpha1.VersionInfo{unmarked("1.2.0"), unmarked("1.1.0")}},
		},
		"as the registry reports just now": {
			ledger:   []v1alpha1.VersionInfo{unmarked("1.0.0"), unmarked("1.1.0"), unmarked("1.1.5"), unmarked("1.2.0")},
			metadata: []releases.Metadata{read("1.1.0", true), read("1.2.0", false)},
			want:     barrier{forwardOnly: []string{"1.1.0"}, unknown: []v1alpha1.VersionInfo{unmarked("1.1.5")}},
		},
		"not as the registry reports of other content": {
			ledger:   []v1alpha1.VersionInfo{marked("1.1.0", false), unmarked("1.2.0")},
			metadata: []releases.Metadata{{Tag: "1.2.0", Digest: "sha256:other"}, {Tag: "1.1.0", Digest: "sha256:1.1.0", ForwardOnly: true}},
			want:     barrier{unknown: []v1alpha1.VersionInfo{unmarked("1.2.0")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := ranking(t, releases.OrderSpec{Kind: releases.BySemver, Range: "*"}, goingBack(fixture.MakeRollout("shop")))
			in.Metadata = test.metadata
			differ(t, test.want, barrierBetween(in.Content(), in.registry(), test.ledger, "1.0.0", "1.2.0"), cmp.AllowUnexported(barrier{}))
		})
	}
}

// failedAfter returns a Rollout on which the newest of the known releases has failed,
// after the oldest has succeeded. The failure is due to be answered.
func failedAfter(ledger []v1alpha1.VersionInfo, changes ...func(*v1alpha1.RolloutRollback)) *v1alpha1.Rollout {
	good, bad := ledger[0], ledger[len(ledger)-1]
	rollout := goingBack(fixture.MakeRollout("shop").Releases(ledger...).History(
		fixture.MakeEntry(bad.Tag).Version(bad).Failed(), fixture.MakeEntry(good.Tag).Version(good).Succeeded(),
	), changes...)
	rollout.Status.ArtifactType = releases.OrNil("application/example")
	rollout.Status.History[0].RollbackDue = &rollout.Status.History[0].Timestamp
	return rollout
}

func TestMarksThatAreAskedFor(t *testing.T) {
	many := []v1alpha1.VersionInfo{unmarked("1.0.0")}
	var newest []string
	for i := range 25 {
		tag := fmt.Sprintf("1.%d.0", i+1)
		many = append(many, unmarked(tag))
		if i >= 5 {
			newest = append([]string{tag}, newest...)
		}
	}
	three := []v1alpha1.VersionInfo{unmarked("1.0.0"), unmarked("1.1.0"), unmarked("1.2.0")}
	for name, test := range map[string]struct {
		rollout *v1alpha1.Rollout
		change  func(*v1alpha1.Rollout)
		want    []string
	}{
		"all that are taken back": {rollout: failedAfter(three), want: []string{"1.2.0", "1.1.0"}},
		"not those that are known": {
			rollout: failedAfter([]v1alpha1.VersionInfo{unmarked("1.0.0"), marked("1.1.0", true), unmarked("1.1.5"), marked("1.2.0", false)}),
			want:    []string{"1.1.5"},
		},
		"none if all are known": {
			rollout: failedAfter([]v1alpha1.VersionInfo{unmarked("1.0.0"), marked("1.1.0", true), marked("1.2.0", false)}),
		},
		"the newest twenty":         {rollout: failedAfter(many), want: newest},
		"none if marks are ignored": {rollout: failedAfter(three, ignoringMarks)},
		"none without spec.rollback": {
			rollout: failedAfter(three), change: func(r *v1alpha1.Rollout) { r.Spec.Rollback = nil },
		},
		"none if the failure is not answered": {
			rollout: failedAfter(three), change: func(r *v1alpha1.Rollout) { r.Status.History[0].RollbackDue = nil },
		},
		"none while the promotion has not failed": {
			rollout: failedAfter(three), change: func(r *v1alpha1.Rollout) { r.Status.History[0].BakeStatus = nil },
		},
		"none if nothing is proven": {
			rollout: failedAfter(three), change: func(r *v1alpha1.Rollout) { r.Status.History = r.Status.History[:1] },
		},
		"none without a history": {
			rollout: failedAfter(three), change: func(r *v1alpha1.Rollout) { r.Status.History = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.rollout)
			}
			in := ranking(t, releases.OrderSpec{Kind: releases.BySemver, Range: "*"}, test.rollout)
			differ(t, test.want, tagsIn(marksToAsk(in)))
			if len(test.rollout.Status.History) == 2 {
				differ(t, test.want, tagsIn(MissingMetadata(in)))
			}
		})
	}
}

func TestForwardOnlyMarkIsStoredWhileItMatters(t *testing.T) {
	read := func(tag, digest string, forwardOnly bool) releases.Metadata {
		return releases.Metadata{Tag: tag, Digest: "sha256:" + digest, Revision: "main", ForwardOnly: forwardOnly}
	}
	yes := true
	cut := v1alpha1.VersionInfo{Tag: "1.0.0", ForwardOnly: &yes}
	for name, test := range map[string]struct {
		rollback *v1alpha1.RolloutRollback
		known    v1alpha1.VersionInfo
		metadata releases.Metadata
		want     v1alpha1.VersionInfo
	}{
		"as true":                         {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, v1alpha1.VersionInfo{Tag: "1.0.0"}, read("1.0.0", "1.0.0", true), marked("1.0.0", true)},
		"as false":                        {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, v1alpha1.VersionInfo{Tag: "1.0.0"}, read("1.0.0", "1.0.0", false), marked("1.0.0", false)},
		"together with what is known":     {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, unmarked("1.0.0"), read("1.0.0", "1.0.0", true), marked("1.0.0", true)},
		"not over what is known":          {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, marked("1.0.0", false), read("1.0.0", "1.0.0", true), marked("1.0.0", false)},
		"not if it is of other content":   {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, unmarked("1.0.0"), read("1.0.0", "other", true), unmarked("1.0.0")},
		"not without spec.rollback":       {nil, v1alpha1.VersionInfo{Tag: "1.0.0"}, read("1.0.0", "1.0.0", true), unmarked("1.0.0")},
		"and stays without spec.rollback": {nil, marked("1.0.0", false), read("1.0.0", "1.0.0", true), marked("1.0.0", false)},
		"not if marks are ignored": {
			&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersIgnore}, unmarked("1.0.0"), read("1.0.0", "1.0.0", true), unmarked("1.0.0"),
		},
		"over a mark whose content is not known": {&v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect}, cut, read("1.0.0", "1.0.0", false), marked("1.0.0", false)},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := fixture.MakeRollout("shop").Releases(test.known).History(fixture.MakeEntry("1.0.0").Version(test.known).Succeeded()).Obj()
			rollout.Spec.Rollback = test.rollback
			in := ranking(t, releases.OrderSpec{Kind: releases.BySemver, Range: "*"}, rollout)
			in.Metadata = []releases.Metadata{test.metadata}
			d := Decide(in)
			status := rollout.Status.DeepCopy()
			status.AvailableReleases = d.Ledger
			ResolveMetadata(in, status)
			differ(t, []v1alpha1.VersionInfo{test.want}, status.AvailableReleases)
			differ(t, test.want, status.History[0].Version)
			differ(t, d.MetadataResolved, cmp.Diff(test.known, test.want) != "")
			in.Rollout.Status = *status
			if again := Decide(in); again.MetadataResolved {
				t.Error("what was resolved is resolved again")
			}
		})
	}
}

// A list that was cut contains marks without digests.
func TestForwardOnlyMarkIsOnlyOfKnownContent(t *testing.T) {
	yes := true
	cut := v1alpha1.VersionInfo{Tag: "1.0.0", ForwardOnly: &yes}
	offered := fixture.MakeRelease("1.0.0").Digest("sha256:new").Obj()
	for name, test := range map[string]struct{ known, latest, want v1alpha1.VersionInfo }{
		"the policy does not say what it is":  {cut, v1alpha1.VersionInfo{Tag: "1.0.0"}, cut},
		"the policy says what it is now":      {cut, offered, offered},
		"the tag was pushed again":            {marked("1.0.0", true), offered, offered},
		"the policy says that it is the same": {marked("1.0.0", true), unmarked("1.0.0"), marked("1.0.0", true)},
	} {
		t.Run(name, func(t *testing.T) {
			in := ranking(t, releases.OrderSpec{Kind: releases.BySemver, Range: "*"}, goingBack(fixture.MakeRollout("shop").Releases(test.known)))
			in.Policy.Latest = &test.latest
			ledger, _ := in.grow()
			differ(t, []v1alpha1.VersionInfo{test.want}, ledger)
		})
	}
}
