// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// ledgerBound is the size limit of availableReleases, in bytes of JSON.
const ledgerBound = 60 << 10

// versions returns n releases, oldest first: 1.0.0, 1.1.0, and so on. Padding makes them
// longer.
func versions(n int, padding string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("1.%d.0%s", i, padding)
	}
	return all
}

// longest makes the tag "1.1234.0" as long as a tag can be.
var longest = "-" + strings.Repeat("x", 119)

// behind returns a Rollout that runs the oldest of five thousand releases. The scan shows
// them all, while a closed schedule holds them.
func behind(r *fixture.RolloutBuilder, tags []string) *situation {
	return given(r.History(entry(tags[0]).Succeeded())).latest(tags[len(tags)-1]).scanned(tags...).
		schedules(closedUntil(never, "freeze"))
}

// stored decides until there is nothing new to store, and answers requests for metadata.
// It returns how many releases were requested.
func stored(t *testing.T, s *situation, metadata func(tag string) releases.Metadata) (asked int) {
	t.Helper()
	seen := map[string]bool{}
	for range 8 {
		s.input.Metadata = nil
		for _, v := range promotion.MissingMetadata(s.input) {
			seen[v.Tag] = true
			s.input.Metadata = append(s.input.Metadata, metadata(v.Tag))
		}
		d := promotion.Decide(s.input)
		status := s.input.Rollout.Status.DeepCopy()
		status.AvailableReleases = d.Ledger
		promotion.ResolveMetadata(s.input, status)
		if reflect.DeepEqual(status, &s.input.Rollout.Status) {
			return len(seen)
		}
		s.input.Rollout.Status = *status
		checkLimit(t, d.Ledger)
	}
	t.Fatal("there is something new to store in every pass")
	return 0
}

func checkLimit(t *testing.T, ledger []v1alpha1.VersionInfo) {
	t.Helper()
	wire, err := json.Marshal(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if len(wire) > ledgerBound {
		t.Fatalf("the ledger takes %d bytes", len(wire))
	}
}

// silent is a registry that reports nothing.
func silent(tag string) releases.Metadata { return releases.Metadata{Tag: tag, Digest: "sha256:00"} }

// talkative is a registry that reports as much as it can.
func talkative(tag string) releases.Metadata {
	text := strings.Repeat("<é\x01", 400)
	return releases.Metadata{
		Tag: tag, Digest: "sha256:" + strings.Repeat("a", 64), Version: text, Revision: text, Created: noon,
		ArtifactType: "application/example", Title: text, Description: text, Source: text,
	}
}

// usual is a registry that reports what most registries do.
func usual(tag string) releases.Metadata {
	return releases.Metadata{
		Tag: tag, Digest: "sha256:" + strings.Repeat("a", 64), Version: tag, Revision: strings.Repeat("b", 40),
		Created: noon, ArtifactType: "application/example",
	}
}

func TestThousandsOfReleasesStayWithinTheirLimitAndChooseTheSame(t *testing.T) {
	for name, world := range map[string]struct {
		padding  string
		metadata func(string) releases.Metadata
	}{
		"a registry that says nothing":                     {"", silent},
		"a registry that says the usual":                   {"", usual},
		"the longest tags, and a registry that says a lot": {longest, talkative},
	} {
		if world.padding == "" && *more == 1 {
			continue // the longest tags come nearest to the limit
		}
		tags := versions(5000, world.padding)
		newest, next, middle := tags[len(tags)-1], tags[1], tags[2500]
		for rule, test := range map[string]struct {
			rollout *fixture.RolloutBuilder
			gates   []*fixture.GateBuilder
			want    string
		}{
			"the newest is chosen":               {rollout: rollout(), want: newest},
			"the next is chosen, one by one":     {rollout: rollout().Strategy(v1alpha1.ReleaseNext), want: next},
			"what alone a gate allows is chosen": {rollout: rollout(), gates: []*fixture.GateBuilder{gate("qa").Allow(middle)}, want: middle},
			"what is let past the gates is chosen": {
				rollout: rollout().Annotate(v1alpha1.BypassGatesAnnotation, middle),
				gates:   []*fixture.GateBuilder{gate("qa").Closed()}, want: middle,
			},
		} {
			t.Run(name+": "+rule, func(t *testing.T) {
				s := behind(test.rollout, tags).gates(test.gates...)
				if asked := stored(t, s, world.metadata); asked == 0 || asked > 250 {
					t.Errorf("%d releases were asked for", asked)
				}
				checkKept(t, s, tags[0], newest)
				all := promotion.Decide(s.schedules().in())
				kept := promotion.Decide(s.scanned().in())
				diff(t, test.want, all.Release.Tag)
				diff(t, test.want, kept.Release.Tag)
			})
		}
	}
}

// checkKept checks that some hundred releases are kept in order, that the given ones are
// among them, and that the decision reports that these are not all.
func checkKept(t *testing.T, s *situation, wanted ...string) {
	t.Helper()
	ledger := tags(s.input.Rollout.Status.AvailableReleases)
	if len(ledger) < 150 {
		t.Errorf("only %d releases are kept", len(ledger))
	}
	if !promotion.Decide(s.in()).Full {
		t.Error("nothing says that more do not fit")
	}
	for _, tag := range wanted {
		if !slices.Contains(ledger, tag) {
			t.Errorf("%s is not kept", tag)
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(ledger), func(a, b string) int {
		result, _ := order(anySemver).Compare(a, b)
		return result
	})
	diff(t, sorted, ledger)
}

// TestReleasesThatComeOneByOneAreKeptInOrder: while an environment is pinned, releases
// appear that are not promoted, and no scan shows them again.
func TestReleasesThatComeOneByOneAreKeptInOrder(t *testing.T) {
	for strategy, want := range map[v1alpha1.ReleaseStrategy]string{
		v1alpha1.ReleaseNewest: "1.1999.0", v1alpha1.ReleaseNext: "1.1.0",
	} {
		t.Run(string(strategy), func(t *testing.T) {
			there := 2000 - 40**more
			all := versions(2000, "")
			s := given(rollout().Strategy(strategy).Pin(all[0]).Ledger(all[:there]...).History(entry(all[0]).Succeeded()))
			for _, tag := range all[there:] {
				d := promotion.Decide(s.latest(tag).in())
				s.input.Rollout.Status.AvailableReleases = d.Ledger
			}
			checkLimit(t, s.input.Rollout.Status.AvailableReleases)
			checkKept(t, s, all[0], want, "1.1999.0")
			s.input.Rollout.Spec.WantedVersion = nil
			diff(t, want, promotion.Decide(s.in()).Release.Tag)
		})
	}
}

// TestOneByOneNoneIsSkippedThatIsKept: from far behind, releases are promoted in order,
// one after another, as long as none between them was left out.
func TestOneByOneNoneIsSkippedThatIsKept(t *testing.T) {
	all := versions(5000, "")
	s := behind(rollout().Strategy(v1alpha1.ReleaseNext), all).schedules()
	for step := 1; step <= 20; step++ {
		d := promotion.Decide(s.in())
		diff(t, all[step], d.Release.Tag)
		history, err := promotion.Record(s.in(), d)
		if err != nil {
			t.Fatal(err)
		}
		s.input.Rollout.Status.History, s.input.Rollout.Status.AvailableReleases = history, d.Ledger
		s.input.Rollout.Status.History[0].BakeStatus = to(v1alpha1.BakeSucceeded)
		checkLimit(t, d.Ledger)
	}
}

// TestForwardOnlyMarksAreKeptLongest: they are asked for when a promotion has failed, and
// then there is no time to lose.
func TestForwardOnlyMarksAreKeptLongest(t *testing.T) {
	var all []v1alpha1.VersionInfo
	for i, tag := range versions(450, "") {
		release, forwardOnly := full(tag, strings.Repeat("a", 64)), i%3 == 0
		release.ForwardOnly = &forwardOnly
		all = append(all, release)
	}
	s := given(rollout().Releases(all...).History(entry(all[400].Tag).Version(all[400]).Succeeded()))
	s.input.Rollout.Spec.Rollback, s.input.Rollout.Status.ArtifactType = &v1alpha1.RolloutRollback{}, to("application/example")
	diff(t, 0, stored(t, s, usual))
	kept := s.input.Rollout.Status.AvailableReleases
	diff(t, tags(all), tags(kept))
	cut := 0
	for i := range kept {
		diff(t, all[i].ForwardOnly, kept[i].ForwardOnly)
		if kept[i].Digest == nil {
			cut++
		}
	}
	if cut < 100 {
		t.Errorf("only %d releases lost the rest of their metadata", cut)
	}
}

// TestFullLedgerComesToRest: whatever a policy and a scan show, and in whatever
// order, a full list of known releases is not written in every pass, and the releases it
// lost change no choice.
func TestFullLedgerComesToRest(t *testing.T) {
	for seed := range uint64(2 * *more) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 6))
			s, opened := crowd(random)
			stored(t, s, []func(string) releases.Metadata{silent, usual, talkative}[random.IntN(3)])
			all := promotion.Decide(opened.in())
			again := promotion.Decide(opened.in())
			diff(t, all.Ledger, again.Ledger)
			opened.input.Rollout = s.input.Rollout
			diff(t, all.Release.Tag, promotion.Decide(opened.in()).Release.Tag)
			opened.scanned()
			diff(t, all.Release.Tag, promotion.Decide(opened.in()).Release.Tag)
		})
	}
}

// crowd returns a Rollout with more releases than fit, some of them equal to others: once
// held by a schedule and once not.
func crowd(random *rand.Rand) (held, opened *situation) {
	var all []string
	padding := strings.Repeat("0", random.IntN(110))
	for i := range 400 + random.IntN(2000) {
		all = append(all, fmt.Sprintf("1.%d.0_%d%s", i/(1+random.IntN(3)), random.IntN(4), padding))
	}
	r := rollout()
	if random.IntN(2) == 0 {
		r.Strategy(v1alpha1.ReleaseNext)
	}
	if random.IntN(3) == 0 {
		r.Retention(int32(1+random.IntN(30)), int32(1+random.IntN(3000)))
	}
	if random.IntN(2) == 0 {
		r.Ledger(all[:random.IntN(300)]...)
	}
	marks := random.IntN(2) == 0
	current := all[random.IntN(100)]
	build := func() *situation {
		s := given(rollout()).ranked(numbered).latest(all[len(all)-1])
		s.input.Rollout = r.History(entry(current).Succeeded()).Obj()
		if marks {
			s.input.Rollout.Spec.Rollback = &v1alpha1.RolloutRollback{}
		}
		return s.scanned(all...)
	}
	held, opened = build().schedules(closedUntil(never, "freeze")), build()
	if random.IntN(2) == 0 {
		some := gate("qa").Allow(all[200+random.IntN(200)], all[100+random.IntN(200)], "9.9.9")
		held.gates(some)
		opened.gates(some)
	}
	return held, opened
}
