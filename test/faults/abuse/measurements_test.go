// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// mostOfTenant is how many measurements of a tenant with two namespaces may be under way,
	// where --concurrent-probes is 16: half of them, and half of the rest. mostOfServer is
	// how many of these may ask one server, which is asked four times at once.
	mostOfTenant = 8 + 4
	mostOfServer = 2 + 1
	// leastOfTenant are under way during the attack: five and five if those of both namespaces
	// began in turn.
	leastOfTenant = 5 + 5
	// judgedEvery and judgedFor are the interval and the bake time of the tenant whose
	// releases are judged.
	judgedEvery = 5 * time.Second
	judgedFor   = 20 * time.Second
)

func TestDestinationsThatHangOrNeverEnd(t *testing.T) {
	x := begin(t, "has 300 HealthChecks in two namespaces ask, all the time, 12 servers that hang, send bodies without end, redirect, or send one byte a second, "+
		"and the Prometheus of all with a query that takes too long")
	judged := newJudged(t)
	alone := judged.release("1.0.0")

	both := []abuser{newAbuser(t), newAbuser(t)}
	for _, a := range both {
		a.bakes()
	}
	load := watchWorkload(t, asked)
	const checks = 300
	for i := range checks {
		a := both[i%len(both)]
		a.makes(a.asking(i / len(both)))
	}
	env.Eventually(t, "almost as many measurements as the tenant may have", func() (bool, string) {
		total, ofOne := load.most()
		return total >= leastOfTenant, fmt.Sprintf("%d are under way, %d of one server", total, ofOne)
	})
	attacked := judged.release("1.1.0")
	for what, times := range attacked {
		if times < alone[what]-1 {
			t.Errorf("during the bake, %s was measured %d times, and alone %d times", what, times, alone[what])
		}
	}
	if total, ofOne := load.most(); total > mostOfTenant || ofOne > mostOfServer {
		t.Errorf("%d measurements of the tenant were under way, of one server up to %d", total, ofOne)
	}
	for _, a := range both {
		a.learnsNothing()
	}
	x.passes(checks, fmt.Sprintf("at most %d of its measurements were under way; another tenant's query was measured %d times during a bake, and %d times without the attack",
		mostOfTenant, attacked["error-rate"], alone["error-rate"]))
}

// bakes begins a bake that does not end during the test: so its HealthChecks are measured.
func (a abuser) bakes() {
	a.T.Helper()
	a.Create(a.Flux(plane.Registry.Host())[1:]...) // the namespace exists
	a.Create(a.Rollout(a.Baked(time.Hour, time.Hour)))
	a.Publish(a.ConfigRelease("1.0.0"))
	a.AwaitState("1.0.0", v1alpha1.BakeInProgress)
}

// asking returns a HealthCheck of the bake, which fails nothing, and asks one of the servers
// for as long as it may.
func (a abuser) asking(i int) *v1alpha1.HealthCheck {
	check := a.HealthCheck()
	check.Name, check.Annotations = fmt.Sprint("asks-", i), nil
	check.Spec = v1alpha1.HealthCheckSpec{MeasuringSpec: v1alpha1.MeasuringSpec{
		Enforce: new(bool), Delay: &metav1.Duration{}, Interval: &metav1.Duration{Duration: judgedEvery}, Timeout: &metav1.Duration{Duration: 30 * time.Second},
	}}
	server := asked.hostile[i%len(asked.hostile)]
	switch i / len(asked.hostile) % 3 {
	case 0:
		check.Spec.Class = new(v1alpha1.HealthCheckClassHTTP)
		check.Spec.HTTP = &v1alpha1.HTTPSpec{URL: server.URL, Condition: "body != ''"}
	case 1:
		check.Spec.Class = new(v1alpha1.HealthCheckClassPrometheus)
		check.Spec.Prometheus = &v1alpha1.PrometheusSpec{Address: server.URL, Query: "up", Condition: "value > 0.0"}
	default:
		check.Spec.Class = new(v1alpha1.HealthCheckClassPrometheus)
		check.Spec.Prometheus = &v1alpha1.PrometheusSpec{Query: slow, Condition: "value > 0.0"}
	}
	return check
}

// learnsNothing checks that no HealthCheck of the tenant shows what a server has sent, and
// that no redirect was followed.
func (a abuser) learnsNothing() {
	a.T.Helper()
	all := &v1alpha1.HealthCheckList{}
	if err := plane.Client().List(a.T.Context(), all, client.InNamespace(a.Namespace)); err != nil {
		a.T.Fatal(err)
	}
	for i := range all.Items {
		if shown, _ := json.Marshal(all.Items[i].Status); strings.Contains(string(shown), marker) {
			a.T.Errorf("HealthCheck %s shows what a server has sent: %s", all.Items[i].Name, shown)
		}
	}
	if n := asked.honest.times("/" + marker); n > 0 {
		a.T.Errorf("%d redirects were followed", n)
	}
}

// judged is a tenant whose releases are judged by a query and by a request.
type judged struct {
	*env.Application
	query, path string
}

func newJudged(t *testing.T) judged {
	t.Helper()
	app := env.NewApplication(t, plane, scenario.NewApp("", "shop").Baked(judgedFor, time.Hour))
	j := judged{Application: app, query: "rate_of_" + strings.ReplaceAll(app.Namespace, "-", "_"), path: "/healthz/" + app.Namespace}
	query := j.measuring("error-rate", v1alpha1.HealthCheckClassPrometheus)
	query.Spec.Prometheus = &v1alpha1.PrometheusSpec{Query: j.query, Condition: "value == 1.0"}
	request := j.measuring("smoke", v1alpha1.HealthCheckClassHTTP)
	request.Spec.HTTP = &v1alpha1.HTTPSpec{URL: asked.honest.URL + j.path}
	j.Create(query, request)
	return j
}

func (j judged) measuring(name, class string) *v1alpha1.HealthCheck {
	check := j.HealthCheck()
	check.Name, check.Annotations = name, nil
	check.Spec = v1alpha1.HealthCheckSpec{Class: &class, MeasuringSpec: v1alpha1.MeasuringSpec{
		Interval: &metav1.Duration{Duration: judgedEvery}, Delay: &metav1.Duration{},
	}}
	return check
}

// release releases a version, and returns how often each HealthCheck was measured for it.
func (j judged) release(version string) map[string]int {
	j.T.Helper()
	before := map[string]int{j.query: asked.honest.times(j.query), j.path: asked.honest.times(j.path)}
	j.Release(version)
	j.AwaitState(version, v1alpha1.BakeSucceeded)
	return map[string]int{
		"error-rate": asked.honest.times(j.query) - before[j.query],
		"smoke":      asked.honest.times(j.path) - before[j.path],
	}
}
