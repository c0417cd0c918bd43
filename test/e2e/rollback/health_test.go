// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// as returns a release whose manifest is changed.
func (a *app) as(version string, changes ...string) controlplane.Artifact {
	release := a.GivesUpSoon().Release(version)
	release.Files["deployment.yaml"] = strings.NewReplacer(changes...).Replace(release.Files["deployment.yaml"])
	return release
}

// replacePods deletes the pods of the application, as the eviction from a node does.
func (a *app) replacePods(most int) {
	a.T.Helper()
	var pods corev1.PodList
	if err := plane.Client().List(a.T.Context(), &pods, client.InNamespace(a.Namespace)); err != nil {
		a.T.Fatal(err)
	}
	for i := range pods.Items[:min(most, len(pods.Items))] {
		if err := plane.Client().Delete(a.T.Context(), &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			a.T.Fatal(err)
		}
	}
}

// The pods are ready, and then crash again and again. That is what a bake is for.
func TestReleaseThatCrashesDuringItsBakeIsRolledBack(t *testing.T) {
	for name, tt := range map[string]struct {
		version string
		waits   bool
		changes []string
	}{
		"a Deployment":                 {version: "1.8.1"},
		"a Deployment with spec.wait":  {version: "1.8.2", waits: true},
		"a StatefulSet":                {version: "1.8.3", changes: []string{"kind: Deployment", "kind: StatefulSet", "  progressDeadlineSeconds: 10\n", "  serviceName: shop\n"}},
		"a StatefulSet with spec.wait": {version: "1.8.4", waits: true, changes: []string{"kind: Deployment", "kind: StatefulSet", "  progressDeadlineSeconds: 10\n", "  serviceName: shop\n"}},
		"a DaemonSet":                  {version: "1.8.5", changes: []string{"kind: Deployment", "kind: DaemonSet", "  progressDeadlineSeconds: 10\n", "", "  replicas: 2\n", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			a := open(t, false)
			k := a.Kustomization()
			k.Spec.Wait = tt.waits
			a.deploy(k, a.Baked(time.Second, time.Hour))
			a.SetBakeTime(time.Hour)
			a.Publish(a.as(tt.version, tt.changes...))
			a.AwaitState(tt.version, v1alpha1.BakeInProgress)
			if err := plane.CrashVersion(t.Context(), tt.version); err != nil {
				t.Fatal(err)
			}
			a.replacePods(10)
			back := a.Await("the rollback", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 3 })
			failed := &back.Status.History[1]
			if failed.Cause != v1alpha1.CauseHealthCheckFailed || !strings.Contains(*failed.BakeStatusMessage, "container shop crashes again and again") {
				t.Errorf("%s: %s %s", failed.Version.Tag, failed.Cause, *failed.BakeStatusMessage)
			}
			if back.Current().Version.Tag != good {
				t.Errorf("it goes to %s", back.Current().Version.Tag)
			}
		})
	}
}

// A node is drained, or a pod is replaced: the bake goes on, and ends well.
func TestPodThatIsReplacedDuringABakeFailsNothing(t *testing.T) {
	const version = "1.9.1"
	a := open(t, false)
	a.deploy(a.Kustomization(), a.Baked(time.Second, time.Hour))
	a.SetBakeTime(10 * time.Second)
	a.Publish(a.as(version))
	a.AwaitState(version, v1alpha1.BakeInProgress)
	a.replacePods(1)
	done := a.AwaitState(version, v1alpha1.BakeSucceeded)
	if diff := cmp.Diff([]string{"2 1.9.1 Succeeded", "1 1.1.0 Succeeded"}, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// The pods are away for longer than the bake time, and then ready for a moment. That is no
// health for the bake time.
func TestBakeOfAReleaseThatWasAwayTakesLonger(t *testing.T) {
	const version, bake = "1.10.1", 20 * time.Second
	a := open(t, false)
	a.deploy(a.Kustomization(), a.Baked(time.Second, time.Hour))
	a.SetBakeTime(bake)
	a.Publish(a.as(version, "progressDeadlineSeconds: 10", "progressDeadlineSeconds: 600"))
	a.AwaitState(version, v1alpha1.BakeInProgress)
	if err := plane.BreakVersion(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	a.replacePods(10)
	a.Await("the clock to stand still", func(r *v1alpha1.Rollout) bool { return r.Current().UnprovenSince != nil })
	time.Sleep(bake)
	if err := plane.FixVersion(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	entry := a.AwaitState(version, v1alpha1.BakeSucceeded).Current()
	if entry.UnprovenFor == nil || entry.UnprovenFor.Duration < bake {
		t.Errorf("it stood still for %v, want at least %s", entry.UnprovenFor, bake)
	}
	if healthy := entry.BakeEndTime.Sub(entry.BakeStartTime.Time) - entry.UnprovenFor.Duration; healthy < bake {
		t.Errorf("it succeeded after %s of health: %s", healthy, *entry.BakeStatusMessage)
	}
}

// What has never run says nothing about the release: it fails by the deadline of
// Kubernetes, and is neither left nor reported.
func TestReleaseThatWasNotStartedCondemnsNothing(t *testing.T) {
	noNode := []string{"      containers:", "      nodeSelector:\n        pool: not-there-yet\n      containers:"}
	for name, tt := range map[string]struct {
		version string
		changes []string
		waits   bool
		why     string
	}{
		"no node is free":                 {version: "1.11.1", changes: noNode, why: "no node takes its pods"},
		"no node is free, and Flux waits": {version: "1.11.2", changes: noNode, waits: true},
		"the image cannot be pulled":      {version: "1.11.3", why: "nothing that has run has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := open(t, false)
			k, options := a.Kustomization(), a.Baked(time.Second, time.Hour)
			if tt.waits {
				k, options = a.waiting(5*time.Second), a.timed(time.Hour)
			}
			a.deploy(k, options)
			if tt.changes == nil {
				if err := plane.BreakVersion(t.Context(), tt.version); err != nil {
					t.Fatal(err)
				}
			}
			a.Publish(a.as(tt.version, tt.changes...))
			if tt.waits {
				a.Await("what Flux found", func(r *v1alpha1.Rollout) bool {
					return r.Current().Version.Tag == tt.version && strings.Contains(targetReasons(r), string(v1alpha1.TargetUnhealthy))
				})
				a.SetDeployTimeout(time.Second)
			}
			failed := a.AwaitState(tt.version, v1alpha1.BakeFailed)
			if entry := failed.Current(); entry.Cause != v1alpha1.CauseDeployTimeout || !strings.Contains(*entry.BakeStatusMessage, tt.why) {
				t.Errorf("%s: %s", entry.Cause, *entry.BakeStatusMessage)
			}
			a.Stays("where it is", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 2 })
			back := apimeta.FindStatusCondition(a.Live().Status.Conditions, v1alpha1.RolledBackCondition)
			if back == nil || back.Reason != v1alpha1.CauseNotSelectedReason {
				t.Errorf("RolledBack is %+v", back)
			}
			a.holdsNothing()
		})
	}
}

func targetReasons(r *v1alpha1.Rollout) string {
	var all []string
	for _, target := range r.Status.Targets {
		all = append(all, string(target.Reason))
	}
	return strings.Join(all, " ")
}

// timed returns an option for a Rollout without HealthChecks.
func (a *app) timed(deploy time.Duration) func(*v1alpha1.RolloutSpec) {
	return func(spec *v1alpha1.RolloutSpec) {
		a.Baked(time.Second, deploy)(spec)
		spec.HealthCheckSelector = nil
	}
}

// Two Rollouts write into one Kustomization. When its objects crash, nobody knows whose
// release is the cause.
func TestRolloutsOfOneKustomizationAccuseNothing(t *testing.T) {
	const crashes, innocent = "1.12.1", "1.3.0"
	a := open(t, true)
	if err := plane.CrashVersion(t.Context(), crashes); err != nil {
		t.Fatal(err)
	}
	a.deploy(a.Kustomization(), a.Baked(time.Second, time.Hour))
	till, shared := a.Another("till"), a.Kustomization()
	a.Change(shared, func() {
		shared.Annotations[v1alpha1.SubstituteAnnotationPrefix+"TILL"+v1alpha1.SubstituteAnnotationSuffix] = till.Name
	})
	check, host := till.HealthCheck(), plane.Registry.Host()
	check.Annotations[v1alpha1.KustomizationAnnotation] = shared.Name
	till.Create(till.ImageRepository(host), till.ImagePolicy(">=1.0.0"), check, till.Rollout(till.Baked(time.Second, time.Hour), goesBack))
	till.Publish(till.ConfigRelease(good))
	till.AwaitState(good, v1alpha1.BakeSucceeded)

	a.SetBakeTime(time.Hour)
	till.SetBakeTime(time.Hour)
	till.Publish(till.ConfigRelease(innocent))
	till.AwaitState(innocent, v1alpha1.BakeInProgress)
	a.Publish(a.ConfigRelease(crashes))
	for version, e := range map[string]*env.Env{crashes: a.Env, innocent: till} {
		if entry := e.AwaitState(version, v1alpha1.BakeFailed).Current(); entry.Cause != v1alpha1.CauseDeployTimeout {
			t.Errorf("%s: %s %s", version, entry.Cause, *entry.BakeStatusMessage)
		}
		e.Stays("where it is", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 2 })
	}
	a.holdsNothing()
}

// holdsNothing checks that no failure was reported.
func (a *app) holdsNothing() {
	a.T.Helper()
	var held v1alpha1.ReleaseQuarantineList
	if err := plane.Client().List(a.T.Context(), &held, client.InNamespace(a.Namespace)); err != nil || len(held.Items) > 0 {
		a.T.Errorf("%d quarantines, %v", len(held.Items), err)
	}
}
