// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// Staging is in another cluster. It is the same application in all stories, one after another:
// keys belong to a whole cluster.
func TestReportsBetweenClusters(t *testing.T) {
	t.Parallel()
	a := inTwoClusters(t)
	a.looksOften()
	for _, story := range []struct {
		name string
		play func(*application)
	}{
		{"the registry is restored", (*application).getsAnOldReport},
		{"the key is lost", (*application).losesTheKey},
		{"the key is replaced", (*application).replacesTheKey},
		{"staging is rebuilt", (*application).rebuildsStaging},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.play(a.in(t)) }) {
			return
		}
	}
}

// inTwoClusters returns an application that runs 1.0.0 in staging and in production, each in a
// cluster of its own.
func inTwoClusters(t *testing.T) *application {
	t.Helper()
	a := environments(t, stagingPlane)
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
			_ = plane.RequestReconcile(t.Context(), a.prod.Environment(""))
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

// in returns the application for another test.
func (a *application) in(t *testing.T) *application {
	staging, prod := *a.staging, *a.prod
	staging.T, prod.T = t, t
	return &application{&staging, &prod}
}

// reports is where staging reports to.
func (a *application) reports() string { return plane.Registry.Host() + "/" + a.reportsRepository() }

func (a *application) reportsRepository() string { return "promotions/" + a.staging.Namespace }

// The copy of the registry is from before 1.1.0, which production has taken since.
func (a *application) getsAnOldReport() {
	old := a.digestsOf(a.reportsRepository())
	a.publish("1.1.0")
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.restores(a.reportsRepository(), old)
	a.prod.Push(a.prod.ConfigRelease("1.2.0"))
	a.prod.Scan()
	a.page().does("The registry has an old report")
	a.staging.Scan()
	a.prod.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
}

func (a *application) losesTheKey() {
	loses(a.staging, secret(scenario.SigningKeySecret))
	a.publish("1.3.0")
	a.staging.AwaitState("1.3.0", v1alpha1.BakeSucceeded)
	p := a.page()
	p.does("The signing key is lost")
	a.prod.AwaitState("1.3.0", v1alpha1.BakeSucceeded)
}

// Production is Ready all the time, and goes on when the old key is gone.
func (a *application) replacesTheKey() {
	p := a.page()
	p.file = "environments.md"
	for _, s := range p.steps("Replace a key") {
		before := a.published()
		p.follow(s)
		if strings.Contains(s.commands, "requestedAt") {
			env.Eventually(a.prod.T, "a report that is signed again", func() (bool, string) {
				now := a.published()
				return now.After(before), now.String()
			})
		}
		a.isReady(a.prod)
	}
	a.publish("1.4.0")
	a.prod.AwaitState("1.4.0", v1alpha1.BakeSucceeded)
	a.isReady(a.prod)
}

// published is when staging has published its report last.
func (a *application) published() time.Time {
	e := a.staging.Environment("")
	a.staging.Read(e)
	return e.Status.Report.PublishedTime.Time
}

func (a *application) isReady(e *env.Env) {
	e.T.Helper()
	environment := e.Environment("")
	e.Read(environment)
	if !apimeta.IsStatusConditionTrue(environment.Status.Conditions, "Ready") {
		e.T.Errorf("the Environment in %s is not ready: %s", e.Namespace, env.ConditionOf(environment.Status.Conditions, "Ready"))
	}
}

// The new cluster has the name and the private key of the old one, and another UID. It takes the
// newest release at once, which the old one has not known.
func (a *application) rebuildsStaging() {
	t := a.prod.T
	key := secret("promotion-signing-key-2")
	a.staging.Read(key)
	if err := stagingPlane.Controller.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.staging.Plane = staging("rebuilt", plane.Registry, key).For(t)
	t.Cleanup(func() { a.keepsThePromises(stagingPlane, a.staging.Plane) })
	a.deploysStagingElsewhere()
	a.publish("1.5.0")
	a.staging.AwaitState("1.5.0", v1alpha1.BakeSucceeded)
	a.page().does("The cluster of staging is rebuilt")
	a.startsStagingWith("--take-over-reports-of=")
	a.publish("1.6.0")
	a.prod.AwaitState("1.6.0", v1alpha1.BakeSucceeded)
	a.isReady(a.staging)
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
