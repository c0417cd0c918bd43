// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A rollback does not wait until its failure is reported, so its event may come before that.
func TestEventOfARollbackNamesTheQuarantineThatIsKnown(t *testing.T) {
	const name = "sha256-3f2a9c1d5b7e8f60a1b2"
	now := (&fixture.Clock{}).Now()
	failed := func() *fixture.EntryBuilder {
		return fixture.MakeEntry("1.1.0").ID(2).Failed().Due(v1alpha1.CauseHealthCheckFailed, now)
	}
	back := func() *fixture.EntryBuilder {
		return fixture.MakeEntry("1.0.0").ID(3).Deploying().Back("1.1.0", 2, 1).Because("waiting for Flux")
	}
	condition := func(kind, reason string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Reason: reason, Status: status}
	}
	for event, tt := range map[string]struct {
		history    []*fixture.EntryBuilder
		failed     int // the index of the entry that has failed
		condition  metav1.Condition
		decision   promotion.Decision
		nothing    bool // the history has no entry that failed
		occurrence string
	}{
		"it goes back": {
			history: []*fixture.EntryBuilder{back(), failed()}, failed: 1, occurrence: v1alpha1.BakeTimeDeployingReason,
			decision: promotion.Decision{Outcome: promotion.Outcome{Action: promotion.Promote, Back: &v1alpha1.RollbackRecord{}}},
		},
		"it cannot go back": {
			history: []*fixture.EntryBuilder{failed()}, occurrence: v1alpha1.RollbackNotPossibleReason,
			condition: condition(v1alpha1.RolledBackCondition, v1alpha1.NoProvenReleaseReason, metav1.ConditionFalse),
		},
		"it takes too long": {
			history: []*fixture.EntryBuilder{back(), failed()}, failed: 1, occurrence: v1alpha1.RollbackOverdueReason,
			condition: condition(v1alpha1.StalledCondition, v1alpha1.RollbackOverdueReason, metav1.ConditionTrue),
		},
		"it takes too long, and the history was cut": {
			history: []*fixture.EntryBuilder{back()}, nothing: true, occurrence: v1alpha1.RollbackOverdueReason,
			condition: condition(v1alpha1.StalledCondition, v1alpha1.RollbackOverdueReason, metav1.ConditionTrue),
		},
	} {
		for _, quarantine := range []string{name, ""} {
			t.Run(event+" "+quarantine, func(t *testing.T) {
				g := NewWithT(t)
				before := fixture.MakeRollout("shop").History(failed()).Obj()
				after := fixture.MakeRollout("shop").History(tt.history...).Obj()
				want := ""
				if !tt.nothing {
					after.Status.History[tt.failed].Quarantine, want = quarantine, quarantine
				}
				if tt.condition.Type != "" {
					after.Status.Conditions = []metav1.Condition{tt.condition}
				}
				found := transitions(after, promotion.Input{Rollout: before, Now: now}, tt.decision, nil)
				g.Expect(found).To(HaveLen(1))
				g.Expect(found[0].reason).To(Equal(tt.occurrence))
				g.Expect(found[0].eventType).To(Or(Equal(corev1.EventTypeWarning), Equal(corev1.EventTypeNormal)))
				g.Expect(found[0].metadata).To(HaveKeyWithValue(metaQuarantine, want))
			})
		}
	}
}

// The words of a condition may change at any time, for example with an upgrade.
func TestConditionIsNewsByWhatItIsAboutAndNotByItsWords(t *testing.T) {
	blocked := func(message string) *v1alpha1.Rollout {
		rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0")).Obj()
		rollout.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.GatesPassingCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.SomeGatesBlockingReason, Message: message,
		}}
		return rollout
	}
	for name, tt := range map[string]struct {
		before, after string // the closed gates; empty if it is not known
		reported      int
	}{
		"the same gate":              {"night", "night", 0},
		"another gate":               {"night", "freeze", 1},
		"one more":                   {"night", "night freeze", 1},
		"after a restart":            {"", "night", 0},
		"the gates are not readable": {"night", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := promotion.Input{Rollout: blocked("1.1.0: not passing: RolloutGate night"), Now: fixture.Noon}
			for _, gate := range strings.Fields(tt.after) {
				in.Gates.Gates = append(in.Gates.Gates, *fixture.MakeGate(gate, "shop").Closed().Obj())
			}
			before := culprits{v1alpha1.SomeGatesBlockingReason: tt.before}
			if tt.before == "" {
				before = nil
			}
			found := transitions(blocked("1.1.0 waits until RolloutGate night is open"), in, promotion.Decision{}, before)
			NewWithT(t).Expect(found).To(HaveLen(tt.reported))
		})
	}
}

// Whoever applies a Rollout and its ImagePolicy together is not warned of a policy that is
// already there when the warning is read.
func TestImagePolicyOfANewRolloutIsWaitedForInSilence(t *testing.T) {
	s := open(t, fixture.MakeRollout("shop").Obj())
	s.Pass(time.Since(fixture.Noon)) // the API server says when an object was created
	s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: gather.SettlesWithin}))
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Pass(gather.SettlesWithin)
	s.rest("shop")
	s.Expect(s.Events.Take()).To(ContainElement(HaveField("Reason", v1alpha1.ImagePolicyNotFoundReason)))
}
