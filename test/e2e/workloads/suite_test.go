// SPDX-License-Identifier: Apache-2.0

// Package workloads tests what happens inside one release: Deployments roll out one at a
// time, and StatefulSets zone by zone. The controller runs as a process, with the account
// and the roles that are shipped, on real Deployments, StatefulSets and Flux. An observer
// with watches of its own checks what happens.
package workloads

import (
	"fmt"
	"os"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// newRecord begins to record what the observer reads. An empty namespace means all.
func newRecord(t *testing.T, plane *env.Plane, namespace string) *record.Recorder {
	t.Helper()
	return record.Watch(t, plane.ControlPlane, namespace,
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}, &coordinationv1.DeploymentCoordinationList{},
		&v1alpha1.RolloutList{}, &kustomizev1.KustomizationList{})
}

// both returns a setting in which both coordinators run, with the roles of their
// components.
func both(options controlplane.Options) env.Setting {
	options.Workloads = true
	options.CRDPaths = []string{scenario.CoordinationCRDs()}
	return env.Setting{Options: options, Components: scenario.Coordinators, Args: scenario.CoordinatorArgs}
}

// fleet is an application of several workloads, and the test that uses it.
type fleet struct {
	*env.Env
	Fleet scenario.Fleet
}

// newFleet returns an application without any objects in the cluster.
func newFleet(t *testing.T, plane *env.Plane, change func(*scenario.Fleet)) *fleet {
	t.Helper()
	s := env.New(t, plane)
	f := &fleet{Env: s, Fleet: scenario.Fleet{App: s.App, IdlePolicy: coordinationv1.IdleResume}}
	change(&f.Fleet)
	return f
}

// besides returns another application in the same namespace.
func (f *fleet) besides(name string, change func(*scenario.Fleet)) *fleet {
	other := &fleet{Env: f.Another(name), Fleet: f.Fleet}
	other.Fleet.App, other.Fleet.Members, other.Fleet.Zones = other.App, nil, nil
	change(&other.Fleet)
	return other
}

// objects returns the objects of a version, in the application's namespace.
func (f *fleet) objects(version string) []client.Object {
	objects := f.Fleet.Objects(version, nil)
	for _, o := range objects {
		o.SetNamespace(f.Namespace)
	}
	return objects
}

// give sets the image of a version in all workloads.
func (f *fleet) give(version string) {
	f.T.Helper()
	for _, name := range f.Fleet.Members {
		f.giveTo(name, version)
	}
	for _, name := range f.Fleet.Zones {
		set := &appsv1.StatefulSet{}
		set.Namespace, set.Name = f.Namespace, name
		f.Change(set, func() { set.Spec.Template.Spec.Containers[0].Image = imageOf(name, version) })
	}
}

// giveTo sets the image of a version in a Deployment.
func (f *fleet) giveTo(name, version string) {
	f.T.Helper()
	d := f.deployment(name)
	f.Change(d, func() { d.Spec.Template.Spec.Containers[0].Image = imageOf(name, version) })
}

func imageOf(name, version string) string { return "registry.example/" + name + ":" + version }

// deployment returns an object with the name of a member, for reading it.
func (f *fleet) deployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = f.Namespace, name
	return d
}

// coordination returns the coordination from the API server.
func (f *fleet) coordination() *coordinationv1.DeploymentCoordination {
	f.T.Helper()
	c := f.Fleet.Coordination()
	c.Namespace = f.Namespace
	f.Read(c)
	return c
}

// awaitRolledOut waits until all workloads run a version and the coordination is
// at rest.
func (f *fleet) awaitRolledOut(version string) {
	f.T.Helper()
	env.Eventually(f.T, f.Namespace+"/"+f.Name+" rolled out at "+version, func() (bool, string) {
		for _, name := range f.Fleet.Members {
			d := f.deployment(name)
			f.Read(d)
			if image := d.Spec.Template.Spec.Containers[0].Image; image != imageOf(name, version) || !isRolledOut(d) {
				return false, fmt.Sprintf("%s: %s, %s\n%s", name, image, workload.Deployment(d).Message, f.journal())
			}
		}
		for _, name := range f.Fleet.Zones {
			s := &appsv1.StatefulSet{}
			s.Namespace, s.Name = f.Namespace, name
			f.Read(s)
			state := workload.StatefulSet(s)
			if image := s.Spec.Template.Spec.Containers[0].Image; image != imageOf(name, version) || state.Phase != workload.Current {
				return false, fmt.Sprintf("%s: %s, %s", name, image, state.Message)
			}
		}
		return f.isAtRest(), f.journal()
	})
}

// isAtRest reports whether no Deployment has the turn or waits for it.
func (f *fleet) isAtRest() bool {
	f.T.Helper()
	if len(f.Fleet.Members) == 0 {
		return true
	}
	c := f.coordination()
	return c.Status.ActiveDeployment == "" && c.Status.ObservedGeneration == c.Generation &&
		conditionOf(c, coordinationv1.ReadyCondition) == "True AllDeploymentsReady"
}

// journal returns the contents of the coordination's status as text.
func (f *fleet) journal() string {
	f.T.Helper()
	if len(f.Fleet.Members) == 0 {
		return ""
	}
	c := f.coordination()
	reported := fmt.Sprintf("active: %q\n", c.Status.Active())
	for _, s := range c.Status.DeploymentStates {
		reported += fmt.Sprintf("%s: pending %t, started %s, finished %s\n", s.Name, s.HasPendingChanges, s.LastRolloutStarted, s.LastRolloutFinished)
	}
	for _, condition := range c.Status.Conditions {
		reported += fmt.Sprintf("%s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return reported
}

func conditionOf(c *coordinationv1.DeploymentCoordination, kind string) string {
	for _, condition := range c.Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status) + " " + condition.Reason
		}
	}
	return ""
}

// installPolicy installs the admission policy with which the API server pauses
// Deployments, and waits until it is in effect.
func installPolicy(t *testing.T, plane *env.Plane) {
	t.Helper()
	if err := scenario.InstallAdmission(t.Context(), plane.ControlPlane, "deployment-coordination"); err != nil {
		t.Fatal(err)
	}
	awaitPolicy(t, plane)
}

// awaitPolicy creates a Deployment in a dry run until the API server pauses it.
func awaitPolicy(t *testing.T, plane *env.Plane) {
	t.Helper()
	f := newFleet(t, plane, func(f *scenario.Fleet) { f.Members = []string{"probe"} })
	f.Create(f.NamespaceObject())
	c := f.Fleet.Coordination()
	c.Namespace = f.Namespace
	f.Create(c)
	env.Eventually(t, "the API server holding Deployments", func() (bool, string) {
		d := f.Fleet.Deployment("probe", imageOf("probe", "1.0.0"))
		d.Namespace = f.Namespace
		if err := plane.Client().Create(t.Context(), d, client.DryRunAll); err != nil {
			return false, err.Error()
		}
		return d.Spec.Paused, "a Deployment that is not paused"
	})
	f.Delete(c)
}

// bakeSeconds is long enough to be observed, and not longer.
const bakeSeconds = 1
