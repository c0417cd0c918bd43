// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// listen makes the env log its steps.
func (s *testEnv) listen() {
	s.Ctx = ctrl.LoggerInto(s.Ctx, s.Log.Logger())
}

// heard returns the info lines since the last call, after their reasons.
func (s *testEnv) heard() []string {
	var all []string
	for _, line := range s.Log.Info() {
		all = append(all, line.String())
	}
	s.Log.Forget()
	return all
}

func TestEachTransitionOfAPromotionIsLoggedOnce(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.listen()
	s.deployAndBake("shop")
	s.heard()
	s.Events.Take()

	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.heard()).To(Equal([]string{
		"ReleaseDetected: release 1.1.0 was detected",
		"BakeTimeDeploying: promoted 1.1.0 (the newest eligible release of ImagePolicy shop); waiting for Flux to apply 1.1.0 to 2 targets, then for 1 HealthCheck",
	}))
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.heard()).To(BeEmpty(), "that targets progress is reported with what follows")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.heard()).To(Equal([]string{
		"BakeTimeStarted: 1.1.0: applied and healthy (1 HealthCheck); baking for 10m0s, until 2026-03-02T12:20:00Z",
	}))
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.heard()).To(Equal([]string{
		"BakeTimePassed: 1.1.0: applied and healthy (1 HealthCheck) for the bake time of 10m0s",
	}))

	for range 3 { // at rest
		s.reconcile("shop")
	}
	s.Expect(s.Log.Info()).To(BeEmpty(), "at rest")
	s.Expect(s.Log.All()).To(HaveLen(3), "one line for each pass, for debugging")
}

// Every event is in the log, in the same order and with the same words.
func TestLogSaysWhatTheEventsSay(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.listen()
	s.deployAndBake("shop")
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Remove(&v1alpha1.RolloutGate{}, "approval")
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checkFails("web", "out of stock", s.Clock.Now())
	s.rest("shop")
	s.changeTag("0.0.9")
	s.rest("shop")
	s.ask(v1alpha1.ForceDeployAnnotation, "1.1.0")
	s.rest("shop")
	s.Change(fixture.MakeRepository("shop").Obj(), func(o client.Object) {
		o.SetAnnotations(map[string]string{v1alpha1.RolloutAnnotation: "nobody"})
	})
	s.reconcile("nobody")
	s.Pass(time.Minute)
	s.reconcile("nobody")

	var logged []fixture.Event
	for _, line := range s.Log.Info() {
		if kind, isEvent := line.Values["type"]; isEvent {
			logged = append(logged, fixture.Event{On: "shop", Type: kind.(string), Reason: line.Values["reason"].(string), Message: line.Message})
		}
	}
	s.Expect(s.Events.All()).To(Equal(logged))
	s.Expect(len(logged)).To(BeNumerically(">", 8))
}

func TestEachPassSaysWhyItEnds(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.listen()
	last := func() fixture.Line {
		s.reconcile("shop")
		all := s.Log.All()
		return all[len(all)-1]
	}
	s.Expect(last().Values).To(And(HaveKeyWithValue("action", "Promote"), HaveKeyWithValue("reason", v1alpha1.EligibleReason),
		HaveKeyWithValue("release", "1.0.0"), HaveKeyWithValue("stored", true)))
	s.rest("shop")
	s.Expect(last().Values).To(And(HaveKeyWithValue("action", "Wait"), HaveKeyWithValue("stored", false), Not(HaveKey("again")),
		HaveKeyWithValue("ended", "all is done until something changes")))
	s.deploy("shop")
	s.Expect(last().Values).To(And(HaveKeyWithValue("again", "10m0s"),
		HaveKeyWithValue("ended", "all is done until something changes, or time has passed")))
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.Suspend = true })
	s.Expect(last().Values).To(HaveKeyWithValue("ended", ContainSubstring("is suspended")))
	s.Expect(s.Log.Info()).To(HaveLen(3), "the release, its promotion, and the bake")
}

func TestLogIsNotFloodedByWhatOthersWrite(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.listen()
	s.deploy("shop")
	s.checkFails("web", strings.Repeat("x", 60_000), s.Clock.Now())
	s.rest("shop")
	for _, line := range s.Log.All() {
		s.Expect(len(line.JSON())).To(BeNumerically("<", 8<<10), line.Message)
	}
}

// TestLogIsAsThePageShowsIt checks that the process writes what the page shows.
func TestLogIsAsThePageShowsIt(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "operations.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("of promotions and schedules", func(t *testing.T) {
		night := v1alpha1.ScheduleRule{Name: "night", TimeRange: &v1alpha1.TimeRange{Start: "12:10", End: "06:00"}}
		s := open(t, shopWith(protected(), "1.1.0", fixture.MakeHealthCheck("smoke").Obj())...)
		s.Add(fixture.MakeSchedule("nights").Deny().Rules(night).Obj())
		s.play(t, testPlane.RESTConfig())
		s.comesTo("shop", promoted{ID: 1, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
		s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.1.01.1.0"))
		s.fluxApplies()
		s.Eventually(func() []string { return marks(s.check("smoke")) }).Should(HaveLen(1))
		s.checksSay(v1alpha1.HealthStatusHealthy)
		s.comesTo("shop", promoted{ID: 1, Tag: "1.1.0", State: v1alpha1.BakeInProgress})
		s.Pass(10 * time.Minute)
		s.ask(v1alpha1.ReconcileRequestAnnotation, "now")
		s.comesTo("shop", promoted{ID: 1, Tag: "1.1.0", State: v1alpha1.BakeSucceeded})
		s.Change(&v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nights"}}, func(o client.Object) {
			metav1.SetMetaDataAnnotation(&o.(*v1alpha1.RolloutSchedule).ObjectMeta, v1alpha1.ReconcileRequestAnnotation, "now")
		})
		for _, controller := range []string{"rollout", "rolloutschedule"} {
			s.Eventually(func() ([]string, error) { return s.Log.Lacks(string(page), controller, s.Namespace) }).Should(BeEmpty(), s.said)
		}
	})
}

// said returns the lines so far, for the author of the page.
func (s *testEnv) said() string {
	var all []string
	for _, line := range s.Log.All() {
		all = append(all, line.JSON())
	}
	return strings.ReplaceAll(strings.Join(all, "\n"), s.Namespace, "shop")
}
