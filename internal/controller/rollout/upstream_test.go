// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// upstreamUpdates simulates a client with upstream's types: it reads the Rollout, edits
// the fields that it knows, and writes the whole status back.
func (s *testEnv) upstreamUpdates(edit func(*fixture.UpstreamRollout)) {
	wire, err := s.raw("shop").MarshalJSON()
	s.Expect(err).NotTo(HaveOccurred())
	sent, err := fixture.ThroughUpstream(wire, edit)
	s.Expect(err).NotTo(HaveOccurred())
	after := &unstructured.Unstructured{}
	s.Expect(after.UnmarshalJSON(sent)).To(Succeed())
	s.Expect(s.Status().Update(s.Ctx, after)).To(Succeed())
}

// raw returns the Rollout as it is stored, without Go types.
func (s *testEnv) raw(name string) *unstructured.Unstructured {
	rollout := &unstructured.Unstructured{}
	rollout.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	s.Expect(s.Get(s.Ctx, s.Key(name), rollout)).To(Succeed())
	return rollout
}

// statesOfABake contains the states of a Rollout, how to reach them, and their kstatus.
var statesOfABake = []struct {
	name    string
	reach   func(*testEnv)
	kstatus status.Status
}{
	{"nothing promoted yet", func(s *testEnv) { s.withdraw(); s.rest("shop") }, status.InProgressStatus},
	{"Deploying, not applied", func(s *testEnv) { s.rest("shop") }, status.InProgressStatus},
	{"Deploying, applied, the check is silent", func(s *testEnv) {
		s.rest("shop")
		s.fluxApplies()
		s.rest("shop")
		s.Pass(10 * time.Second)
		s.rest("shop")
	}, status.InProgressStatus},
	{"InProgress", func(s *testEnv) { s.deploy("shop") }, status.InProgressStatus},
	{"the bake time is over, the check is Pending", func(s *testEnv) {
		s.deploy("shop")
		s.checksSay(v1alpha1.HealthStatusPending)
		s.Pass(10 * time.Minute)
		s.rest("shop")
	}, status.InProgressStatus},
	{"Succeeded", func(s *testEnv) { s.deployAndBake("shop") }, status.CurrentStatus},
	{"Failed by the check", func(s *testEnv) { s.fail() }, status.FailedStatus},
	{"Failed by the deadline", func(s *testEnv) { s.rest("shop"); s.Pass(time.Hour); s.rest("shop") }, status.FailedStatus},
	{"retried", func(s *testEnv) {
		s.fail()
		s.ask(v1alpha1.RetryAnnotation, "")
		s.rest("shop")
		s.Pass(10 * time.Second)
		s.rest("shop")
	}, status.InProgressStatus},
	{"in recovery, and unhealthy", func(s *testEnv) {
		s.fail()
		s.release("shop", "1.1.0")
		s.ask(v1alpha1.UnblockFailedAnnotation, "true")
		s.rest("shop")
		s.fluxApplies()
		s.rest("shop")
		s.checkFails("smoke", "it does not answer", s.Clock.Now())
		s.Pass(time.Hour)
		s.rest("shop")
	}, status.InProgressStatus},
	{"held by a gate", func(s *testEnv) {
		s.deployAndBake("shop")
		s.Add(fixture.MakeGate("closed", "shop").Closed().Obj(), fixture.MakeGate("open", "shop").Obj(),
			fixture.MakeGate("empty", "shop").Allow().Obj())
		s.release("shop", "1.1.0")
		s.rest("shop")
	}, status.CurrentStatus},
	{"superseded by a pin", func(s *testEnv) { s.deploy("shop"); s.pinTo("0.9.0"); s.rest("shop") }, status.InProgressStatus},
	{"a request was refused", func(s *testEnv) {
		s.deployAndBake("shop")
		s.ask(v1alpha1.ForceDeployAnnotation, "1.0.0")
		s.rest("shop")
	}, status.CurrentStatus},
}

// openBake opens an env with a Rollout and everything that protects a promotion.
func openBake(t *testing.T) *testEnv {
	t.Helper()
	rollout := baked().DeployTimeout(5*time.Minute).Annotate(v1alpha1.ReconcileRequestAnnotation, "token")
	return open(t, shopWith(rollout, "1.0.0", fixture.MakeHealthCheck("smoke").Healthy().Obj())...)
}

func TestWriteThroughUpstreamsTypesChangesNoDecision(t *testing.T) {
	t.Parallel()
	for _, state := range statesOfABake {
		t.Run(state.name, func(t *testing.T) {
			s := openBake(t)
			state.reach(s)
			before, others := s.rollout("shop").Status, s.others()
			s.Expect(before.LastHandledReconcileAt).To(Equal("token"))
			s.Expect(before.Targets).To(HaveLen(min(2, 2*len(before.History))), "there is something to be lost")
			s.Wire.Forget()
			s.Events.Take()

			s.upstreamUpdates(nil)
			s.Expect(s.rollout("shop").Status).NotTo(Equal(before), "it does erase what it does not know")
			s.rest("shop")
			s.Expect(withoutTimes(withoutProofs(s.rollout("shop").Status))).To(Equal(withoutTimes(withoutProofs(before))))
			s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
			s.Expect(s.Events.Take()).To(BeEmpty())
			s.Expect(s.others()).To(Equal(others), "nothing is promoted or reset a second time")

			undisturbed := openBake(t)
			state.reach(undisturbed)
			s.Expect(s.goOn()).To(MatchJSON(undisturbed.goOn()))
		})
	}
}

func TestKstatusUnderstandsEachState(t *testing.T) {
	t.Parallel()
	for _, state := range statesOfABake {
		t.Run(state.name, func(t *testing.T) {
			s := openBake(t)
			state.reach(s)
			s.Expect(s.kstatus("shop")).To(Equal(state.kstatus))
		})
	}
}

// withoutProofs leaves out what only the pass can know that saw it.
func withoutProofs(status v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	plain := *status.DeepCopy()
	for i := range plain.History {
		plain.History[i].AppliedTime, plain.History[i].ProvenBy, plain.History[i].Image = nil, nil, ""
	}
	return plain
}

// others returns the versions of the objects that a promotion or a reset writes.
func (s *testEnv) others() map[string]string {
	versions := map[string]string{}
	for _, o := range []client.Object{
		fixture.MakeRepository("shop").Obj(), fixture.MakeKustomization("shop").Obj(), fixture.MakeHealthCheck("smoke").Obj(),
	} {
		s.Expect(s.Get(s.Ctx, s.Key(o.GetName()), o)).To(Succeed())
		versions[o.GetObjectKind().GroupVersionKind().Kind] = o.GetResourceVersion()
	}
	return versions
}

// goOn removes what keeps the Rollout from promoting, publishes two more releases, and
// returns the final history.
func (s *testEnv) goOn() string {
	s.Expect(s.DeleteAllOf(s.Ctx, &v1alpha1.RolloutGate{}, client.InNamespace(s.Namespace))).To(Succeed())
	s.pin("shop", nil)
	s.deployAndBake("shop")
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		s.release("shop", tag)
		s.deployAndBake("shop")
	}
	history, err := json.Marshal(withoutProofs(s.rollout("shop").Status).History)
	s.Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll(string(history), s.Namespace, "somewhere")
}

// markSuccessful writes what the dashboard writes when a user marks a release as
// successful.
func (s *testEnv) markSuccessful() {
	s.upstreamUpdates(func(r *fixture.UpstreamRollout) {
		current, succeeded, said := &r.Status.History[0], string(v1alpha1.BakeSucceeded), "Manually marked as successful"
		current.BakeStatus, current.BakeStatusMessage = &succeeded, &said
		current.BakeEndTime = &metav1.Time{Time: s.Clock.Now()}
		apimeta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DeploymentMarkedSuccessfulReason, Message: said})
	})
}

func TestUserWhoMarksAPromotionSuccessfulIsBelieved(t *testing.T) {
	t.Parallel()
	for _, state := range statesOfABake {
		if state.kstatus == status.CurrentStatus || state.name == "nothing promoted yet" {
			continue // the dashboard offers it for running and failed promotions
		}
		t.Run(state.name, func(t *testing.T) {
			s := openBake(t)
			state.reach(s)
			entries := s.history("shop")
			s.markSuccessful()
			s.rest("shop")
			entries[0].State = v1alpha1.BakeSucceeded
			s.Expect(s.history("shop")).To(Equal(entries))
			s.Expect(s.ready()).To(Equal(condition{metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, ""}))

			s.checksSay(v1alpha1.HealthStatusUnhealthy)
			s.Pass(time.Hour)
			s.deploy("shop")
			s.Expect(s.carried("shop")["tag"]).To(Equal(entries[0].Tag), "the targets converge")
			s.Expect(s.history("shop")).To(Equal(entries), "it is final")
			s.Expect(s.ready()).To(Equal(condition{metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, ""}))
			s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))

			s.pin("shop", nil)
			s.release("shop", "1.5.0")
			s.deployAndBake("shop")
			s.Expect(s.history("shop")[0].Tag).To(Equal("1.5.0"))
			s.Expect(s.ready().Reason).To(Equal(v1alpha1.BakeTimePassedReason), "that word was of the release before")
		})
	}
}

// ready returns the Ready condition without its message.
func (s *testEnv) ready() condition {
	c := s.condition("shop", v1alpha1.ReadyCondition)
	c.Message = ""
	return c
}

func TestPromotionThatIsMarkedBeforeItsTargetsAreWrittenStillReachesThem(t *testing.T) {
	s := openBake(t)
	s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
		return fixture.Fault{Err: map[bool]error{true: fixture.ErrDead}[n > 1], Fatal: n > 1}
	}
	_, err := s.try("shop")
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.carried("shop")["tag"]).To(Equal("0.0.1"))
	s.markSuccessful()
	s.Wire = &fixture.Wire{}
	s.restart()
	s.rest("shop")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"}))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.ready()).To(Equal(condition{metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, ""}))
	s.Expect(s.kstatus("shop")).To(Equal(status.InProgressStatus), "Flux has not applied it yet")
}

// letGoOn writes what the dashboard writes when a user lets a failed bake continue: the
// status of the Rollout and of its HealthChecks.
func (s *testEnv) letGoOn() {
	s.upstreamUpdates(func(r *fixture.UpstreamRollout) {
		current, deploying := &r.Status.History[0], string(v1alpha1.BakeDeploying)
		current.BakeStatus, current.BakeStatusMessage, current.BakeEndTime = &deploying, nil, nil
	})
	said, now := "reset by the dashboard", metav1.NewTime(s.Clock.Now())
	all := &v1alpha1.HealthCheckList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range all.Items {
		all.Items[i].Status = v1alpha1.HealthCheckStatus{Status: v1alpha1.HealthStatusPending, Message: &said, LastChangeTime: &now}
		s.Expect(s.Status().Update(s.Ctx, &all.Items[i])).To(Succeed())
	}
}

// failAfter lets a bake run for that long, and fail.
func failAfter(t *testing.T, d time.Duration) *testEnv {
	t.Helper()
	s := openBake(t)
	s.Add(fixture.MakeHealthCheck("web").Obj())
	s.deploy("shop")
	s.Pass(d)
	s.checkFails("smoke", "it does not answer", s.Clock.Now())
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeFailed))
	return s
}

func TestBakeThatAUserLetsGoOnGoesOnFromWhereItStarted(t *testing.T) {
	s := failAfter(t, 4*time.Minute)
	s.Pass(2 * time.Minute) // beyond the deadline of a promotion that has not started to bake
	s.letGoOn()
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}), "there is no deadline")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}), "the checks were reset by the dashboard")
	s.Expect(s.kstatus("shop")).To(Equal(status.InProgressStatus))

	s.ChangeStatus(fixture.MakeHealthCheck("web").Obj(), func(o client.Object) {
		o.(*v1alpha1.HealthCheck).Status.Status = v1alpha1.HealthStatusHealthy
	})
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeDeploying), "one of two is silent")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(s.rollout("shop").Current().BakeStartTime.Time).To(BeTemporally("==", fixture.Noon))
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(4*time.Minute), "six of ten minutes are over")
	s.Pass(4 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.ready().Reason).To(Equal(v1alpha1.BakeTimePassedReason))
}

func TestBakeThatGoesOnAfterItsEndEndsOnceAllChecksAreHealthy(t *testing.T) {
	s := failAfter(t, 9*time.Minute)
	s.Pass(time.Hour)
	s.letGoOn()
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}), "time alone is no success")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestBakeThatGoesOnCanFailAgain(t *testing.T) {
	s := failAfter(t, 4*time.Minute)
	s.letGoOn()
	s.rest("shop")
	s.Pass(time.Minute)
	s.checkFails("web", "no answer either", s.Clock.Now())
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeFailed}}))
	s.Expect(s.rollout("shop").Current().FailedHealthChecks).To(HaveLen(1))
	s.Expect(s.rollout("shop").Current().FailedHealthChecks[0].Name).To(Equal("web"))
}
