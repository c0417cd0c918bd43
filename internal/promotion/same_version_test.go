// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// promotions returns the releases that a Rollout promotes, in their order, while it sees
// the offers one after another. Nothing protects them, so each succeeds at once.
func promotions(t *testing.T, rollout *v1alpha1.Rollout, offers ...promotion.Input) []string {
	t.Helper()
	for _, in := range offers {
		for again := true; again; {
			in.Rollout = rollout
			again = recordDecision(t, in)
		}
	}
	var promoted []string
	for _, entry := range slices.Backward(rollout.Status.History) {
		promoted = append(promoted, entry.Version.Tag)
	}
	return promoted
}

// recordDecision stores a decision in the status, and reports whether it was a promotion.
func recordDecision(t *testing.T, in promotion.Input) bool {
	t.Helper()
	d := promotion.Decide(in)
	history, err := promotion.Record(in, d)
	if err != nil {
		t.Fatal(err)
	}
	in.Rollout.Status.History, in.Rollout.Status.AvailableReleases = history, d.Ledger
	promotion.ResolveMetadata(in, &in.Rollout.Status)
	return d.Action.Promotes()
}

// seen returns what a policy names, one after another, while the registry has all tags.
func seen(spec releases.OrderSpec, registry []string, names ...string) []promotion.Input {
	var all []promotion.Input
	for _, tag := range names {
		all = append(all, given(rollout()).ranked(spec).latest(tag).registryHas(registry...).in())
	}
	return all
}

func TestBuildsOfOneVersionNeverGoBack(t *testing.T) {
	builds := []string{"1.4.0_17", "1.4.0_18", "1.4.0_19"}
	large := []string{"9007199254740992", "9007199254740993"} // one float64
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		offers  []promotion.Input
		want    []string
	}{
		"while a policy names any of them": {
			rollout(), append(seen(numbered, builds[:1], "1.4.0_17"), seen(numbered, builds, "1.4.0_19", "1.4.0_19", "1.4.0_17", "1.4.0_19", "1.4.0_19", "1.4.0_18")...),
			[]string{"1.4.0_17", "1.4.0_19"},
		},
		"the newest is taken from the scan, although the policy never names it": {
			rollout(), append(seen(numbered, builds[:1], "1.4.0_17"), seen(numbered, builds, "1.4.0_17", "1.4.0_18")...),
			[]string{"1.4.0_17", "1.4.0_19"},
		},
		"one after another with Next, whichever the policy names": {
			rollout().Strategy(v1alpha1.ReleaseNext), append(seen(numbered, builds[:1], "1.4.0_17"), seen(numbered, builds, "1.4.0_19", "1.4.0_18", "1.4.0_17")...),
			builds,
		},
		"with Next, not back from the first": {
			rollout().Strategy(v1alpha1.ReleaseNext), seen(numbered, builds, "1.4.0_19", "1.4.0_18", "1.4.0_17"),
			[]string{"1.4.0_19"},
		},
		"numbers that Flux cannot tell apart": {
			rollout(), seen(byNumber, large, large[0], large[1], large[0], large[1]),
			large,
		},
		"with Next, numbers that Flux cannot tell apart": {
			rollout().Strategy(v1alpha1.ReleaseNext), seen(byNumber, large, large[1], large[0], large[1]),
			large[1:],
		},
		"descending numbers that Flux cannot tell apart": {
			rollout(), seen(descending(byNumber), large, large[0], large[1], large[0]),
			large[:1],
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := promotions(t, test.rollout.Obj(), test.offers...); !slices.Equal(got, test.want) {
				t.Errorf("promoted %v, want %v", got, test.want)
			}
		})
	}
}

// dated tags look like 20261101-3f2a. The policy compares only their dates.
var dated = releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^(?P<date>[0-9]{8})-[0-9a-f]+$`, Extract: "$date"}

func TestReleaseOfTheSameVersionAsTheDeployedOne(t *testing.T) {
	same := func(tag, deployed string) string {
		return tag + " has the same version as " + deployed + ", and the policy cannot tell which is newer: pin it to deploy it"
	}
	built := func(tag, digest string, hours int) v1alpha1.VersionInfo {
		return release(tag).Digest("sha256:" + digest).Created(noon.Add(time.Duration(hours) * time.Hour)).Obj()
	}
	for name, test := range map[string]struct {
		spec               releases.OrderSpec
		deployed, released v1alpha1.VersionInfo
		want               map[string][]string // the messages of the holds
		says               string              // of the tag
	}{
		"is held if nothing tells which one is newer": {
			anySemver, sha("1.4.0", "aa"), sha("v1.4.0", "bb"),
			map[string][]string{"v1.4.0": {same("v1.4.0", "1.4.0")}}, "",
		},
		"is held if only one date is known": {
			anySemver, sha("1.4.0", "aa"), built("v1.4.0", "bb", 1),
			map[string][]string{"v1.4.0": {same("v1.4.0", "1.4.0")}}, "",
		},
		"is held if both were built at the same time": {
			anySemver, built("1.4.0", "aa", 0), built("v1.4.0", "bb", 0),
			map[string][]string{"v1.4.0": {same("v1.4.0", "1.4.0")}}, "",
		},
		"is no candidate if it is the same content": {
			anySemver, sha("1.4.0", "aa"), sha("v1.4.0", "aa"),
			map[string][]string{}, "v1.4.0 is another name of 1.4.0, which is deployed: both tags have the same content",
		},
		"is newer if it was built later": {
			anySemver, built("1.4.0", "aa", 0), built("v1.4.0", "bb", 1), map[string][]string{"v1.4.0": nil}, "",
		},
		"is older if it was built earlier": {
			anySemver, built("1.4.0", "aa", 1), built("v1.4.0", "bb", 0),
			map[string][]string{}, "v1.4.0 is not newer than 1.4.0, which is deployed",
		},
		"of an alphabetical policy is held, too": {
			dated, release("20261101-aa").Obj(), release("20261101-bb").Obj(),
			map[string][]string{"20261101-bb": {same("20261101-bb", "20261101-aa")}}, "",
		},
		"of an alphabetical policy is newer if it was built later": {
			dated, built("20261101-bb", "bb", 0), built("20261101-aa", "aa", 1), map[string][]string{"20261101-aa": nil}, "",
		},
		"of a numerical policy is held, too": {
			byNumber, release("10").Obj(), release("10.0").Obj(),
			map[string][]string{"10.0": {same("10.0", "10")}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strategy := range []v1alpha1.ReleaseStrategy{v1alpha1.ReleaseNewest, v1alpha1.ReleaseNext} {
				in := given(rollout().Strategy(strategy).Releases(test.deployed).History(entry(test.deployed.Tag).Version(test.deployed).Succeeded())).
					ranked(test.spec).names(test.released).in()
				d := promotion.Decide(in)
				got := map[string][]string{}
				for _, verdict := range d.Candidates {
					var messages []string
					for _, hold := range verdict.Holds {
						messages = append(messages, hold.Message)
					}
					got[verdict.Release.Tag] = messages
				}
				diff(t, test.want, got)
				diff(t, test.says, promotion.StandingOf(in, d, test.released.Tag).Message)
			}
		})
	}
}

func TestReleaseOfTheSameVersionHoldsNoOther(t *testing.T) {
	shop := rollout().Strategy(v1alpha1.ReleaseNext).Ledger("1.4.0", "v1.4.0", "1.5.0").History(entry("1.4.0").Succeeded())
	d := promotion.Decide(given(shop).in())
	diff(t, map[string][]string{"v1.4.0": {v1alpha1.SameVersionReason}, "1.5.0": {}}, reasons(d))
	diff(t, "1.5.0", d.Release.Tag)
	diff(t, []string{"1.5.0"}, tagsOf(promotion.Considered(d.Candidates)))
}

func TestPinDeploysAReleaseOfTheSameVersion(t *testing.T) {
	d := promotion.Decide(given(rollout().Ledger("1.4.0", "v1.4.0").Pin("v1.4.0").History(entry("1.4.0").Succeeded())).in())
	diff(t, "v1.4.0", d.Release.Tag)
}

func TestReleaseThatFailedUnderAnotherNameIsHeld(t *testing.T) {
	failed := entry("1.4.0").Version(sha("1.4.0", "bad")).Failed()
	in := given(rollout().Releases(sha("1.3.0", "ok"), sha("1.4.0", "bad"), sha("v1.4.0", "bad")).
		History(entry("1.3.0").Version(sha("1.3.0", "ok")).Succeeded(), failed)).in()
	diff(t, map[string][]string{"v1.4.0": {v1alpha1.FailedBeforeReason}, "1.4.0": {v1alpha1.FailedBeforeReason}}, reasons(promotion.Decide(in)))
}

func tagsOf(verdicts []promotion.Verdict) []string {
	var all []string
	for _, verdict := range verdicts {
		all = append(all, verdict.Release.Tag)
	}
	return all
}

// published is a release of the registry, with its rank for the policy, and its rank among
// those that are equal for it.
type published struct {
	v1alpha1.VersionInfo
	rank, build int
}

// registries returns releases of which a policy cannot tell several apart.
var registries = map[string]struct {
	spec releases.OrderSpec
	make func(rank, build int) string
	// builds is false if the tags do not tell the builds apart.
	builds bool
}{
	"builds of versions": {
		numbered, func(rank, build int) string { return fmt.Sprintf("1.%d.0_%d", rank, build) }, true,
	},
	"versions with and without a prefix": {
		anySemver, func(rank, build int) string { return []string{"1", "v1"}[build%2] + fmt.Sprintf(".%d.0", rank) }, false,
	},
	"large numbers": {
		byNumber, func(rank, build int) string { return strconv.FormatInt(1<<60+int64(rank)<<10+int64(build), 10) }, true,
	},
	"numbers written differently": {
		byNumber, func(rank, build int) string { return strconv.Itoa(rank) + []string{"", ".0", ".00"}[build%3] }, false,
	},
	"builds of days": {
		dated, func(rank, build int) string { return fmt.Sprintf("202611%02d-%x", rank, build) }, false,
	},
}

// A policy names any of the tags that are equal for it, another one at each evaluation.
func TestPolicyThatChangesItsMindNeverGoesBack(t *testing.T) {
	for name, registry := range registries {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5 * *more) {
				rng := rand.New(rand.NewPCG(seed, 51))
				all := map[string]published{}
				shop := rollout().Strategy([]v1alpha1.ReleaseStrategy{v1alpha1.ReleaseNewest, v1alpha1.ReleaseNext}[rng.IntN(2)]).HistoryLimit(100).Obj()
				for range 40 {
					if rng.IntN(3) == 0 || len(all) == 0 {
						p := publish(rng, registry.make, registry.builds)
						if _, pushed := all[p.Tag]; !pushed {
							all[p.Tag] = p
						}
					}
					recordDecision(t, flips(rng, registry.spec, all, shop))
				}
				checkForward(t, seed, shop, all)
			}
		})
	}
}

// publish makes a release. Not of every image it is known what it contains, and when it was
// built.
func publish(rng *rand.Rand, tag func(rank, build int) string, builds bool) published {
	p := published{rank: 1 + rng.IntN(3), build: rng.IntN(5)}
	p.Tag = tag(p.rank, p.build)
	if rng.IntN(2) == 0 {
		made := release(p.Tag).Digest(fmt.Sprintf("sha256:%d", rng.IntN(12)))
		if rng.IntN(2) == 0 {
			made.Created(noon.Add(time.Duration(rng.IntN(6)) * time.Hour))
		}
		p.VersionInfo = made.Obj()
	}
	if !builds {
		p.build = 0
	}
	return p
}

// flips returns the input of a decision while the policy names any of the best releases.
func flips(rng *rand.Rand, spec releases.OrderSpec, all map[string]published, shop *v1alpha1.Rollout) promotion.Input {
	var best []published
	var scanned []string
	var known []releases.Metadata
	for _, tag := range slices.Sorted(maps.Keys(all)) {
		p := all[tag]
		scanned = append(scanned, p.Tag)
		if len(best) > 0 && best[0].rank < p.rank {
			best = nil
		}
		if len(best) == 0 || best[0].rank == p.rank {
			best = append(best, p)
		}
		if p.Digest != nil && p.Created != nil && rng.IntN(2) == 0 {
			known = append(known, releases.Metadata{Tag: p.Tag, Digest: *p.Digest, Created: p.Created.Time})
		}
	}
	named := v1alpha1.VersionInfo{Tag: best[rng.IntN(len(best))].Tag}
	if rng.IntN(2) == 0 {
		named.Digest = all[named.Tag].Digest
	}
	in := given(rollout()).ranked(spec).names(named).registryHas(scanned...).in()
	in.Rollout, in.Metadata = shop, known
	return in
}

// checkForward checks that each promotion is certainly newer than the one before it.
func checkForward(t *testing.T, seed uint64, shop *v1alpha1.Rollout, all map[string]published) {
	t.Helper()
	history := shop.Status.History
	for i := 0; i+1 < len(history); i++ {
		now, was := all[history[i].Version.Tag], all[history[i+1].Version.Tag]
		later := now.Created != nil && was.Created != nil && now.Created.After(was.Created.Time) && *now.Digest != *was.Digest
		if now.rank < was.rank || now.rank == was.rank && (now.build < was.build || now.build == was.build && !later) {
			t.Errorf("seed %d: %s was promoted after %s", seed, now.Tag, was.Tag)
		}
	}
}
