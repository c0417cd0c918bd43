// SPDX-License-Identifier: Apache-2.0

// Package clocks makes everything except the controller write times of a clock that is an
// hour off: Flux, the writers of HealthChecks, and the build of releases. The tests act
// in their place.
package clocks

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/artifact"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
)

// bake is how long a release bakes.
const bake = 2 * time.Second

func TestClocksOfOthersAreAnHourOff(t *testing.T) {
	reported := report.Begin(t, "the clocks of Flux, of the writers of HealthChecks and of who builds releases are an hour ahead, or behind, or are set right meanwhile",
		"what is true is decided by what comes after what, never by comparing their times: no bake on what was healthy before, no wait without end, no duration below zero")
	plane := env.StartFor(t, controlplane.Options{ImageScanner: true}, env.AsShipped...)
	var times, promotions atomic.Int32
	t.Run("clocks", func(t *testing.T) {
		for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := raise(t, plane, off)
				for _, check := range []func(*world){
					(*world).goesWell, (*world).doesNotBakeOnOldHealth, (*world).doesNotFailByAnOldError,
					(*world).failsByANewError, (*world).failsByAnErrorOfAClockThatWasSetRight,
				} {
					check(w)
				}
				w.isSane()
				promotions.Add(int32(observer.Replay(t, plane.ControlPlane, w.Namespace).Promotions))
				times.Add(int32(w.times))
			})
		}
	})
	reported.Saw(int(times.Load()), "%d promotions on times that were an hour off: bakes began on what was said after the release was applied, old errors failed none, new ones did, and every bake took its time", promotions.Load())
}

// world is an application in which the test plays all parts except the controller, with a
// clock that is off.
type world struct {
	*env.Env
	off time.Duration
	// digests of the pushed artifacts, by version.
	digests map[string]string
	// times is how often a time of that clock was written.
	times int
}

func raise(t *testing.T, plane *env.Plane, off time.Duration) *world {
	t.Helper()
	w := &world{Env: env.New(t, plane), off: off, digests: map[string]string{}}
	w.CreateFlux()
	check, class := w.HealthCheck(), "example"
	check.Spec.Class, check.Annotations = &class, nil
	w.Create(check, w.Rollout(w.Baked(bake, 5*time.Minute)))
	return w
}

// now returns the time of the clock that is off.
func (w *world) now() metav1.Time {
	w.times++
	return metav1.NewTime(time.Now().Add(w.off))
}

// release publishes a version, and waits until it is promoted.
func (w *world) release(version string) {
	w.T.Helper()
	release := w.ConfigRelease(version)
	release.Annotations = map[string]string{artifact.CreatedAnnotation: w.now().UTC().Format(time.RFC3339)}
	w.digests[version] = w.Push(release)
	w.Scan()
	w.AwaitState(version, v1alpha1.BakeDeploying)
	repository := w.OCIRepository("")
	env.Eventually(w.T, version+" in the OCIRepository", func() (bool, string) {
		w.Read(repository)
		return repository.Spec.Reference != nil && repository.Spec.Reference.Tag == version, fmt.Sprintf("%+v", repository.Spec)
	})
}

// applied writes the status that Flux writes after it has applied a version.
func (w *world) applied(version string) {
	w.T.Helper()
	revision := version + "@" + w.digests[version]
	ready := func(o client.Object) []metav1.Condition {
		return []metav1.Condition{{
			Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Played", LastTransitionTime: w.now(), ObservedGeneration: o.GetGeneration(),
		}}
	}
	repository := w.OCIRepository("")
	w.ChangeStatus(repository, func() {
		repository.Status.ObservedGeneration, repository.Status.Conditions = repository.Generation, ready(repository)
		repository.Status.Artifact = &meta.Artifact{
			Path: "played", URL: "http://flux.example/played", Revision: revision, LastUpdateTime: w.now(),
			Digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123",
		}
	})
	kustomization := w.Kustomization()
	w.ChangeStatus(kustomization, func() {
		kustomization.Status = kustomizev1.KustomizationStatus{
			ObservedGeneration: kustomization.Generation, Conditions: ready(kustomization),
			LastAppliedRevision: revision, LastAttemptedRevision: revision,
		}
	})
}

// awaitReset waits until the HealthCheck is reset for the newest promotion.
func (w *world) awaitReset() {
	w.T.Helper()
	check := w.HealthCheck()
	env.Eventually(w.T, "the reset of the HealthCheck", func() (bool, string) {
		w.Read(check)
		return check.Status.Status == v1alpha1.HealthStatusPending, fmt.Sprintf("%+v", check.Status)
	})
}

// says writes the status of the HealthCheck in the place of its controller. An error
// keeps its time until the next one.
func (w *world) says(status v1alpha1.HealthStatus, failedAt *metav1.Time) {
	w.T.Helper()
	check := w.HealthCheck()
	w.ChangeStatus(check, func() {
		changed := w.now()
		check.Status.Status, check.Status.LastChangeTime = status, &changed
		if failedAt != nil {
			check.Status.LastErrorTime = failedAt
		}
	})
}

func (w *world) healthy() { w.says(v1alpha1.HealthStatusHealthy, nil) }

// deploy promotes a release until its bake begins.
func (w *world) deploy(version string) {
	w.T.Helper()
	w.release(version)
	w.applied(version)
	w.awaitReset()
	w.healthy()
	w.AwaitState(version, v1alpha1.BakeInProgress)
}

func (w *world) goesWell() {
	w.T.Helper()
	w.deploy("1.0.0")
	w.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
}

func (w *world) doesNotBakeOnOldHealth() {
	w.T.Helper()
	w.healthy()
	w.release("1.1.0")
	w.healthy() // about 1.0.0, and later than all that follows if the clock is ahead
	w.applied("1.1.0")
	w.awaitReset()
	w.Stays("Deploying", func(r *v1alpha1.Rollout) bool { return r.Current().State() == v1alpha1.BakeDeploying })
	w.healthy()
	w.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

func (w *world) doesNotFailByAnOldError() {
	w.T.Helper()
	failed := w.now()
	w.says(v1alpha1.HealthStatusUnhealthy, &failed)
	w.says(v1alpha1.HealthStatusHealthy, &failed)
	w.release("1.2.0")
	w.applied("1.2.0")
	w.awaitReset()
	w.says(v1alpha1.HealthStatusHealthy, &failed)
	w.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
}

func (w *world) failsByANewError() {
	w.T.Helper()
	w.deploy("1.3.0")
	failed := w.now()
	w.says(v1alpha1.HealthStatusUnhealthy, &failed)
	w.AwaitState("1.3.0", v1alpha1.BakeFailed)
	w.Ask(v1alpha1.RetryAnnotation, "again")
	w.AwaitState("1.3.0", v1alpha1.BakeDeploying)
	w.awaitReset()
	w.healthy()
	w.AwaitState("1.3.0", v1alpha1.BakeSucceeded)
}

// failsByAnErrorOfAClockThatWasSetRight reports an error after the clock was set right.
// If the clock was ahead, the time of this error is before the time of the earlier one.
func (w *world) failsByAnErrorOfAClockThatWasSetRight() {
	w.T.Helper()
	w.deploy("1.4.0")
	w.off = 0
	failed := w.now()
	w.says(v1alpha1.HealthStatusUnhealthy, &failed)
	w.AwaitState("1.4.0", v1alpha1.BakeFailed)
}

// isSane checks that every bake took its time and not much more, and that no release was
// dropped.
func (w *world) isSane() {
	w.T.Helper()
	rollout := w.Live()
	want := []string{"5 1.4.0 Failed", "4 1.3.0 Succeeded", "3 1.2.0 Succeeded", "2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}
	if diff := cmp.Diff(want, env.History(rollout)); diff != "" {
		w.T.Errorf("history (-want +got):\n%s", diff)
	}
	for i := range rollout.Status.History {
		e := &rollout.Status.History[i]
		took := e.BakeEndTime.Sub(e.BakeStartTime.Time)
		if e.BakeStartTime.Before(&e.Timestamp) || took < 0 || e.State() == v1alpha1.BakeSucceeded && (took < bake || took > time.Minute) {
			w.T.Errorf("%s was promoted at %s, and baked from %s to %s", e.Version.Tag, e.Timestamp, e.BakeStartTime, e.BakeEndTime)
		}
	}
	if known := len(rollout.Status.AvailableReleases); known != 5 {
		w.T.Errorf("%d releases are known, want 5", known)
	}
}
