// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// story contains four promotions with a bake and a HealthCheck. The third is a pin that
// supersedes the second, the fourth is forced.
type story struct {
	*testEnv
	chapter int
	last    int // the chapter after which it ends
}

// outcome is the result that must not depend on crashes of the controller.
type outcome struct {
	History     []promoted
	Carried     map[string]string
	Generations map[string]int64
	Ledger      []string
	ForcedBy    string
	Asked       int // requests that are left
}

func openStory(t *testing.T, chapters int) *story {
	t.Helper()
	rollout := fixture.MakeRollout("shop").BakeTime(10 * time.Minute).SelectAllChecks()
	objects := shopWith(rollout, "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())
	return &story{testEnv: open(t, objects...), last: chapters}
}

// tell lets everyone act, one step at a time, until the story ends.
func (s *story) tell(afterStep func()) outcome {
	for range 80 {
		result, _ := s.try("shop")
		afterStep()
		s.fluxApplies()
		s.checkRecovers()
		s.Pass(max(result.RequeueAfter, time.Second))
		if s.turnPage() {
			return s.outcome()
		}
	}
	s.Expect(errors.New("the story did not end")).NotTo(HaveOccurred(), "history: %v", s.history("shop"))
	return outcome{}
}

// pages contains the state that a promotion must reach, and what happens then.
var pages = []struct {
	until promoted
	then  func(*story)
}{
	{promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}, func(s *story) { s.release("shop", "1.1.0") }},
	{promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeInProgress}, func(s *story) { s.pinTo("1.2.0") }},
	{promoted{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded}, func(s *story) {
		s.pin("shop", nil)
		s.ask(v1alpha1.ForceDeployAnnotation, "1.0.0", v1alpha1.DeployUserAnnotation, "ann")
	}},
	{promoted{ID: 4, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}, func(*story) {}},
}

// turnPage continues once the promotion and its targets have reached the state of the
// page. It reports whether the story is over.
func (s *story) turnPage() bool {
	page := pages[s.chapter]
	history := s.history("shop")
	if len(history) == 0 || history[0] != page.until || !s.followed(page.until.Tag) {
		return false
	}
	page.then(s)
	s.chapter++
	return s.chapter == s.last
}

// followed reports whether the targets have the release.
func (s *story) followed(tag string) bool {
	carried := s.carried("shop")
	return carried["tag"] == tag && carried["VERSION"] == tag
}

// checkRecovers simulates a writer that reports Healthy after each reset.
func (s *story) checkRecovers() {
	check := &v1alpha1.HealthCheck{}
	s.Expect(s.Get(s.Ctx, s.Key("web"), check)).To(Succeed())
	if check.Status.Status == v1alpha1.HealthStatusPending {
		s.checksSay(v1alpha1.HealthStatusHealthy)
	}
}

func (s *story) outcome() outcome {
	o := outcome{History: s.history("shop"), Carried: s.carried("shop"), Generations: map[string]int64{}, Asked: len(s.asked())}
	if by := s.rollout("shop").Current().TriggeredBy; by.Kind == v1alpha1.TriggeredByUser {
		o.ForcedBy = by.Name
	}
	for _, object := range []client.Object{&sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}} {
		s.Expect(s.Get(s.Ctx, s.Key("shop"), object)).To(Succeed())
		o.Generations[fmt.Sprintf("%T", object)] = object.GetGeneration()
	}
	for _, release := range s.rollout("shop").Status.AvailableReleases {
		o.Ledger = append(o.Ledger, release.Tag)
	}
	return o
}

// fullStory is the expected outcome: each promotion is in the history once, and each
// target was written once per promotion.
var fullStory = outcome{
	History: []promoted{
		{ID: 4, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
		{ID: 3, Tag: "1.2.0", State: v1alpha1.BakeSucceeded},
		{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeCancelled},
		{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	},
	Carried:     map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"},
	Generations: map[string]int64{"*v1.OCIRepository": 5, "*v1.Kustomization": 5},
	Ledger:      []string{"1.0.0", "1.1.0"}, // the ImagePolicy does not know the pinned release
	ForcedBy:    "ann",
}

// firstChapter is the expected outcome of the first promotion.
var firstChapter = outcome{
	History:     []promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}},
	Carried:     map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"},
	Generations: map[string]int64{"*v1.OCIRepository": 2, "*v1.Kustomization": 2},
	Ledger:      []string{"1.0.0"},
}

func TestStoryWithoutFaults(t *testing.T) {
	s := openStory(t, len(pages))
	s.Expect(s.tell(func() {})).To(Equal(fullStory))
	s.Expect(s.Wire.Writes()).To(HaveLen(28))
}

// TestControllerMayDieBetweenAnyTwoWrites crashes the controller after each of its
// writes, and before the first. A new one continues. A crash just before a write is the
// same as one just after the write before it.
func TestControllerMayDieBetweenAnyTwoWrites(t *testing.T) {
	clean := openStory(t, len(pages))
	clean.tell(func() {})
	for n, last := range append([]string{"nothing"}, clean.Wire.Writes()...) {
		t.Run(fmt.Sprintf("after write %d, %s", n, last), func(t *testing.T) {
			s := openStory(t, len(pages))
			s.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
				if write == max(n, 1) {
					return fixture.Fault{Err: fixture.ErrDead, Lost: n > 0, Fatal: true}
				}
				return fixture.Fault{}
			}
			got := s.tell(func() {
				if s.Wire.Dead() {
					s.Wire = &fixture.Wire{}
					s.restart()
				}
			})
			s.Expect(got).To(Equal(fullStory))
		})
	}
}

// TestEachWriteMayTimeOut lets each write fail once, before or after it was carried out,
// while the controller continues to run.
func TestEachWriteMayTimeOut(t *testing.T) {
	clean := openStory(t, 1)
	clean.tell(func() {})
	for n, write := range clean.Wire.Writes() {
		for name, lost := range map[string]bool{"before": false, "after": true} {
			t.Run(fmt.Sprintf("%s write %d, %s", name, n+1, write), func(t *testing.T) {
				s := openStory(t, 1)
				s.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
					if write == n+1 {
						return fixture.Fault{Err: apierrors.NewTimeoutError("injected", 1), Lost: lost}
					}
					return fixture.Fault{}
				}
				s.Expect(s.tell(func() {})).To(Equal(firstChapter))
			})
		}
	}
}

func TestOldCopyOfTheRolloutNeverRevertsATarget(t *testing.T) {
	for name, tt := range map[string]struct {
		turn func(*testEnv) // between the old copy and now
	}{
		"the old copy would promote what was promoted already": {
			turn: func(s *testEnv) { s.release("shop", "1.1.0"); s.rest("shop") },
		},
		"the old copy would repair a target that was changed meanwhile": {
			turn: func(s *testEnv) { s.release("shop", "1.1.0"); s.deploy("shop") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			old := s.rollout("shop")
			tt.turn(s)
			before, written := s.rollout("shop"), s.carried("shop")

			s.readRolloutFrom(old)
			s.lawless = true
			_, err := s.try("shop")
			s.Expect(err).NotTo(HaveOccurred())

			s.Expect(s.carried("shop")).To(Equal(written))
			s.Expect(s.rollout("shop").Status).To(Equal(before.Status))
		})
	}
}

func TestOldCopyOfADeletedRolloutWritesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	old := s.rollout("shop")
	s.Expect(s.Delete(s.Ctx, s.rollout("shop"))).To(Succeed())
	s.changeTag("0.0.9")
	s.Wire.Forget()

	s.readRolloutFrom(old)
	result := s.reconcile("shop")
	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.carried("shop")["tag"]).To(Equal("0.0.9"))
}

func TestOldCopyOfATargetDoesNotCountAsApplied(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	stale := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), stale)).To(Succeed())
	s.pinTo("0.9.0")
	s.rest("shop")
	s.pinTo("1.0.0") // what the stale copy has and reports
	s.reconcile("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 3, Tag: "1.0.0", State: v1alpha1.BakeDeploying}))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.fluxAppliesKustomizations()

	inner := s.reconciler.Client
	s.reconciler.Client = oldTarget{Client: inner, stale: stale}
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
}

func (s *testEnv) pinTo(tag string) { s.pin("shop", &tag) }

// changeTag simulates a user who changes the OCIRepository shop by hand.
func (s *testEnv) changeTag(tag string) {
	s.Change(&sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		o.(*sourcev1.OCIRepository).Spec.Reference.Tag = tag
	})
}
