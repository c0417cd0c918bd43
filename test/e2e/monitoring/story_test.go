// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// play causes all situations that alerts and panels report.
func play(t *testing.T) {
	t.Helper()
	succeedsThenWaits(t)
	bakeFails(t)
	isRestored(t)
	isNeverApplied(t)
	isInConflict(t)
	isStalled(t)
	isStalledAndSuspended(t)
	cannotBeStored(t)
	cannotBeRead(t)
}

// succeedsThenWaits promotes a release, and holds the next one with a gate. It also
// creates schedules, of which one cannot be evaluated, and Environments, of which one has
// no Rollout.
func succeedsThenWaits(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	closed := false
	s.Create(&v1alpha1.RolloutGate{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "approval"},
		Spec:       v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: s.Name}, Passing: &closed},
	})
	s.AwaitClosed()
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitCandidate("1.1.0")

	elsewhere := v1alpha1.RolloutScheduleSpec{
		RolloutSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}},
		Rules:           []v1alpha1.ScheduleRule{{Name: "nights", TimeRange: &v1alpha1.TimeRange{Start: "22:00", End: "06:00"}}},
	}
	broken := elsewhere
	broken.Timezone = "Nowhere/Atlantis"
	everywhere := v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: elsewhere}
	s.Create(
		&v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "nights"}, Spec: elsewhere},
		&v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "broken"}, Spec: broken},
		&v1alpha1.ClusterRolloutSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: everywhere},
		environmentOf(s, "staging", s.Name), environmentOf(s, "broken", "nobody"),
	)
}

// environmentOf returns an Environment that comes after no other.
func environmentOf(s *env.Env, name, rollout string) *environmentsv1.Environment {
	return &environmentsv1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: environmentsv1.EnvironmentSpec{
			RolloutRef: v1alpha1.LocalObjectReference{Name: rollout}, Name: "shop", Environment: name,
			Backend: environmentsv1.Backend{Type: environmentsv1.BackendCluster},
		},
	}
}

// bakeFails makes a HealthCheck Unhealthy during the bake.
func bakeFails(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	check, rollout := s.HealthCheck(), s.Rollout(s.Baked(time.Hour, time.Hour))
	class := "smoke"
	check.Spec.Class = &class
	s.Create(check, rollout)
	says := func(status v1alpha1.HealthStatus, at *metav1.Time) {
		s.ChangeStatus(check, func() { check.Status.Status, check.Status.LastErrorTime = status, at })
	}
	s.Publish(s.ConfigRelease("1.0.0"))
	env.Eventually(t, "the reset of the HealthCheck", func() (bool, string) {
		s.Read(check)
		return check.Status.Status == v1alpha1.HealthStatusPending, string(check.Status.Status)
	})
	says(v1alpha1.HealthStatusHealthy, nil)
	s.AwaitState("1.0.0", v1alpha1.BakeInProgress)
	now := metav1.Now()
	says(v1alpha1.HealthStatusUnhealthy, &now)
	s.AwaitState("1.0.0", v1alpha1.BakeFailed)
}

// isRestored replaces a release that cannot be applied by one that can.
func isRestored(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.Rollout(func(spec *v1alpha1.RolloutSpec) { spec.DeployTimeout = &metav1.Duration{Duration: time.Second} }))
	s.Publish(s.BrokenRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeFailed)
	s.Push(s.ConfigRelease("1.0.1"))
	s.Pin("1.0.1")
	s.AwaitState("1.0.1", v1alpha1.BakeSucceeded)
}

func isNeverApplied(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.BrokenRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeDeploying)
}

// isInConflict creates a target that has a semver range of its own.
func isInConflict(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	target := s.OCIRepository("")
	s.Change(target, func() { target.Spec.Reference = &sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"} })
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	s.Await("the conflict", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Targets) > 0 && r.Status.Targets[len(r.Status.Targets)-1].State == v1alpha1.TargetConflict
	})
}

func isStalled(t *testing.T) *env.Env {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	impossible := "no tag at all"
	s.Create(s.Rollout(func(spec *v1alpha1.RolloutSpec) { spec.WantedVersion = &impossible }))
	s.Await("stalled", func(r *v1alpha1.Rollout) bool {
		return apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.StalledCondition)
	})
	return s
}

// isStalledAndSuspended suspends a Rollout that keeps its conditions and its pin. They
// raise no alert then. The suspension raises the only one.
func isStalledAndSuspended(t *testing.T) {
	t.Helper()
	s := isStalled(t)
	rollout := s.Rollout()
	s.Change(rollout, func() { rollout.Spec.Suspend = true })
}

// cannotBeStored creates a Rollout whose status an admission policy refuses.
func cannotBeStored(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	s.Name = "refused"
	fail := admissionv1.Fail
	s.Create(
		&admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "refuse"},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &fail,
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					ResourceNames: []string{s.Name},
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"rollouts/status"},
						},
					},
				}}},
				Validations: []admissionv1.Validation{{Expression: "false"}},
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "refuse"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "refuse", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
		s.NamespaceObject(),
		s.Rollout(func(spec *v1alpha1.RolloutSpec) { spec.Suspend = true }), // until the policy is in effect
	)
	rollout := s.Rollout()
	s.Read(rollout)
	env.Eventually(t, "a status that is refused", func() (bool, string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"title":"shop"}}`))
		err := plane.Client().Status().Patch(t.Context(), rollout.DeepCopy(), patch, client.DryRunAll)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	s.Change(rollout, func() { rollout.Spec.Suspend = false })
}

// cannotBeRead creates a HealthCheck with a time that its schema accepts and the
// controller cannot decode. No Rollout selects it.
func cannotBeRead(t *testing.T) {
	t.Helper()
	s := env.New(t, plane)
	check, class := s.HealthCheck(), "smoke" // the controller does not write this class
	check.Spec.Class = &class
	s.Create(s.NamespaceObject(), check)
	odd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: check.Namespace, Name: check.Name}}
	odd.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HealthCheck")) // the response cannot be decoded either
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastErrorTime":"2026-03-02t12:00:00z"}}`))
	if err := plane.Client().Status().Patch(t.Context(), odd, patch); err != nil {
		t.Fatal(err)
	}
}
