// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

const (
	good, bad, fix = "1.1.0", "1.2.0", "1.3.0"

	// variable is what a Kustomization substitutes by the version.
	variable = "VERSION"
	// manifest is the tag of the artifact with the variable.
	manifest = "stable"
)

// app is an application whose Rollout goes back by itself. Its current release is good.
type app struct {
	*env.Env
	// byVariable is true if a Kustomization with a variable gets the version, and not an
	// OCIRepository.
	byVariable bool
}

func open(t *testing.T, byVariable bool) *app {
	t.Helper()
	t.Parallel()
	if err := plane.CrashVersion(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	return &app{Env: env.New(t, plane), byVariable: byVariable}
}

// deploy creates all objects, and waits for the good release. Flux waits for the health of
// what it applies if the Kustomization does.
func (a *app) deploy(kustomization *kustomizev1.Kustomization, options ...func(*v1alpha1.RolloutSpec)) {
	a.T.Helper()
	host := plane.Registry.Host()
	a.Create(a.NamespaceObject(), a.ImageRepository(host), a.ImagePolicy(">=1.0.0"))
	source := a.OCIRepository(host)
	if a.byVariable {
		kustomization.Annotations = map[string]string{v1alpha1.SubstituteAnnotationPrefix + variable + v1alpha1.SubstituteAnnotationSuffix: a.Name}
		source = a.templates(host)
		kustomization.Spec.SourceRef.Name = source.Name
	}
	a.Create(source, kustomization, a.HealthCheck(), a.Rollout(append(options, goesBack)...))
	a.publish(good)
	a.AwaitState(good, v1alpha1.BakeSucceeded)
}

// templates returns a source whose Deployment has a variable in place of its version.
func (a *app) templates(host string) *sourcev1.OCIRepository {
	base := a.Another("templates")
	files := a.Release("${" + variable + "}").Files
	base.Push(controlplane.Artifact{Repository: base.Repository, Tag: manifest, Files: files})
	source := base.OCIRepository(host)
	source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: manifest}
	return source
}

func (a *app) publish(version string) {
	a.T.Helper()
	if a.byVariable {
		a.Publish(a.ConfigRelease(version))
		return
	}
	if version == bad {
		a.Publish(a.GivesUpSoon().Release(version))
		return
	}
	a.Publish(a.Release(version))
}

// goesBack makes a Rollout go back, and report what has failed. How long the rollback takes
// depends on the machine.
func goesBack(spec *v1alpha1.RolloutSpec) {
	spec.Quarantine = &v1alpha1.RolloutQuarantine{}
	spec.Rollback = &v1alpha1.RolloutRollback{OverdueAfter: &metav1.Duration{Duration: time.Hour}}
}

// waiting returns a Kustomization that waits for the health of what it applies, and tries
// again after some time.
func (a *app) waiting(retry time.Duration) *kustomizev1.Kustomization {
	k := a.Kustomization()
	k.Spec.Wait, k.Spec.RetryInterval.Duration = true, retry
	return k
}

// hear opens a channel for errors of the object that the Rollout writes.
func (a *app) hear() *env.Channel {
	a.T.Helper()
	kind := sourcev1.OCIRepositoryKind
	if a.byVariable {
		kind = kustomizev1.KustomizationKind
	}
	return a.OpenChannel("errors", eventv1.EventSeverityError, notificationv1.CrossNamespaceObjectReference{Kind: kind, Name: a.Name})
}

// fallsBack checks that the bad release fails by a cause, that the good one comes back by
// itself, and that a fix goes out afterwards.
func (a *app) fallsBack(cause v1alpha1.FailureCause, alerts *env.Channel) {
	a.T.Helper()
	back := a.Await("the rollback", func(r *v1alpha1.Rollout) bool {
		return len(r.Status.History) == 3 && r.Current().State() == v1alpha1.BakeSucceeded
	})
	a.saysWhy(back, cause)
	a.runs(good)
	a.isHeld(back, cause)
	a.isAlerted(alerts, cause)

	done := []string{"3 1.1.0 Succeeded", "2 1.2.0 Failed", "1 1.1.0 Succeeded"}
	a.Stays("at 1.1.0", func(r *v1alpha1.Rollout) bool { return cmp.Equal(done, env.History(r)) })
	a.SetDeployTimeout(0)
	a.publish(fix)
	fixed := a.AwaitState(fix, v1alpha1.BakeSucceeded)
	if diff := cmp.Diff(append([]string{"4 1.3.0 Succeeded"}, done...), env.History(fixed)); diff != "" {
		a.T.Errorf("history (-want +got):\n%s", diff)
	}
	a.runs(fix)
}

// saysWhy checks what the history and the condition say of the failure and the rollback.
func (a *app) saysWhy(r *v1alpha1.Rollout, cause v1alpha1.FailureCause) {
	a.T.Helper()
	back, failed := &r.Status.History[0], &r.Status.History[1]
	type facts struct {
		Cause      v1alpha1.FailureCause
		Due        bool
		Rollback   *v1alpha1.RollbackRecord
		By         v1alpha1.TriggeredBy
		RolledBack string
	}
	rolledBack := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.RolledBackCondition)
	if rolledBack == nil {
		a.T.Fatalf("the Rollout has no condition %s", v1alpha1.RolledBackCondition)
	}
	got := facts{
		failed.Cause, failed.RollbackDue != nil && failed.RollbackDue.Equal(failed.BakeEndTime), back.Rollback, *back.TriggeredBy,
		fmt.Sprintf("%s %s", rolledBack.Status, rolledBack.Reason),
	}
	want := facts{
		cause, true, &v1alpha1.RollbackRecord{From: bad, FromID: 2, ToID: 1},
		v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: "rollout-controller"}, "True AutomaticRollback",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.T.Errorf("the rollback (-want +got):\n%s", diff)
	}
	if message := "rolled back from 1.2.0 (#2): " + *failed.BakeStatusMessage; *back.Message != message {
		a.T.Errorf("the rollback says %q, want %q", *back.Message, message)
	}
	if !strings.Contains(rolledBack.Message, *back.Message) {
		a.T.Errorf("the condition says %q, which does not contain %q", rolledBack.Message, *back.Message)
	}
}

// isHeld checks that the failure was reported, and that the release is held for a day after
// it, although the rollback has succeeded.
func (a *app) isHeld(r *v1alpha1.Rollout, cause v1alpha1.FailureCause) {
	a.T.Helper()
	until := r.Status.History[1].BakeEndTime.Add(24 * time.Hour)
	want := fmt.Sprintf("%s Held until %s, %s on shop", bad, until.UTC().Format(time.RFC3339), cause)
	env.Eventually(a.T, want, func() (bool, string) {
		var all v1alpha1.ReleaseQuarantineList
		if err := plane.Client().List(a.T.Context(), &all, client.InNamespace(a.Namespace)); err != nil || len(all.Items) != 1 {
			return false, fmt.Sprintf("%d quarantines, %v", len(all.Items), err)
		}
		q := &all.Items[0]
		if q.Status.Until == nil {
			return false, "it has no end"
		}
		got := fmt.Sprintf("%s %s until %s", strings.Join(q.Spec.Tags, ", "), q.Status.Phase, q.Status.Until.UTC().Format(time.RFC3339))
		for _, failure := range q.Status.Failures {
			got += fmt.Sprintf(", %s on %s", failure.Cause, failure.Rollout.Name)
		}
		return got == want, got
	})
}

// runs checks that the target has a version, and that its pods are ready.
func (a *app) runs(version string) {
	a.T.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	a.Read(deployment)
	got := map[string]any{
		"target": a.carried(), "image": deployment.Spec.Template.Spec.Containers[0].Image,
		"ready": deployment.Status.ReadyReplicas, "updated": deployment.Status.UpdatedReplicas,
	}
	want := map[string]any{
		"target": version, "image": "registry.example/shop:" + version, "ready": int32(2), "updated": int32(2),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.T.Errorf("what runs (-want +got):\n%s", diff)
	}
}

// carried returns the version in the target.
func (a *app) carried() string {
	a.T.Helper()
	if a.byVariable {
		k := a.Kustomization()
		a.Read(k)
		return k.Spec.PostBuild.Substitute[variable]
	}
	source := a.OCIRepository("")
	a.Read(source)
	return source.Spec.Reference.Tag
}

// isAlerted checks that the failure and the rollback, and nothing else, were delivered as
// errors, in no order.
func (a *app) isAlerted(alerts *env.Channel, cause v1alpha1.FailureCause) {
	a.T.Helper()
	want := []string{v1alpha1.BakeTimeFailedReason, v1alpha1.RolledBackReason}
	if cause == v1alpha1.CauseTargetUnhealthy {
		want = append(want, v1alpha1.TargetFailedReason)
	}
	env.Eventually(a.T, strings.Join(want, ", "), func() (bool, string) {
		var got []string
		for _, e := range alerts.Ours() {
			got = append(got, e.Reason)
		}
		slices.Sort(got)
		return slices.Equal(want, got), strings.Join(got, ", ")
	})
	for _, e := range alerts.Ours() {
		if e.Reason == v1alpha1.RolledBackReason {
			a.saysWhatHappened(e, cause)
		}
	}
}

// saysWhatHappened checks the alert about the rollback.
func (a *app) saysWhatHappened(back eventv1.Event, cause v1alpha1.FailureCause) {
	a.T.Helper()
	got := map[string]string{"severity": back.Severity}
	for _, key := range []string{"rollout", "from", "to", "cause", "deployment", "actor"} {
		got[key] = back.Metadata[key]
	}
	want := map[string]string{
		"severity": eventv1.EventSeverityError, "rollout": "shop", "from": bad, "to": good, "cause": string(cause),
		"deployment": "3", "actor": "rollout-controller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.T.Errorf("the alert (-want +got):\n%s", diff)
	}
	if prefix := "Rollout shop: rolled back to 1.1.0 (rolled back from 1.2.0 (#2): "; !strings.HasPrefix(back.Message, prefix) {
		a.T.Errorf("the alert says %q, want %q", back.Message, prefix)
	}
}

func TestReleaseThatFluxFindsUnhealthyIsRolledBack(t *testing.T) {
	a := open(t, false)
	a.deploy(a.waiting(5 * time.Second))
	alerts := a.hear()
	a.SetDeployTimeout(time.Hour)
	a.publish(bad)
	a.awaitFlux(false)
	a.SetDeployTimeout(time.Second)
	a.fallsBack(v1alpha1.CauseTargetUnhealthy, alerts)
}

func TestReleaseThatAHealthCheckFindsUnhealthyIsRolledBack(t *testing.T) {
	a := open(t, false)
	a.deploy(a.Kustomization(), a.Baked(time.Second, time.Hour))
	alerts := a.hear()
	a.publish(bad)
	a.fallsBack(v1alpha1.CauseHealthCheckFailed, alerts)
}

// The revision of a source with a variable is the same for all versions. What Flux found
// is about the version because Flux has handled the request that was written with it.
func TestVersionOfAVariableThatFluxFindsUnhealthyIsRolledBack(t *testing.T) {
	for name, tt := range map[string]struct {
		progress time.Duration // when Kubernetes reports that the Deployment makes no progress
		retry    time.Duration // of Flux
		again    bool          // Flux tries again at the deadline
	}{
		"while Flux says why":    {progress: 10 * time.Second, retry: time.Hour},
		"while Flux tries again": {progress: time.Hour, retry: time.Second, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := open(t, true)
			a.ProgressDeadline = tt.progress
			a.deploy(a.waiting(tt.retry))
			alerts := a.hear()
			a.SetDeployTimeout(time.Hour)
			a.publish(bad)
			a.awaitFlux(tt.again)
			a.SetDeployTimeout(time.Second)
			a.fallsBack(v1alpha1.CauseTargetUnhealthy, alerts)
		})
	}
}

// awaitFlux waits until the status shows that Flux has waited for health in vain. Then
// either Flux still says so, or it has begun again.
func (a *app) awaitFlux(again bool) {
	a.T.Helper()
	all := 2
	if a.byVariable {
		all = 1 // the Kustomization
	}
	a.Await("what Flux found", func(r *v1alpha1.Rollout) bool {
		return r.Current().Version.Tag == bad && len(r.Status.Targets) == all && slices.ContainsFunc(r.Status.Targets, func(target v1alpha1.TargetStatus) bool {
			return target.Reason == v1alpha1.TargetUnhealthy
		})
	})
	k := a.Kustomization()
	env.Eventually(a.T, "Flux", func() (bool, string) {
		a.Read(k)
		ready := apimeta.FindStatusCondition(k.Status.Conditions, "Ready")
		return (ready.Status == metav1.ConditionUnknown) == again, fmt.Sprintf("%+v", *ready)
	})
}
