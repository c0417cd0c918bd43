// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestStatusStaysWithinItsLimitWhateverItIsMadeOf: the status becomes stable, and what
// exceeds its size limit changes no choice.
func TestStatusStaysWithinItsLimitWhateverItIsMadeOf(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := NewWithT(t)
			in := flood(rand.New(rand.NewPCG(seed, 10)))
			wanted := promotion.Decide(in)
			after, err := After(in, wanted)
			g.Expect(err).NotTo(HaveOccurred())
			checkSize(g, after)
			if wanted.Action.Promotes() {
				g.Expect(after.History[0].Version.Tag).To(Equal(wanted.Release.Tag))
			}
			for pass := 0; ; pass++ {
				g.Expect(pass).To(BeNumerically("<", 6), "something changes in every pass")
				in.Rollout.Status = *after
				d := promotion.Decide(in)
				after, err = After(in, d)
				g.Expect(err).NotTo(HaveOccurred())
				checkSize(g, after)
				if calm := d.Action == promotion.Nothing || d.Action == promotion.Wait; calm && equality.Semantic.DeepEqual(after, &in.Rollout.Status) {
					break
				}
			}
			for _, entry := range after.History {
				if tag := entry.Version.Tag; known(in.Rollout.Status.AvailableReleases, tag) {
					g.Expect(known(after.AvailableReleases, tag)).To(BeTrue(), "the history names %s", tag)
				}
			}
		})
	}
}

func checkSize(g Gomega, status *v1alpha1.RolloutStatus) {
	wire, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(wire)).To(BeNumerically("<=", fixture.StatusLimit))
}

func known(ledger []v1alpha1.VersionInfo, tag string) bool { return releases.TagsOf(ledger)[tag] }

// flood returns as much of everything as users may create.
func flood(random *rand.Rand) promotion.Input {
	pick := func(n int) int { return random.IntN(n) }
	say := func() string { return fixture.Strange[pick(len(fixture.Strange))] }
	order, err := releases.NewOrder(releases.OrderSpec{Kind: releases.BySemver, Range: ">=0.0.0-0"})
	if err != nil {
		panic(err)
	}
	var tags []string
	padding := strings.Repeat("x", pick(115))
	for i := range 30 + pick(5000) {
		tags = append(tags, fmt.Sprintf("1.%d.0-%s", i, "r"+padding))
	}
	in := promotion.Input{Now: fixture.Noon, Rollout: floodedRollout(pick, say, tags)}
	in.Policy = releases.Policy{Name: strings.Repeat("p", 253), Order: order, Latest: &v1alpha1.VersionInfo{Tag: tags[len(tags)-1]}, Scanned: tags}
	if pick(3) == 0 {
		in.Policy.Problem = &verdict.Problem{Reason: v1alpha1.ImagePolicyNotReadyReason, Message: say()}
	}
	for _, v := range promotion.MissingMetadata(in) {
		in.Metadata = append(in.Metadata, releases.Metadata{
			Tag: v.Tag, Digest: "sha256:" + strings.Repeat("a", 64), Version: say(), Revision: say(), Created: in.Now,
			ArtifactType: say(), Title: say(), Description: say(), Source: say(),
		})
	}
	floodGates(&in, pick, say, tags)
	for i := range pick(1000) {
		check := fixture.MakeHealthCheck(fmt.Sprintf("check-%d-%s", i, strings.Repeat("c", pick(200)))).Message(say())
		check.State([]v1alpha1.HealthStatus{v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthStatusPending}[pick(3)])
		in.Health.Checks = append(in.Health.Checks, *check.Obj())
	}
	for i := range pick(600) {
		states := []v1alpha1.TargetState{v1alpha1.TargetApplied, v1alpha1.TargetPending, v1alpha1.TargetFailed, v1alpha1.TargetConflict}
		in.Targets.All = append(in.Targets.All, content.Target{
			Kind: "Kustomization", Namespace: "team", Name: fmt.Sprintf("app-%04d", i), State: states[pick(4)], Message: say(),
		})
	}
	return in
}

func floodedRollout(pick func(int) int, say func() string, tags []string) *v1alpha1.Rollout {
	r := fixture.MakeRollout("shop").HistoryLimit(int32(1 + pick(300)))
	for _, key := range []string{
		v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation, v1alpha1.ForceDeployAnnotation, v1alpha1.RetryAnnotation,
		v1alpha1.BypassGatesAnnotation, v1alpha1.UnblockFailedAnnotation, v1alpha1.ReconcileRequestAnnotation,
	} {
		if pick(4) == 0 {
			r.Annotate(key, say())
		}
	}
	for _, set := range []func(){
		func() { r.BakeTime(time.Hour) },
		func() { r.DeployTimeout(time.Duration(pick(3)) * time.Hour) },
		func() { r.Strategy(v1alpha1.ReleaseNext) },
		func() { r.SelectAllChecks() },
		func() { r.Pin(tags[pick(len(tags))]) },
		func() { r.Ledger(tags[:pick(len(tags))]...) },
	} {
		if pick(3) == 0 {
			set()
		}
	}
	var history []*fixture.EntryBuilder
	for range pick(250) {
		states := []v1alpha1.BakeStatus{v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled}
		entry := fixture.MakeEntry(tags[pick(len(tags))]).State(states[pick(3)]).Message(say()).Because(say()).By(v1alpha1.TriggeredByUser, say()).Approval(anyRecord(pick, say))
		history = append(history, entry)
	}
	if len(history) > 0 && pick(2) == 0 {
		history[0].Deploying()
	}
	return r.History(history...).Obj()
}

// anyRecord returns what people may have said of a promotion, as far as the API server lets them.
func anyRecord(pick func(int) int, say func() string) *v1alpha1.ApprovalRecord {
	cut := func(text string) string { return string([]rune(text)[:min(len([]rune(text)), 1024)]) }
	record := &v1alpha1.ApprovalRecord{Outcome: v1alpha1.OutcomeOverridden}
	for range pick(11) {
		record.Gates = append(record.Gates, "cluster/"+strings.Repeat("g", 253))
		record.By = append(record.By, v1alpha1.RecordedApproval{
			Name: strings.Repeat("n", 253), UID: "01234567-89ab-cdef-0123-456789abcdef", Username: cut(say()), Role: strings.Repeat("r", 40), Time: metav1.NewTime(fixture.Noon), Reason: cut(say()),
		})
	}
	return record
}

func floodGates(in *promotion.Input, pick func(int) int, say func() string, tags []string) {
	allowed := make([]string, pick(10_000))
	for i := range allowed {
		allowed[i] = tags[pick(len(tags))]
	}
	for i := range pick(1000) {
		gate := fixture.MakeGate(fmt.Sprintf("gate-%04d-%s", i, strings.Repeat("g", pick(240))), "shop")
		switch pick(300) {
		case 0:
			gate.Closed()
		case 1:
			gate.Allow(allowed...)
		case 2:
			gate.Allow(say(), say())
		}
		in.Gates.Gates = append(in.Gates.Gates, *gate.Obj())
	}
	for range pick(3) {
		in.Gates.Schedules = append(in.Gates.Schedules, promotion.Window{
			Schedule: "RolloutSchedule " + strings.Repeat("s", 253), Open: pick(2) == 0, Message: say(), Until: in.Now.Add(time.Hour),
		})
	}
}

// Flux is not Ready for a moment in each of its passes. That one target fails changes
// nothing of the others.
func TestTargetBeyondTheLimitStaysApplied(t *testing.T) {
	target := func(name string, state v1alpha1.TargetState) content.Target {
		return content.Target{Kind: "Kustomization", Namespace: fixture.Namespace, Name: name, State: state}
	}
	for name, tt := range map[string]struct {
		unlisted v1alpha1.UnlistedCounts
		want     v1alpha1.TargetState
	}{
		"it was applied":               {v1alpha1.UnlistedCounts{Targets: 1, AppliedTargets: 1}, v1alpha1.TargetApplied},
		"it was one of several":        {v1alpha1.UnlistedCounts{Targets: 2, AppliedTargets: 2}, v1alpha1.TargetApplied},
		"it was perhaps not":           {v1alpha1.UnlistedCounts{Targets: 2, AppliedTargets: 1}, v1alpha1.TargetPending},
		"nothing was beyond the limit": {v1alpha1.UnlistedCounts{}, v1alpha1.TargetPending},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0")).Obj()
			rollout.Status.Unlisted = &tt.unlisted
			rollout.Status.Targets = []v1alpha1.TargetStatus{{
				Kind: "Kustomization", Namespace: fixture.Namespace, Name: "a", Version: "1.0.0", State: v1alpha1.TargetFailed, Reason: v1alpha1.TargetNotApplied,
			}}
			in := promotion.Input{Now: fixture.Noon, Rollout: rollout}
			in.Targets.All = []content.Target{target("a", v1alpha1.TargetFailed), target("b", v1alpha1.TargetPending)}
			status, err := After(in, promotion.Decision{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status.Targets[1].State).To(Equal(tt.want))
		})
	}
}

func TestUnlistedTargetsAreCountedByWhetherTheyAreApplied(t *testing.T) {
	g, s := NewWithT(t), &v1alpha1.RolloutStatus{}
	for i := range 300 {
		state := v1alpha1.TargetApplied
		if i%10 == 0 {
			state = v1alpha1.TargetFailed
		}
		s.Targets = append(s.Targets, v1alpha1.TargetStatus{
			Kind: "Kustomization", Namespace: fixture.Namespace, Name: fmt.Sprintf("app-%03d", i), Version: "1.0.0", State: state,
		})
	}
	keepTargets(s, 300, countApplied(s.Targets))
	g.Expect(s.Unlisted.Targets).To(BeNumerically(">", 0))
	g.Expect(s.Unlisted.AppliedTargets).To(Equal(s.Unlisted.Targets), "what has a problem is listed first")
}
