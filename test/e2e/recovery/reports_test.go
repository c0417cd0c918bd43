// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

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

// in returns the application for another test.
func (a *application) in(t *testing.T) *application {
	t.Helper()
	staging, prod := *a.staging, *a.prod
	staging.T, prod.T = t, t
	return &application{staging: &staging, prod: &prod}
}

// reports is where staging reports to.
func (a *application) reports() string {
	return a.prod.Plane.Registry.Host() + "/" + a.reportsRepository()
}

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
	old := a.staging.Plane
	a.gone = uidOf(t, old)
	if err := old.Controller.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.staging.Plane = staging("rebuilt", a.prod.Plane.Registry, key).For(t)
	t.Cleanup(func() { a.keepsThePromises(old, a.staging.Plane) })
	a.deploysStagingElsewhere()
	a.publish("1.5.0")
	a.staging.AwaitState("1.5.0", v1alpha1.BakeSucceeded)
	a.page().does("The cluster of staging is rebuilt")
	a.startsStagingWith("--take-over-reports-of=")
	a.publish("1.6.0")
	a.prod.AwaitState("1.6.0", v1alpha1.BakeSucceeded)
	a.isReady(a.staging)
}
