// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// The names of the clusters.
const (
	stagingCluster = "staging-eu"
	prodCluster    = "prod-eu"
)

// inTwoClusters returns an application that runs 1.0.0 in staging and in production, each in a
// cluster of its own.
func inTwoClusters(t *testing.T) *application {
	t.Helper()
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.GoAway() })
	keys, err := scenario.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	a := environments(t, staging("staging", registry, keys.Secret(scenario.Namespace)).For(t), production(registry, keys).For(t))
	a.prod.Create(a.prod.NamespaceObject())
	a.deploysStagingElsewhere()
	upstream := a.staging.Elsewhere("staging", stagingCluster, a.reports())
	e := a.prod.Environment("prod", upstream)
	e.Spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Insecure: true}
	e.Spec.RequeueInterval = &metav1.Duration{Duration: 10 * time.Second}
	a.prod.Create(e, a.prod.Rollout(func(spec *v1alpha1.RolloutSpec) {
		spec.EnvironmentRef = &v1alpha1.LocalObjectReference{Name: a.prod.Name}
	}))
	a.prod.Create(flux(a.prod)...)
	a.publish("1.0.0")
	a.prod.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return a
}

// looksOften makes production look at the report again and again: by itself it looks every ten
// seconds.
func (a *application) looksOften() {
	t := a.prod.T
	var asking sync.WaitGroup
	asking.Go(func() {
		for t.Context().Err() == nil {
			_ = a.prod.Plane.RequestReconcile(t.Context(), a.prod.Environment(""))
			time.Sleep(time.Second)
		}
	})
	t.Cleanup(asking.Wait)
}

// deploysStagingElsewhere creates what Git has of staging in its own cluster.
func (a *application) deploysStagingElsewhere() {
	s := a.staging
	s.T.Helper()
	s.Create(s.NamespaceObject(), scenario.Reporting(s.Environment("staging"), a.reports()))
	s.Create(s.HealthCheck(), s.Rollout(s.Baked(bake, time.Minute)))
	s.Create(flux(s)...)
}

// startsStagingWith starts the controller in the cluster of staging again, with another value of a
// flag.
func (a *application) startsStagingWith(flag string) {
	t, p := a.staging.T, a.staging.Plane
	t.Helper()
	name, _, _ := strings.Cut(flag, "=")
	with := func(args []string) []string {
		return append(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, name+"=") }), flag)
	}
	known := deployment()
	a.staging.Change(known, func() {
		container := &known.Spec.Template.Spec.Containers[0]
		container.Args = with(container.Args)
	})
	err := p.Controller.Stop(t.Context())
	p.Controller.Args = with(p.Controller.Args)
	if err := errors.Join(err, p.Controller.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// staging is the cluster of staging, also when it is created again, with the key that it signs
// with.
func staging(name string, registry *controlplane.Registry, key *corev1.Secret) env.Setting {
	s := setting(stagingCluster, registry, "--signing-key-secret="+key.Name)
	key.ResourceVersion = ""
	s.Name, s.Objects = name, append(s.Objects, key)
	return s
}

// production is the cluster of production, which trusts a key of staging.
func production(registry *controlplane.Registry, keys scenario.KeyPair) env.Setting {
	s := setting(prodCluster, registry)
	s.Name, s.Objects = "production", append(s.Objects, scenario.TrustedKeys(scenario.Namespace, map[string]scenario.KeyPair{stagingCluster: keys}))
	return s
}

func setting(cluster string, registry *controlplane.Registry, flags ...string) env.Setting {
	args := append(scenario.ReportFlags(cluster), flags...)
	s := env.Setting{Options: controlplane.Options{Flux: true, ImageScanner: true, Registry: registry}, Args: args}
	s.Objects = append(s.Objects, deployment(args...))
	return s
}

// deployment is where the command line finds the flags of a controller. Nothing runs it: the
// controller is a process here.
func deployment(args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Namespace, Name: scenario.Account, Labels: installation.PodLabels}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: installation.PodLabels}
	d.Spec.Template.Labels = installation.PodLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "rollout-controller", Args: args}}
	return d
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Namespace, Name: name}}
}

// uidOf returns the UID of a cluster.
func uidOf(t *testing.T, plane *env.Plane) string {
	t.Helper()
	system := &corev1.Namespace{}
	if err := plane.Client().Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}
