// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestDeploymentsCanBeWorkedWithWithoutTheController(t *testing.T) {
	plane := both(controlplane.Options{}).For(t)
	t.Run("where nothing holds them", func(t *testing.T) {
		f := standing(t, plane, "a", "b")
		f.whileStopped(func() {
			f.create("c", "1.0.0")
			f.awaitPods("c", 2, "1.0.0")
			f.scale("a", 3)
			f.awaitPods("a", 3, "1.0.0")
			f.remove("b")
		})
		f.Fleet.Members = []string{"a", "c"}
		f.awaitMembers()
		f.awaitRolledOut("1.0.0")
	})
	installPolicy(t, plane)
	t.Run("where the API server holds them", func(t *testing.T) {
		f := standing(t, plane, "a", "b")
		seen := newRecord(t, plane, f.Namespace)
		f.whileStopped(func() {
			f.giveTo("a", "2.0.0")
			f.create("c", "2.0.0")
			f.scale("a", 3)
			f.awaitPods("a", 3, "1.0.0")
			f.awaitPods("c", 0, "2.0.0")
			f.remove("b")
		})
		f.Fleet.Members = []string{"a", "c"}
		f.awaitMembers()
		f.awaitRolledOut("2.0.0")
		o := observe(seen.Sights())
		if diff := cmp.Diff([]string{"released a", "finished a", "released c", "finished c"}, o.order); diff != "" || len(o.broken) > 0 {
			t.Errorf("broken: %q, what happened (-want +got):\n%s", o.broken, diff)
		}
	})
	t.Run("and who rolled out goes on", func(t *testing.T) {
		if err := plane.SlowVersion(t.Context(), "3.0.0", time.Hour); err != nil {
			t.Fatal(err)
		}
		f := standing(t, plane, "a", "b")
		seen := newRecord(t, plane, f.Namespace)
		f.give("3.0.0")
		f.awaitActive("a")
		begun := f.coordination().Status.DeploymentStates[0].LastRolloutStarted
		f.whileStopped(func() {
			if err := plane.FixVersion(t.Context(), "3.0.0"); err != nil {
				t.Fatal(err)
			}
			f.awaitPods("a", 2, "3.0.0")
			f.awaitPods("b", 2, "1.0.0")
		})
		f.awaitRolledOut("3.0.0")
		if again := f.coordination().Status.DeploymentStates[0].LastRolloutStarted; !again.Equal(begun) {
			t.Errorf("the roll-out of a began at %s, and again at %s", begun, again)
		}
		o := observe(seen.Sights())
		if diff := cmp.Diff([]string{"released a", "finished a", "released b", "finished b"}, o.order); diff != "" || len(o.broken) > 0 {
			t.Errorf("broken: %q, what happened (-want +got):\n%s", o.broken, diff)
		}
	})
}

// standing returns an application whose version 1.0.0 is rolled out.
func standing(t *testing.T, plane *env.Plane, members ...string) *fleet {
	t.Helper()
	f := newFleet(t, plane, func(f *scenario.Fleet) { f.Members, f.ProgressDeadline = members, time.Minute })
	f.Create(f.NamespaceObject())
	f.Create(f.objects("1.0.0")...)
	f.awaitRolledOut("1.0.0")
	return f
}

// whileStopped kills the controller, and starts it again afterwards.
func (f *fleet) whileStopped(do func()) {
	f.T.Helper()
	if err := f.Plane.Controller.Kill(); err != nil {
		f.T.Fatal(err)
	}
	do()
	if err := f.Plane.Controller.Start(f.T.Context()); err != nil {
		f.T.Fatal(err)
	}
}

func (f *fleet) create(name, version string) {
	f.T.Helper()
	d := f.Fleet.Deployment(name, imageOf(name, version))
	d.Namespace = f.Namespace
	f.Create(d)
}

func (f *fleet) scale(name string, replicas int32) {
	f.T.Helper()
	d := f.deployment(name)
	f.Read(d)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := f.Plane.Client().SubResource("scale").Update(f.T.Context(), d, client.WithSubResourceBody(scale)); err != nil {
		f.T.Fatalf("scale %s: %v", name, err)
	}
}

// remove deletes a Deployment, and waits until it and its pods are deleted.
func (f *fleet) remove(name string) {
	f.T.Helper()
	f.Delete(f.deployment(name))
	f.awaitPods(name, 0, "1.0.0")
	env.Eventually(f.T, name+" gone", func() (bool, string) {
		err := f.Plane.Client().Get(f.T.Context(), client.ObjectKeyFromObject(f.deployment(name)), &appsv1.Deployment{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// awaitPods waits until a Deployment has this number of pods, all of them Ready and of
// the version.
func (f *fleet) awaitPods(name string, wanted int, version string) {
	f.T.Helper()
	env.Eventually(f.T, fmt.Sprintf("%d pods of %s at %s", wanted, name, version), func() (bool, string) {
		var pods corev1.PodList
		if err := f.Plane.Client().List(f.T.Context(), &pods, client.InNamespace(f.Namespace), client.MatchingLabels{"app": name}); err != nil {
			f.T.Fatal(err)
		}
		ready := 0
		for i := range pods.Items {
			if isReady(&pods.Items[i]) && pods.Items[i].Spec.Containers[0].Image == imageOf(name, version) {
				ready++
			}
		}
		return ready == wanted && len(pods.Items) == wanted, fmt.Sprintf("%d of %d pods", ready, len(pods.Items))
	})
}

// awaitMembers waits until the coordination has exactly the members.
func (f *fleet) awaitMembers() {
	f.T.Helper()
	want := []string{}
	for _, name := range f.Fleet.Members {
		want = append(want, f.Namespace+"/"+name)
	}
	env.Eventually(f.T, fmt.Sprintf("the members %v", want), func() (bool, string) {
		return cmp.Equal(want, f.coordination().Status.Deployments), f.journal()
	})
}

// awaitActive waits until a Deployment has the turn and is not paused.
func (f *fleet) awaitActive(name string) {
	f.T.Helper()
	env.Eventually(f.T, name+" active", func() (bool, string) {
		d := f.deployment(name)
		f.Read(d)
		return f.coordination().Status.ActiveDeployment == key(d) && !d.Spec.Paused, f.journal()
	})
}
