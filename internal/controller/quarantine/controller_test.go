// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	held  = v1alpha1.QuarantineHeld
	ended = v1alpha1.QuarantineEnded
)

// TestPhaseIsShown: a step shows the phase and since when the quarantine has ended, and
// says when time alone changes something.
func TestPhaseIsShown(t *testing.T) {
	for name, tt := range map[string]struct {
		object *v1alpha1.ReleaseQuarantine
		want   v1alpha1.QuarantinePhase
		again  time.Duration
	}{
		"a user says so":                        {bad(), held, 0},
		"a user says until when":                {bad(until(time.Hour)), held, time.Hour},
		"that is over":                          {bad(until(-time.Hour)), ended, 0},
		"a user has lifted it":                  {bad(until(time.Hour), lifted), ended, 0},
		"a failure":                             {bad(ours, failed), held, day},
		"a failure, and a user says until when": {bad(ours, failed, until(time.Hour)), held, time.Hour},
		"failures of one that a user created":   {bad(failed), held, 0},
		"the controller's, lifted":              {bad(ours, failed, lifted), ended, week},
		"the controller's, over":                {bad(ours, failed, until(-time.Hour)), ended, week},
	} {
		for kind, object := range map[string]client.Object{"ReleaseQuarantine": tt.object, "ClusterReleaseQuarantine": cluster(tt.object)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := open(t, object)
				s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: tt.again}))
				got := s.status()
				s.Expect(got.Phase).To(Equal(tt.want))
				s.Expect(got.ObservedGeneration).To(Equal(int64(1)))
				s.Expect(got.EndedAt != nil).To(Equal(tt.want == ended))
				if tt.want == ended {
					s.Expect(got.EndedAt.Time).To(Equal(noon))
				}
				s.Expect(s.Wire.Writes()).To(Equal([]string{"patch " + kind + "/status " + object.GetName()}))
				s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: tt.again}))
				s.Expect(s.Wire.Writes()).To(HaveLen(1), "at rest")
			})
		}
	}
}

func TestQuarantineEndsExactlyThenAndIsDeletedAWeekLater(t *testing.T) {
	for name, tt := range map[string]struct {
		object client.Object
		gone   bool
	}{
		"the controller's":              {bad(ours, failed), true},
		"a user's":                      {bad(until(day)), false},
		"a user's, of the cluster":      {cluster(bad(until(day))), false},
		"with the label of another one": {bad(until(day), func(q *v1alpha1.ReleaseQuarantine) { q.Labels = map[string]string{v1alpha1.ManagedByLabel: "Helm"} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, tt.object)
			s.tick()
			s.Pass(day - time.Nanosecond)
			s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Millisecond}))
			s.Expect(s.phase()).To(Equal(held))
			s.Pass(time.Nanosecond)
			result := s.tick()
			s.Expect(s.phase()).To(Equal(ended))
			s.Expect(s.status().EndedAt.Time).To(Equal(noon.Add(day)))
			if !tt.gone {
				s.Expect(result).To(Equal(ctrl.Result{}))
				s.Pass(100 * week)
				s.tick()
				s.Expect(s.phase()).To(Equal(ended))
				return
			}
			s.Expect(result).To(Equal(ctrl.Result{RequeueAfter: week}))
			s.Pass(week - time.Nanosecond)
			s.tick()
			s.Expect(s.phase()).To(Equal(ended))
			s.Pass(time.Nanosecond)
			s.Wire.Forget()
			s.Expect(s.tick()).To(Equal(ctrl.Result{}))
			s.Expect(s.phase()).To(Equal(v1alpha1.QuarantinePhase("deleted")))
			s.Expect(s.Wire.Writes()).To(Equal([]string{"delete ReleaseQuarantine " + tt.object.GetName()}))
			s.Expect(s.tick()).To(Equal(ctrl.Result{}), "that it is gone is no error")
		})
	}
}

// A second failure, an hour after the first one.
func TestSecondFailureBeginsTheTimeAgainUnlessItIsLifted(t *testing.T) {
	second := func(s *testEnv) bool {
		s.Pass(time.Hour)
		q := &v1alpha1.ReleaseQuarantine{}
		s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(s.object), q)).To(Succeed())
		if !quarantine.TakesFailures(&q.Spec, quarantine.IsManaged(q)) {
			return false
		}
		q.Status, _ = quarantine.Report(q.Status, v1alpha1.ReleaseFailure{EntryID: 2, Time: metav1.NewTime(s.Clock.Now())}, nil)
		s.Expect(s.Status().Update(s.Ctx, q)).To(Succeed())
		return true
	}
	t.Run("held", func(t *testing.T) {
		s := open(t, bad(ours, failed))
		s.tick()
		s.Expect(second(s)).To(BeTrue())
		s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: day}))
		s.Expect(s.status().Until.Time).To(Equal(noon.Add(day + time.Hour)))
	})
	t.Run("over", func(t *testing.T) {
		s := open(t, bad(ours, failed))
		s.Pass(day)
		s.tick()
		s.Expect(s.phase()).To(Equal(ended))
		s.Expect(second(s)).To(BeTrue())
		s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: day}))
		s.Expect(s.phase()).To(Equal(held))
	})
	t.Run("lifted", func(t *testing.T) {
		s := open(t, bad(ours, failed, lifted))
		s.tick()
		s.Expect(second(s)).To(BeFalse())
		s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: week - time.Hour}))
		s.Expect(s.phase()).To(Equal(ended))
	})
}

func TestLiftedQuarantineHoldsAgainOnceThatIsUndone(t *testing.T) {
	s := open(t, bad(ours, failed, until(30*day)))
	s.tick()
	s.edit(`{"spec":{"lifted":true}}`)
	s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: week}))
	s.Expect(s.phase()).To(Equal(ended))
	s.Pass(week - time.Minute)
	s.edit(`{"spec":{"lifted":false}}`)
	s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: 23*day + time.Minute}))
	s.Expect(s.phase()).To(Equal(held))
	s.Expect(s.status().EndedAt).To(BeNil())
	s.Expect(s.status().ObservedGeneration).To(Equal(int64(3)))
	s.Pass(time.Minute)
	s.tick()
	s.Expect(s.phase()).To(Equal(held), "it is not deleted")
}

func TestBadStatusIsCorrected(t *testing.T) {
	for name, tt := range map[string]struct {
		object *v1alpha1.ReleaseQuarantine
		patch  string
	}{
		"another phase":               {bad(ours, failed), `{"status":{"phase":"Ended","endedAt":"2020-01-01T00:00:00Z"}}`},
		"an end of what does not end": {bad(), `{"status":{"until":"2020-01-01T00:00:00Z"}}`},
		"a generation to come":        {bad(), `{"status":{"observedGeneration":99}}`},
		"nothing at all":              {bad(), `{"status":null}`},
	} {
		for kind, object := range map[string]client.Object{"ReleaseQuarantine": tt.object, "ClusterReleaseQuarantine": cluster(tt.object)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := open(t, object)
				s.tick()
				want := s.status()
				s.writeStatus(tt.patch)
				s.tick()
				s.Expect(s.status()).To(Equal(want))
				s.Expect(s.Wire.Writes()).To(HaveLen(2))
			})
		}
	}
}

// TestQuarantineWithoutItsFirstFailure: the Rollout that has created it writes that in a
// moment. If it does not, the quarantine ends by itself.
func TestQuarantineWithoutItsFirstFailure(t *testing.T) {
	s := open(t, bad(ours))
	created := s.object.GetCreationTimestamp().UTC()
	now := created
	s.reconciler.Now = func() time.Time { return now }
	s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Hour}))
	now = created.Add(time.Hour - time.Second)
	s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: time.Second}))
	s.Expect(s.Wire.Writes()).To(BeEmpty(), "it would be a conflict for that Rollout")

	now = created.Add(time.Hour)
	s.Expect(s.tick()).To(Equal(ctrl.Result{RequeueAfter: week}))
	s.Expect(s.status()).To(Equal(&v1alpha1.ReleaseQuarantineStatus{
		ObservedGeneration: 1, Phase: ended,
		Until: &metav1.Time{Time: now}, EndedAt: &metav1.Time{Time: now},
	}))
	now = now.Add(week)
	s.tick()
	s.Expect(s.phase()).To(Equal(v1alpha1.QuarantinePhase("deleted")))
}

func TestFailureOfAWrite(t *testing.T) {
	resource := schema.GroupResource{Resource: "releasequarantines"}
	for name, tt := range map[string]struct {
		err    error
		failed bool
		again  time.Duration
	}{
		"another client was faster": {apierrors.NewConflict(resource, "bad", nil), false, recheck.AfterConflict},
		"it is gone":                {apierrors.NewNotFound(resource, "bad"), false, 0},
		"it is forbidden":           {apierrors.NewForbidden(resource, "bad", nil), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, bad())
			s.Wire.Fail = func(int, string, client.Object) fixture.Fault { return fixture.Fault{Err: tt.err} }
			result, err := s.try()
			s.Expect(err != nil).To(Equal(tt.failed))
			s.Expect(result).To(Equal(ctrl.Result{RequeueAfter: tt.again}))
			s.Wire.Fail = nil
			s.tick()
			s.Expect(s.phase()).To(Equal(held))
		})
	}
}

func TestDeletionThatCannotHappenIsTriedAgain(t *testing.T) {
	s := open(t, bad(ours, failed, lifted))
	s.tick()
	s.Pass(week)
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault {
		return fixture.Fault{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "releasequarantines"}, "bad", nil)}
	}
	_, err := s.try()
	s.Expect(err).To(MatchError(ContainSubstring("delete quarantine " + s.Namespace)))
	s.Wire.Fail = nil
	s.tick()
	s.Expect(s.phase()).To(Equal(v1alpha1.QuarantinePhase("deleted")))
}

// TestQuarantineThatHasChangedIsNotDeleted: the cache still shows it as lifted.
func TestQuarantineThatHasChangedIsNotDeleted(t *testing.T) {
	s := open(t, bad(ours, failed, lifted, until(30*day)))
	s.tick()
	s.Pass(week)
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if strings.HasPrefix(write, "delete") {
			s.edit(`{"spec":{"lifted":false}}`)
		}
		return fixture.Fault{}
	}
	_, err := s.try()
	s.Expect(err).NotTo(HaveOccurred())
	s.Wire.Fail = nil
	s.tick()
	s.Expect(s.phase()).To(Equal(held))
}

func TestQuarantineThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	s := open(t, bad(func(q *v1alpha1.ReleaseQuarantine) { q.Finalizers = []string{"example.com/slow"} }))
	s.Expect(s.Delete(s.Ctx, s.object)).To(Succeed())
	s.Expect(s.tick()).To(Equal(ctrl.Result{}))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.edit(`{"metadata":{"finalizers":null}}`)
}

func TestNameAndLabelsAreThoseOfTheDigest(t *testing.T) {
	g, q := NewWithT(t), bad(ours)
	g.Expect(q.Name).To(Equal("sha256-3f2a9c1d5b7e8f60a1b2"))
	g.Expect(q.Labels).To(HaveKeyWithValue(v1alpha1.QuarantineDigestLabel, "3f2a9c1d5b7e8f60a1b2"))
	g.Expect(quarantine.IsManaged(q)).To(BeTrue())
	g.Expect(quarantine.IsManaged(bad())).To(BeFalse())
}
