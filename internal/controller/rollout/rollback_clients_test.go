// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// returning is an env with a Rollout that goes back by itself. 1.1.0 has succeeded, and
// 1.2.0 fails.
type returning struct{ *testEnv }

// openReturning lets 1.2.0 fail, and stops before the next step of the controller.
func openReturning(t *testing.T, changes ...func(*v1alpha1.RolloutRollback)) returning {
	t.Helper()
	s := returning{open(t, shopWith(baked().RollsBack(changes...), "1.1.0", fixture.MakeHealthCheck("smoke").Healthy().Obj())...)}
	s.deployAndBake("shop")
	s.release("shop", "1.2.0")
	s.failsOnce()
	return s
}

// failsOnce lets the newest release fail by its HealthCheck, in one step.
func (s returning) failsOnce() {
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.checkFails("smoke", "it does not answer", s.Clock.Now())
	s.reconcile("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeFailed))
}

func wait10Minutes(r *v1alpha1.RolloutRollback) {
	r.Delay = &metav1.Duration{Duration: 10 * time.Minute}
}

// rolledBack returns the condition RolledBack without its message.
func (s returning) rolledBack() condition {
	c := s.condition("shop", v1alpha1.RolledBackCondition)
	c.Message = ""
	return c
}

// saysBack returns the message of the condition RolledBack.
func (s returning) saysBack() string {
	return strings.ReplaceAll(s.condition("shop", v1alpha1.RolledBackCondition).Message, s.Namespace, "somewhere")
}

// older writes the status through types without the fields of rollbacks, and checks that
// they are gone.
func (s returning) older() {
	s.upstreamUpdates(nil)
	for _, entry := range s.rollout("shop").Status.History {
		s.Expect(entry.Cause).To(BeEmpty())
		s.Expect(entry.RollbackDue).To(BeNil())
		s.Expect(entry.Rollback).To(BeNil())
	}
}

var (
	backDeploying = []promoted{{3, "1.1.0", v1alpha1.BakeDeploying}, {2, "1.2.0", v1alpha1.BakeFailed}, {1, "1.1.0", v1alpha1.BakeSucceeded}}
	backSucceeded = []promoted{{3, "1.1.0", v1alpha1.BakeSucceeded}, {2, "1.2.0", v1alpha1.BakeFailed}, {1, "1.1.0", v1alpha1.BakeSucceeded}}
	stillFailed   = []promoted{{2, "1.2.0", v1alpha1.BakeFailed}, {1, "1.1.0", v1alpha1.BakeSucceeded}}

	isRolledBack = condition{Status: metav1.ConditionTrue, Reason: v1alpha1.AutomaticRollbackReason}
	notDue       = condition{Status: metav1.ConditionFalse, Reason: v1alpha1.RollbackNotDueReason}
)

// TestRollbackStaysARollbackWhenOlderTypesAreWritten writes the whole status through older
// types at each stage of a rollback.
func TestRollbackStaysARollbackWhenOlderTypesAreWritten(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(returning){
		"recorded":            func(s returning) { s.reconcile("shop") },
		"written":             func(s returning) { s.rest("shop") },
		"applied":             func(s returning) { s.rest("shop"); s.fluxApplies(); s.rest("shop") },
		"applied, unhealthy":  func(s returning) { s.rest("shop"); s.fluxApplies(); s.rest("shop"); s.isUnhealthy(time.Minute) },
		"baking":              func(s returning) { s.deploy("shop") },
		"baking, unhealthy":   func(s returning) { s.deploy("shop"); s.isUnhealthy(time.Minute) },
		"overdue":             func(s returning) { s.rest("shop"); s.isUnhealthy(time.Hour) },
		"succeeded":           func(s returning) { s.deployAndBake("shop") },
		"succeeded, and more": func(s returning) { s.deployAndBake("shop"); s.isUnhealthy(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			s, undisturbed := openReturning(t), openReturning(t)
			reach(s)
			reach(undisturbed)
			s.Expect(s.rolledBack().Status).To(Equal(metav1.ConditionTrue))
			s.rest("shop")
			s.older()
			s.rest("shop")
			undisturbed.rest("shop")
			s.Expect(s.history("shop")).To(Equal(undisturbed.history("shop")))
			s.Expect(s.saysBack()).To(Equal(undisturbed.saysBack()))
			s.Expect(s.ready()).To(Equal(undisturbed.ready()))
			s.Expect(s.outlives()).To(Equal(undisturbed.outlives()))
		})
	}
}

// isUnhealthy reports an error, and lets time pass.
func (s returning) isUnhealthy(d time.Duration) {
	s.checkFails("smoke", "it does not answer either", s.Clock.Now())
	s.Pass(d)
	s.rest("shop")
}

// outlives lets the rollback be unhealthy for a day and then recover, and publishes a fix.
// It returns what happens.
func (s returning) outlives() (all []any) {
	s.fluxApplies()
	s.rest("shop")
	s.isUnhealthy(24 * time.Hour)
	s.Expect(s.rollout("shop").Current().State()).NotTo(Equal(v1alpha1.BakeFailed), "a rollback never fails")
	all = append(all, s.history("shop"), s.rolledBack(), s.ready())
	s.deployAndBake("shop")
	s.Expect(s.history("shop")).To(Equal(backSucceeded))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.1.0", "VERSION": "1.1.0", "TIER": "gold"}))
	all = append(all, s.rolledBack(), s.ready())
	s.release("shop", "1.3.0")
	s.deployAndBake("shop")
	s.Expect(s.history("shop")).To(Equal(append([]promoted{{4, "1.3.0", v1alpha1.BakeSucceeded}}, backSucceeded...)))
	return append(all, s.rolledBack(), s.ready(), s.candidateTags())
}

// TestFailureThatOlderTypesWroteIsNotAnswered writes the status between the failure and
// the rollback. The client that did so may have decided otherwise.
func TestFailureThatOlderTypesWroteIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]func(*v1alpha1.RolloutRollback){
		"at once":          nil,
		"during the delay": {wait10Minutes},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReturning(t, changes...)
			s.older()
			s.staysFailed()
			s.Expect(s.saysBack()).To(ContainSubstring("another client has written its entry"))
			s.Expect(s.condition("shop", v1alpha1.StalledCondition).Message).To(ContainSubstring("pin a version, or annotate the Rollout with retry or unblock-failed"))

			s.ask(v1alpha1.RetryAnnotation, "")
			s.failsOnce()
			s.Pass(10 * time.Minute)
			s.rest("shop")
			s.Expect(s.history("shop")).To(Equal(backDeploying), "the next failure is answered again")
		})
	}
}

// staysFailed checks that time brings no rollback, and that the status says why.
func (s returning) staysFailed() {
	s.rest("shop")
	s.Expect(s.rolledBack()).To(Equal(notDue))
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal(stillFailed))
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.2.0"))
	s.Expect(s.rolledBack()).To(Equal(notDue))
}

// TestRollbackThatIsSwitchedOnLaterUndoesNothing adds spec.rollback while the release is
// Failed already.
func TestRollbackThatIsSwitchedOnLaterUndoesNothing(t *testing.T) {
	s := returning{open(t, shopWith(baked(), "1.1.0", fixture.MakeHealthCheck("smoke").Healthy().Obj())...)}
	s.deployAndBake("shop")
	s.release("shop", "1.2.0")
	s.failsOnce()
	s.rest("shop")
	s.Expect(s.rolledBack()).To(Equal(condition{}))
	s.Events.Take()

	s.setRollback(&v1alpha1.RolloutRollback{})
	s.staysFailed()
	s.Expect(s.Events.Take()).To(BeEmpty())

	s.setRollback(nil)
	s.rest("shop")
	s.Expect(s.rolledBack()).To(Equal(condition{}))
	s.Expect(s.history("shop")).To(Equal(stillFailed))
}

// TestRollbackThatIsSwitchedOffDuringTheDelayDoesNotHappen removes spec.rollback, and adds
// it again.
func TestRollbackThatIsSwitchedOffDuringTheDelayDoesNotHappen(t *testing.T) {
	s := openReturning(t, wait10Minutes)
	s.rest("shop")
	s.Expect(s.rolledBack()).To(Equal(condition{Status: metav1.ConditionFalse, Reason: v1alpha1.RollbackDelayedReason}))
	before := s.rollout("shop").Spec.Rollback
	s.setRollback(nil)
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal(stillFailed))
	s.Expect(s.rolledBack()).To(Equal(condition{}))

	s.setRollback(before)
	s.deployAndBake("shop")
	s.Expect(s.history("shop")).To(Equal(backSucceeded), "the failure was to be answered")
	s.Expect(s.rolledBack()).To(Equal(isRolledBack))
}

func (s returning) setRollback(to *v1alpha1.RolloutRollback) {
	s.Change(s.rollout("shop"), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.Rollback = to })
}
