// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// underWay begins a measurement that does not end until the returned function is called.
func (s *testEnv) underWay(check string) (release func()) {
	before := len(s.server.asked())
	release = s.server.block()
	s.pass(interval, check)
	s.Eventually(s.server.asked, 10*time.Second).Should(HaveLen(before + 1))
	return release
}

func TestResetDropsTheMeasurementThatIsUnderWay(t *testing.T) {
	for name, seen := range map[string]bool{"and is seen before the result": true, "and is seen with the result": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, rollout("shop"), errorRate().Obj())
			s.begin("errors")
			release := s.underWay("errors")
			s.reset("errors", "shop")
			if seen {
				s.rest("errors")
			}
			release()
			s.measured()
			status, message := s.status("errors")
			s.Expect(status).To(Equal(pending))
			s.Expect(message).To(Equal(evidence.ResetMessage))
			s.Expect(s.check("errors").Status.Measurements).To(BeEmpty())
			s.Expect(s.planned()).To(Equal(1))

			s.after(delay+shift, "errors")
			s.Expect(s.check("errors").Status.Measurements).To(HaveLen(1))
		})
	}
}

func TestResultIsNotWrittenOverAResetThatTheCacheDoesNotShow(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.server.says("2")
	s.begin("errors")
	s.after(interval, "errors")
	old := s.check("errors")
	cached := s.reconciler.Client
	s.pass(interval, "errors")
	s.Eventually(s.woken, 10*time.Second).Should(Receive())
	s.reset("errors", "shop")
	s.reconciler.Client = oldCheck{cached, old}
	s.reconcile("errors")
	s.reconciler.Client = cached
	s.rest("errors")
	status, message := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(message).To(Equal(evidence.ResetMessage))
	s.after(delay+shift, "errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(pending), "one of three")
}

func TestTwoResetsWithinASecondAreTwo(t *testing.T) {
	check := errorRate().Obj()
	check.Spec.Delay = seconds(0)
	s := open(t, rollout("shop"), check)
	s.rest("errors")
	s.clock.Step(shift) // from here on, the process is not new
	s.reset("errors", "shop")
	s.rest("errors")
	first := s.reconciler.states.of(s.Key("errors")).era
	s.ChangeStatus(errorRate().Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Status.Status = healthy })
	s.rest("errors")
	s.reset("errors", "shop")
	s.rest("errors")
	s.Expect(s.reconciler.states.of(s.Key("errors")).era).To(Equal(first + 1))
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(pending))
}

// The clock of the instance that has reset the HealthCheck was ahead by a day.
func TestResetThatHasNotComeDelaysNoMeasurement(t *testing.T) {
	for name, restarted := range map[string]bool{"seen when it was written": false, "seen after a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, rollout("shop"), errorRate().Obj())
			if !restarted {
				s.rest("errors")
			}
			s.reset("errors", "shop")
			s.ChangeStatus(errorRate().Obj(), func(o client.Object) {
				tomorrow := metav1.NewTime(s.clock.Now().Add(24 * time.Hour).Truncate(time.Second))
				o.(*v1alpha1.HealthCheck).Status.LastChangeTime = &tomorrow
			})
			s.rest("errors")
			era := s.reconciler.states.of(s.Key("errors")).era
			s.pass(time.Second, "errors")
			s.Expect(s.reconciler.states.of(s.Key("errors")).era).To(Equal(era), "it is one reset")
			s.after(delay+shift, "errors")
			s.Expect(s.check("errors").Status.Measurements).To(HaveLen(1))
		})
	}
}

// A reset may stay incomplete for some time, if the controller of the Rollout ends in between.
func TestNothingIsMeasuredDuringAReset(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.ChangeStatus(errorRate().Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Status.Status = unhealthy })
	s.rest("errors")
	s.Expect(s.planned()).To(Equal(1))
	s.mark("errors", "shop", func(e *v1alpha1.DeploymentHistoryEntry) string { return evidence.BegunMark(e, nil) })
	s.rest("errors")
	s.Expect(s.planned()).To(BeZero())
	s.ends("shop", v1alpha1.BakeFailed)
	s.rest("errors")
	s.Expect(s.planned()).To(Equal(1), "nobody completes the reset any more")
}

func TestMeasurementSurvivesAChangeThatIsNoReset(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	release := s.underWay("errors")
	s.Change(errorRate().Obj(), func(o client.Object) {
		annotations := o.GetAnnotations()
		annotations["example.com/note"] = "by a person"
		o.SetAnnotations(annotations)
	})
	s.rest("errors")
	release()
	s.measured()
	s.Expect(s.server.asked()).To(HaveLen(2))
	s.Expect(s.reconciler.states.of(s.Key("errors")).count.LastMeasured()).To(BeTemporally("==", s.clock.Now()), "it counts")
}

func TestRestartKeepsTheVerdictUntilMeasurementsContradictIt(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	_, message := s.status("errors")
	s.restart()
	s.Wire.Forget()
	s.rest("errors")
	status, after := s.status("errors")
	s.Expect(status).To(Equal(healthy))
	s.Expect(after).To(Equal(message))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.after(interval, "errors")
	s.Expect(s.check("errors").Status.Measurements).To(HaveLen(2))

	s.server.says("2")
	s.after(interval, "errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.restart()
	s.rest("errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(pending), "there is no false Healthy")
	s.after(interval, "errors")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(pending))
}

func TestRestartBetweenResetAndFirstMeasurementKeepsTheDelay(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.reset("errors", "shop")
	s.restart()
	s.rest("errors")
	s.pass(delay-time.Second, "errors")
	s.Expect(s.server.asked()).To(BeEmpty())
	s.after(shift+time.Second, "errors")
}

func TestBaselineIsAskedOncePerPromotionForItsMoment(t *testing.T) {
	check := fixture.MakeHealthCheck("errors").Prometheus(`errors{version="$(version)"}`, "value <= baseline.orValue(0.0) * 2.0").Obj()
	check.Spec.Prometheus.Baseline = v1alpha1.BaselineBeforePromotion
	s := open(t, rollout("shop"), check)
	s.server.before = "0.3"
	s.reset("errors", "shop")
	s.rest("errors")
	s.pass(delay+shift, "errors")
	s.measured()
	for range 2 {
		s.after(interval, "errors")
	}
	all := s.server.asked()
	s.Expect(all).To(HaveLen(4))
	s.Expect(all[0]).To(Equal(asked{what: `errors{version="1.0.0"}`, at: promotedAt}))
	for _, a := range all[1:] {
		s.Expect(a.what).To(Equal(`errors{version="1.1.0"}`))
		s.Expect(a.at).To(BeTemporally(">", promotedAt))
	}
	s.Expect(s.check("errors").Status.Measurements[0].Baseline).To(Equal("0.3"))
	status, message := s.status("errors")
	s.Expect(status).To(Equal(healthy))
	s.Expect(message).To(HaveSuffix(", before 0.3"))
}

// The pass for a result may run while the pool still ends the measurement. What is planned
// then must not be taken for the measurement that ends.
func TestResultThatCannotBeStoredIsMeasuredAgain(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.reset("errors", "shop")
	s.rest("errors")
	var lost atomic.Bool
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault {
		if lost.Swap(true) {
			return fixture.Fault{}
		}
		return fixture.Fault{Err: apierrors.NewConflict(schema.GroupResource{}, "errors", nil)}
	}
	ended := make(chan error, 2)
	wake := s.reconciler.wake
	s.reconciler.wake = func(check types.NamespacedName) {
		for range 2 { // the second pass is for the event of what was in conflict
			_, err := s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: check})
			ended <- err
		}
	}
	s.clock.Step(delay + shift) // no pass of the test: a HealthCheck has one pass at a time
	for range 2 {
		s.Eventually(ended, 10*time.Second).Should(Receive(Succeed()))
	}
	s.Expect(s.server.asked()).To(HaveLen(1))
	s.Expect(s.planned()).To(Equal(1))
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(pending))

	s.Eventually(s.reconciler.Pool.Lag, 10*time.Second).Should(BeZero())
	s.reconciler.wake = wake
	s.pass(time.Second, "errors")
	s.measured()
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(healthy))
}
