// SPDX-License-Identifier: Apache-2.0

// Package clusters tests environments in two clusters. Each is a complete control plane
// with Flux, with a controller and keys of its own. Nothing leads from one to the other
// but a registry.
//
// The tests share both control planes. Each has a namespace, which has the same name in
// both, and a repository for releases and one for reports. The pods of a broken version are
// broken in all tests: 5.2.0 belongs to story_test.go.
package clusters

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// The names of the clusters.
const (
	stagingCluster = "staging-eu"
	prodCluster    = "prod-eu"
)

var (
	stagingPlane, prodPlane *env.Plane
	// stagingKeys sign what staging says. Production trusts them.
	stagingKeys scenario.KeyPair
)

func TestMain(m *testing.M) {
	// All tests run at the same time: they mostly wait.
	code, err := 1, flag.Set("test.parallel", "4")
	if err == nil {
		code, err = runAll(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		return 1, err
	}
	defer func() { _ = registry.GoAway() }()
	prodKeys, err := scenario.NewKeyPair()
	if err != nil {
		return 1, err
	}
	if stagingKeys, err = scenario.NewKeyPair(); err != nil {
		return 1, err
	}
	return env.MainOf(m,
		env.Cluster{Plane: &stagingPlane, Setting: setting(stagingCluster, registry,
			stagingKeys.Secret(scenario.Namespace))},
		env.Cluster{Plane: &prodPlane, Setting: setting(prodCluster, registry,
			prodKeys.Secret(scenario.Namespace),
			scenario.TrustedKeys(scenario.Namespace, map[string]scenario.KeyPair{stagingCluster: stagingKeys}))},
	), nil
}

func setting(cluster string, registry *controlplane.Registry, secrets ...client.Object) env.Setting {
	return env.Setting{
		Options: controlplane.Options{Name: cluster, Registry: registry, Workloads: true, Flux: true, ImageScanner: true},
		Args:    append(scenario.ReportFlags(cluster), env.AsShipped...),
		Objects: secrets,
	}
}

// application is in both clusters, with the same namespace and names.
type application struct {
	staging, prod *env.Env
	registry      *controlplane.Registry
	// reports is the repository with what staging says.
	reports string
}

// newApplication returns an application of which there is only the namespace. Its tests run
// in parallel.
func newApplication(t *testing.T, registry *controlplane.Registry, reports string) *application {
	t.Helper()
	t.Parallel()
	staging := env.New(t, stagingPlane)
	prod := *staging
	prod.Plane = prodPlane
	staging.Create(staging.NamespaceObject())
	prod.Create(prod.NamespaceObject())
	return &application{staging: staging, prod: &prod, registry: registry, reports: reports}
}

// reference returns a repository of reports as Environments name it.
func (a *application) reference(repository string) string {
	return a.registry.Host() + "/" + repository
}

// deployStaging creates the objects in the cluster of staging.
func (a *application) deployStaging(bake time.Duration, upstreams ...environmentsv1.Upstream) {
	a.staging.T.Helper()
	a.staging.Create(a.staging.Flux(a.registry.Host())[1:]...)
	a.staging.Create(scenario.Reporting(a.staging.Environment("staging", upstreams...), a.reference(a.reports)))
	a.staging.Create(a.staging.HealthCheck(), a.staging.Rollout(a.staging.Baked(bake, time.Minute)))
}

// deployProduction creates the objects in the cluster of production. It reports, too, and
// nobody comes after it.
func (a *application) deployProduction(change func(*environmentsv1.Environment)) {
	a.prod.T.Helper()
	e := scenario.Reporting(a.prod.Environment("prod", a.upstream()), a.reference("promotions/prod"))
	change(e)
	a.prod.Create(e)
	a.prod.Create(a.prod.Flux(a.registry.Host())[1:]...)
	a.prod.Create(a.prod.Rollout())
}

// upstream is staging, as production names it.
func (a *application) upstream() environmentsv1.Upstream {
	return a.staging.Elsewhere("staging", stagingCluster, a.reference(a.reports))
}

// publish pushes a version, which both clusters find.
func (a *application) publish(version string) {
	a.staging.T.Helper()
	a.publishTo(version, a.staging, a.prod)
}

// publishProductionFirst pushes a version, which staging finds once production waits for it.
// So nothing that staging does is over before production looks.
func (a *application) publishProductionFirst(version string) {
	a.staging.T.Helper()
	a.publishTo(version, a.prod)
	a.prod.Await("a hold until staging has proven it", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), version+": waits for staging")
	})
	a.staging.Scan()
}

// publishTo pushes a version, which some environments find at once.
func (a *application) publishTo(version string, all ...*env.Env) {
	a.staging.T.Helper()
	a.push(a.staging.Release(version), all...)
}

// push pushes an artifact, which some environments find at once.
func (a *application) push(artifact controlplane.Artifact, all ...*env.Env) {
	a.staging.T.Helper()
	if _, err := a.registry.Push(a.staging.T.Context(), artifact); err != nil {
		a.staging.T.Fatal(err)
	}
	for _, e := range all {
		e.Scan()
	}
}

// isBefore reports whether a promotion began before another one had succeeded. The first
// time is rounded down to a second, and the second one up.
func isBefore(taken, proven *v1alpha1.DeploymentHistoryEntry) bool {
	return taken.Timestamp.Add(time.Second).Before(proven.BakeEndTime.Time)
}

// awaitReady waits for what an Environment says of itself, as "Status Reason: message".
func awaitReady(e *env.Env, what string, wanted func(string) bool) {
	e.T.Helper()
	stored := e.Environment("")
	env.Eventually(e.T, what, func() (bool, string) {
		e.Read(stored)
		said := env.ConditionOf(stored.Status.Conditions, "Ready")
		return wanted(said), said
	})
}

// promoted returns the newest promotion of a version that must have succeeded.
func promoted(e *env.Env, version string) *v1alpha1.DeploymentHistoryEntry {
	e.T.Helper()
	return e.AwaitState(version, v1alpha1.BakeSucceeded).Current()
}
