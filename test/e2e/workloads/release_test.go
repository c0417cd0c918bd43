// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// members are the Deployments of the application, in alphabetical order.
var members = []string{"basket", "orders", "web"}

func TestInsideOneRelease(t *testing.T) {
	plane := both(controlplane.Options{Flux: true, Helm: true, ImageScanner: true}).For(t)
	installPolicy(t, plane)
	for name, run := range map[string]func(*fleet){
		"its Deployments roll out in turn, and it bakes when the last is done": (*fleet).bakesAfterTheLast,
		"a Deployment that fails stops the others, and its fix goes through":   (*fleet).stopsAtAFailure,
		"its StatefulSets roll out zone by zone":                               (*fleet).zoneByZone,
		"what old pods need is there, if Flux does not prune it":               (*fleet).keepsFromFlux,
		"its Deployments go at once, if the selector is narrowed":              (*fleet).goesAtOnce,
		"half of its Deployments go at a time, if maxConcurrent says so":       (*fleet).goesByHalves,
		"what old pods need is there, if Helm keeps it":                        (*fleet).keepsFromHelm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newFleet(t, plane, func(*scenario.Fleet) {}))
		})
	}
}

// deploy creates all objects that release the application, and waits until 1.0.0 is
// rolled out.
func (f *fleet) deploy(wait bool) {
	f.T.Helper()
	f.CreateFlux()
	kustomization := f.Kustomization()
	f.Change(kustomization, func() {
		kustomization.Spec.Wait = wait
		kustomization.Spec.Timeout.Duration = 2 * time.Minute // for all of them in turn
	})
	f.Create(f.HealthCheck(), f.Rollout(f.Baked(time.Second, 2*time.Minute)))
	f.release("1.0.0", nil)
	f.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	f.awaitRolledOut("1.0.0")
}

// release publishes a version. Some Deployments have an image of another version.
func (f *fleet) release(version string, tags map[string]string) {
	f.T.Helper()
	artifact, err := f.Fleet.Release(version, tags)
	if err != nil {
		f.T.Fatal(err)
	}
	f.Publish(artifact)
}

func (f *fleet) bakesAfterTheLast() {
	if err := f.Plane.SlowVersion(f.T.Context(), "1.1.0", time.Second); err != nil {
		f.T.Fatal(err)
	}
	f.Fleet.Members, f.Fleet.MinReadySeconds = members, bakeSeconds
	f.deploy(true)
	seen := newRecord(f.T, f.Plane, f.Namespace)
	f.release("1.1.0", nil)
	f.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	f.awaitRolledOut("1.1.0")

	o := observe(seen.Sights())
	if len(o.broken) > 0 {
		f.T.Errorf("promises were broken: %q", o.broken)
	}
	want := []string{
		"Deploying 1.1.0",
		"released basket", "finished basket", "released orders", "finished orders", "released web", "finished web",
		"applied 1.1.0", "InProgress 1.1.0", "Succeeded 1.1.0",
	}
	if diff := cmp.Diff(want, o.order); diff != "" {
		f.T.Errorf("what happened (-want +got):\n%s", diff)
	}
}

func (f *fleet) stopsAtAFailure() {
	const bad = "1.2.0-bad"
	if err := f.Plane.BreakVersion(f.T.Context(), bad); err != nil {
		f.T.Fatal(err)
	}
	f.Fleet.Members = members
	f.deploy(false)
	seen := newRecord(f.T, f.Plane, f.Namespace)
	good := f.Fleet.App
	f.Fleet.App = good.GivesUpSoon()
	f.release("1.2.0", map[string]string{"orders": bad})
	failed := f.AwaitState("1.2.0", v1alpha1.BakeFailed)

	const says = "has timed out progressing"
	culprit := "Deployment " + f.Namespace + "/orders"
	if checks := failed.Status.History[0].FailedHealthChecks; len(checks) != 1 || checks[0].Message == nil ||
		!strings.Contains(*checks[0].Message, culprit) || !strings.Contains(*checks[0].Message, says) {
		f.T.Errorf("the release failed by %+v, which does not name %s and say why", checks, culprit)
	}
	c := f.coordination()
	if got := conditionOf(c, coordinationv1.StalledCondition); got != "True "+coordinationv1.RolloutFailedReason ||
		!strings.Contains(f.journal(), says) || c.Status.ActiveDeployment != f.Namespace+"/orders" {
		f.T.Errorf("the coordination does not say what it is stalled by:\n%s", f.journal())
	}
	web := f.deployment("web")
	if f.Read(web); !web.Spec.Paused || web.Status.UpdatedReplicas != 0 || web.Status.AvailableReplicas != 2 {
		f.T.Errorf("web did not stay as it was: %+v", web.Status)
	}

	f.Fleet.App = good
	f.release("1.2.1", nil)
	f.AwaitCandidate("1.2.1")
	f.Ask(v1alpha1.UnblockFailedAnnotation, "true")
	f.AwaitState("1.2.1", v1alpha1.BakeSucceeded)
	f.awaitRolledOut("1.2.1")
	o := observe(seen.Sights())
	if len(o.broken) > 0 {
		f.T.Errorf("promises were broken: %q", o.broken)
	}
	want := []string{
		"Deploying 1.2.0", "applied 1.2.0", "released basket", "finished basket", "released orders", "Failed 1.2.0",
		"Deploying 1.2.1", "applied 1.2.1", "finished orders", "released web", "finished web", "released basket", "finished basket",
		"InProgress 1.2.1", "Succeeded 1.2.1",
	}
	if diff := cmp.Diff(untimed(want), untimed(o.order)); diff != "" {
		f.T.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// untimed removes what Flux reports while the Deployments roll out, because its place in
// the order is not defined.
func untimed(order []string) []string {
	return slices.DeleteFunc(slices.Clone(order), func(what string) bool { return strings.HasPrefix(what, "applied ") })
}

func (f *fleet) zoneByZone() {
	f.Fleet.Zones, f.Fleet.MinReadySeconds = []string{"zone-a", "zone-b", "zone-c"}, bakeSeconds
	f.deploy(true)
	seen := newRecord(f.T, f.Plane, f.Namespace)
	f.release("1.1.0", nil)
	f.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	o := observe(seen.Sights())
	if len(o.broken) > 0 {
		f.T.Errorf("promises were broken: %q", o.broken)
	}
	// Flux reports such StatefulSets as current at once. The HealthCheck does not.
	want := []string{
		"Deploying 1.1.0", "begun zone-a", "finished zone-a", "begun zone-b", "finished zone-b", "begun zone-c", "finished zone-c",
		"InProgress 1.1.0", "Succeeded 1.1.0",
	}
	if diff := cmp.Diff(want, untimed(o.order)); diff != "" {
		f.T.Errorf("what happened (-want +got):\n%s", diff)
	}
}
