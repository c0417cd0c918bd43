// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// crashRun plays the scenario of the crash tests in one process.
type crashRun struct {
	*testEnv
	*crashscenario.Scenario
}

func openCrashRun(t *testing.T, of *crashscenario.Scenario) *crashRun {
	t.Helper()
	r := &crashRun{testEnv: open(t, of.Objects()...), Scenario: of}
	r.quarantines = true
	r.restart()
	return r
}

// longestPause is the longest time between two steps. No deadline ends before it.
const longestPause = time.Minute

// play lets everyone act, one step at a time, until the scenario is over, and a few steps more.
// Users act as soon as they can, so that no bake ends before.
func (r *crashRun) play(afterStep func()) {
	for step, over := 0, 0; step < 80; step++ {
		result, _ := r.try(crashscenario.App)
		afterStep()
		r.fluxActs()
		r.checkReports()
		pause := min(max(result.RequeueAfter, time.Second), longestPause)
		if r.Act(r, r.state()) {
			pause = time.Second
		}
		r.Pass(pause)
		if r.Over() {
			over++
		}
		if over > 3 {
			r.Expect(r.state()).To(Equal(r.Want()))
			return
		}
	}
	r.Expect(errors.New("the scenario did not end")).NotTo(HaveOccurred(), "history: %v", r.state().History)
}

// Release simulates image-reflector-controller, which has found a tag.
func (r *crashRun) Release(tag string) {
	r.release(crashscenario.App, tag)
	if r.Reflected {
		r.reflects(digestOf(tag))
	}
}

// ChangeRollout edits the Rollout as a user does.
func (r *crashRun) ChangeRollout(change func(*v1alpha1.Rollout)) {
	r.Change(r.rollout(crashscenario.App), func(o client.Object) { change(o.(*v1alpha1.Rollout)) })
}

// fluxActs simulates Flux, which does not find every tag.
func (r *crashRun) fluxActs() {
	if crashscenario.FluxPulls(r.carried(crashscenario.App)["tag"]) {
		r.fluxPulls()
	}
	r.fluxAppliesKustomizations()
}

// checkReports simulates the writer of the HealthCheck.
func (r *crashRun) checkReports() {
	tag := r.carried(crashscenario.App)["tag"]
	switch report := crashscenario.Report(r.rollout(crashscenario.App), r.check(crashscenario.App), tag); report {
	case "":
	case v1alpha1.HealthStatusUnhealthy:
		r.checkFails(crashscenario.App, "it does not answer", r.Clock.Now())
	default:
		r.checksSay(report)
	}
}

func (r *crashRun) state() crashscenario.State {
	repository, kustomization := r.shopTargets()
	quarantines := &v1alpha1.ReleaseQuarantineList{}
	r.Expect(r.List(r.Ctx, quarantines, client.InNamespace(r.Namespace))).To(Succeed())
	return crashscenario.See(r.rollout(crashscenario.App), repository, kustomization, quarantines.Items)
}

func TestCrashScenarioWithoutFaults(t *testing.T) {
	r := openCrashRun(t, crashscenario.New())
	r.play(func() {})
	r.Expect(r.Wire.Writes()).To(HaveLen(24))
}

// TestFailureAndItsRollbackWithoutFaults: the report is two writes more.
func TestFailureAndItsRollbackWithoutFaults(t *testing.T) {
	r := openCrashRun(t, crashscenario.Rollback())
	r.play(func() {})
	r.Expect(r.writesTo("ReleaseQuarantine")).To(HaveLen(2))
	r.Expect(r.writesTo("Rollout/status")).To(HaveLen(12))
}

// TestControllerMayDieBetweenAnyTwoWrites crashes the controller after each of its
// writes, and before the first. A new one continues. A crash just before a write is the
// same as one just after the write before it.
func TestControllerMayDieBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]func() *crashscenario.Scenario{
		"of promotions": crashscenario.New, "of a rollback": crashscenario.Rollback, "of digests": crashscenario.Digests, "of approvals": crashscenario.Approvals,
	} {
		t.Run(name, func(t *testing.T) { mayDieBetweenAnyTwoWrites(t, scenario) })
	}
}

func mayDieBetweenAnyTwoWrites(t *testing.T, scenario func() *crashscenario.Scenario) {
	t.Helper()
	clean := openCrashRun(t, scenario())
	clean.play(func() {})
	for n, last := range append([]string{"nothing"}, clean.Wire.Writes()...) {
		t.Run(fmt.Sprintf("after write %d, %s", n, last), func(t *testing.T) {
			r := openCrashRun(t, scenario())
			r.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
				if write == max(n, 1) {
					return fixture.Fault{Err: fixture.ErrDead, Lost: n > 0, Fatal: true}
				}
				return fixture.Fault{}
			}
			r.play(func() {
				if r.Wire.Dead() {
					r.Wire = &fixture.Wire{}
					r.restart()
				}
			})
		})
	}
}

// TestEachWriteMayTimeOut lets each write of two promotions and a rollback fail once,
// before or after it was carried out, while the controller continues to run.
func TestEachWriteMayTimeOut(t *testing.T) {
	clean := openCrashRun(t, crashscenario.Rollback())
	clean.play(func() {})
	for n, write := range clean.Wire.Writes() {
		for name, lost := range map[string]bool{"before": false, "after": true} {
			t.Run(fmt.Sprintf("%s write %d, %s", name, n+1, write), func(t *testing.T) {
				r := openCrashRun(t, crashscenario.Rollback())
				r.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
					if write == n+1 {
						return fixture.Fault{Err: apierrors.NewTimeoutError("injected", 1), Lost: lost}
					}
					return fixture.Fault{}
				}
				r.play(func() {})
			})
		}
	}
}

func TestOldCopyOfTheRolloutNeverRevertsATarget(t *testing.T) {
	t.Parallel()
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
