// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	alertv1 "github.com/fluxcd/notification-controller/api/v1beta3"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func TestAlertThatKnowsNothingOfRolloutsHearsOfThem(t *testing.T) {
	s := env.New(t, plane)
	prepare(s)
	team := s.OpenChannel("team", eventv1.EventSeverityInfo, every("OCIRepository"), every("Kustomization"))
	live(s)

	var want []string
	for _, line := range reported(s) {
		want = append(want, "OCIRepository "+line[0]+" Rollout shop: "+line[1])
	}
	await(t, team, want)
	for _, e := range team.Ours() {
		if e.Reason == v1alpha1.BakeTimeFailedReason {
			checkMetadata(t, s, e)
		}
	}
}

func TestAlertOnRolloutsHearsOfThemOnceFluxIsPatched(t *testing.T) {
	s := env.New(t, plane)
	prepare(s)
	source := every("Rollout")
	source.APIVersion, source.MatchLabels = v1alpha1.GroupVersion.String(), map[string]string{"team": "web"}
	letAlertsNameRollouts(s, s.Alert("unpatched", eventv1.EventSeverityInfo, source))
	rollout := s.Rollout()
	s.Change(rollout, func() { rollout.Labels = source.MatchLabels })
	team := s.OpenChannel("team", eventv1.EventSeverityInfo, source)
	live(s)

	var want []string
	for _, line := range reported(s) {
		want = append(want, "Rollout "+line[0]+" "+line[1])
	}
	await(t, team, want)
}

// reported returns the events of live, each as "severity Reason:" and its message.
func reported(s *env.Env) [][2]string {
	return [][2]string{
		{"info ReleaseDetected:", "release 1.1.0 was detected"},
		{"info SomeGatesBlocking:", "1.1.0: not passing: RolloutGate manual"},
		{"info BakeTimeDeploying:", "promoted 1.1.0 (the newest eligible release of ImagePolicy shop); " +
			"waiting for Flux to apply 1.1.0 to 2 targets, then for 1 HealthCheck"},
		{"info BakeTimeStarted:", "1.1.0: applied and healthy (1 HealthCheck); baking for 1s, until TIME"},
		{"info BakeTimePassed:", "1.1.0: applied and healthy (1 HealthCheck) for the bake time of 1s"},
		{"info ReleaseDetected:", "release 1.2.0 was detected"},
		{"info BakeTimeDeploying:", "promoted 1.2.0 (the newest eligible release of ImagePolicy shop); " +
			"waiting for Flux to apply 1.2.0 to 2 targets, then for 1 HealthCheck"},
		{"error BakeTimeFailed:", "1.2.0: HealthCheck " + s.Namespace + "/shop: it does not answer; " +
			"last good release: 1.1.0; roll back with spec.wantedVersion, or annotate with retry or unblock-failed"},
		{"info RolledBack:", "rolled back to 1.1.0 (pinned manually in spec.wantedVersion); " +
			"waiting for Flux to apply 1.1.0 to 2 targets, then for 1 HealthCheck"},
	}
}

// prepare deploys 1.0.0 with a HealthCheck whose status the test writes.
func prepare(s *env.Env) {
	s.T.Helper()
	s.CreateFlux()
	check, class := s.HealthCheck(), "example"
	check.Spec.Class, check.Annotations = &class, nil
	s.Create(check, s.Rollout(s.Baked(time.Second, time.Minute)))
	s.Publish(s.ConfigRelease("1.0.0"))
	says(s, v1alpha1.HealthStatusHealthy, "")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
}

// live promotes a release that a gate holds at first and that succeeds, then a release
// that fails, and then rolls back.
func live(s *env.Env) {
	s.T.Helper()
	passing := false
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "manual"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: s.Name}, &passing
	s.Create(gate)
	s.AwaitClosed()
	s.Publish(s.ConfigRelease("1.1.0"))
	s.Await("the gate to hold 1.1.0", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.ReleaseCandidates) > 0 && r.Status.ReleaseCandidates[0].Tag == "1.1.0"
	})
	s.Delete(gate)
	says(s, v1alpha1.HealthStatusHealthy, "")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	s.Publish(s.ConfigRelease("1.2.0"))
	says(s, v1alpha1.HealthStatusUnhealthy, "it does not answer")
	s.AwaitState("1.2.0", v1alpha1.BakeFailed)
	s.Pin("1.1.0")
	s.AwaitState("1.1.0", v1alpha1.BakeDeploying)
}

// says writes the status of the HealthCheck in the place of its controller, once the
// reset for the newest promotion is complete: the mark is written after the status. A
// HealthCheck that is Unhealthy between the two writes may be reported as blocking
// promotions before it fails the bake.
func says(s *env.Env, status v1alpha1.HealthStatus, message string) {
	s.T.Helper()
	check := s.HealthCheck()
	env.Eventually(s.T, "the reset of the HealthCheck", func() (bool, string) {
		s.Read(check)
		rollout := s.Live()
		mark := check.Annotations[v1alpha1.ResetAnnotationPrefix+string(rollout.UID)]
		reset := rollout.Current() != nil && strings.HasPrefix(mark, evidence.ResetMark(rollout.Current(), nil)) && !strings.HasSuffix(mark, "/begun")
		return reset && check.Status.Status == v1alpha1.HealthStatusPending, fmt.Sprintf("%s %+v", mark, check.Status)
	})
	s.ChangeStatus(check, func() {
		check.Status.Status = status
		if status == v1alpha1.HealthStatusUnhealthy {
			check.Status.Message, check.Status.LastErrorTime = &message, &metav1.Time{Time: time.Now()}
		}
	})
}

// checkMetadata compares the metadata that is delivered with a failed bake. The token is
// no longer needed and not part of it.
func checkMetadata(t *testing.T, s *env.Env, e eventv1.Event) {
	t.Helper()
	digests, err := plane.Registry.Digests(t.Context(), s.Repository)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"revision": "1.2.0@" + digests["1.2.0"], "rollout": "shop", "from": "1.1.0", "to": "1.2.0",
		"deployment": "3", "actor": "rollout-controller",
	}
	if diff := cmp.Diff(want, e.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func every(kind string) notificationv1.CrossNamespaceObjectReference {
	return notificationv1.CrossNamespaceObjectReference{Kind: kind, Name: "*"}
}

// letAlertsNameRollouts applies the component for the version of Flux that runs here. The
// API server refuses the Alert before that, and admits it afterwards.
func letAlertsNameRollouts(s *env.Env, alert *alertv1.Alert) {
	s.T.Helper()
	if err := alertv1.AddToScheme(plane.Client().Scheme()); err != nil {
		s.T.Fatal(err)
	}
	admitted := func() error {
		return plane.Client().Create(s.T.Context(), alert.DeepCopy(), client.DryRunAll)
	}
	if err := admitted(); !apierrors.IsInvalid(err) {
		s.T.Fatalf("an Alert on Rollouts was answered with %v before Flux was patched", err)
	}
	rendered, err := manifests.Patched(s.T.Context(), "config/notification/flux-2.6", notificationCRDs(s)...)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, o := range rendered {
		if o.GetResourceVersion() == "" {
			s.Create(o)
		} else if err := plane.Client().Update(s.T.Context(), o); err != nil {
			s.T.Fatal(err)
		}
	}
	env.Eventually(s.T, "an Alert on Rollouts that is admitted", func() (bool, string) {
		err := admitted()
		return err == nil, fmt.Sprint(err)
	})
}

// notificationCRDs returns the CRDs of Alerts and Receivers from the API server.
func notificationCRDs(s *env.Env) []*unstructured.Unstructured {
	s.T.Helper()
	var crds []*unstructured.Unstructured
	for _, name := range []string{"alerts.notification.toolkit.fluxcd.io", "receivers.notification.toolkit.fluxcd.io"} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		crd.SetName(name)
		s.Read(crd)
		crds = append(crds, crd)
	}
	return crds
}
