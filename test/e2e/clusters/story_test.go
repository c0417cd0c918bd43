// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

const (
	// soak is how long a release must still be healthy in staging after production has said
	// that it waits for that.
	soak = 8 * time.Second
	// longBake is long enough for production to see that staging bakes: it is reported
	// within 5 s, and production looks every 10 s.
	longBake = 25 * time.Second
	// delay is how long after a bake production may learn of its end. It looks 5 s after
	// the end that it was told.
	delay = 10 * time.Second
	// mostLooks is how many requests production may make about one release.
	mostLooks = 10
)

// bakes is what production says while staging bakes.
var bakes = regexp.MustCompile(`5\.1\.0: waits for staging: it bakes there since \S+, until \S+`)

func TestProductionInAnotherClusterLearnsFromTheReport(t *testing.T) {
	a := newApplication(t, stagingPlane.Registry, "promotions/staging")
	if err := stagingPlane.BreakVersion(t.Context(), "5.2.0"); err != nil {
		t.Fatal(err)
	}
	a.deployStaging(3 * time.Second)
	a.publishTo("5.0.0", a.staging)
	promoted(a.staging, "5.0.0")

	a.soaksInStaging(t)
	a.bakesInStaging(t)
	a.goesBackInStaging(t)
	a.failsInStaging(t)
	logCost(t)
}

// logCost tells what two clusters cost.
func logCost(t *testing.T) {
	t.Helper()
	for _, plane := range []*env.Plane{stagingPlane, prodPlane} {
		memory, err := plane.Memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s was started in %s and has %d MiB of its own, %d MiB resident", plane.Name(), plane.Took.Round(100*time.Millisecond), memory.Own>>20, memory.Resident>>20)
	}
}

func (a *application) soaksInStaging(t *testing.T) {
	t.Helper()
	a.deployProduction(func(e *environmentsv1.Environment) {
		e.Spec.Upstreams[0].SoakTime = &metav1.Duration{Duration: time.Hour}
	})
	held := a.prod.Await("a hold until it has soaked in staging", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), "5.0.0: soaks in staging for 1h0m0s, until ")
	})
	if held.Current() != nil {
		t.Errorf("production has promoted %s", held.Current().Version.Tag)
	}
	healthy := promoted(a.staging, "5.0.0").BakeStartTime
	soakTime := time.Since(healthy.Time).Truncate(time.Second) + soak
	prod := a.prod.Environment("")
	a.prod.Change(prod, func() { prod.Spec.Upstreams[0].SoakTime = &metav1.Duration{Duration: soakTime} })
	if after := promoted(a.prod, "5.0.0").Timestamp.Sub(healthy.Time); after < soakTime {
		t.Errorf("production took it after %s of health, want %s", after, soakTime)
	}
}

func (a *application) bakesInStaging(t *testing.T) {
	t.Helper()
	a.staging.SetBakeTime(longBake)
	before := a.registry.RequestsTo(a.reports)
	a.publishProductionFirst("5.1.0")
	a.prod.Await("until when it bakes in staging", func(r *v1alpha1.Rollout) bool {
		return bakes.MatchString(env.Condition(r, v1alpha1.GatesPassingCondition))
	})
	proven, taken := promoted(a.staging, "5.1.0"), promoted(a.prod, "5.1.0")
	after := taken.Timestamp.Sub(proven.BakeEndTime.Time)
	t.Logf("production took it %s after the bake", after)
	if isBefore(taken, proven) || after > delay {
		t.Errorf("production took it %s after the bake in staging, want at most %s", after, delay)
	}
	requests := since(a.registry.RequestsTo(a.reports), before)
	t.Logf("the report was asked for and written by these requests: %v", requests)
	if looks := looksAmong(requests); looks > mostLooks {
		t.Errorf("%d requests for the report, want at most %d: %v", looks, mostLooks, requests)
	}
	if reports := requests["PUT manifests"]; reports < 2 || reports > 3 { // the first two are one if they come within 5 s
		t.Errorf("%d reports, want one each when it was applied, began to bake and succeeded: %v", reports, requests)
	}
}

// looks returns the number of requests for the report so far.
func (a *application) looks() int { return looksAmong(a.registry.RequestsTo(a.reports)) }

func looksAmong(requests map[string]int) int {
	return requests["HEAD manifests"] + requests["GET manifests"]
}

// since returns the requests that came after earlier ones.
func since(now, before map[string]int) map[string]int {
	requests := map[string]int{}
	for request, n := range now {
		if n > before[request] {
			requests[request] = n - before[request]
		}
	}
	return requests
}

// staysQuiet waits until there are no requests about reports for longer than the pause
// between two looks.
func (a *application) staysQuiet(t *testing.T) {
	t.Helper()
	const long = 11 * time.Second
	last, quiet := a.registry.RequestsTo(a.reports), time.Now()
	env.Eventually(t, "an end of the requests for reports", func() (bool, string) {
		now := a.registry.RequestsTo(a.reports)
		if len(since(now, last)) > 0 {
			last, quiet = now, time.Now()
		}
		return time.Since(quiet) >= long, ""
	})
}

// goesBackInStaging checks that production learns of it when it is asked to look: it
// waits for nothing, and does not look by itself.
func (a *application) goesBackInStaging(t *testing.T) {
	t.Helper()
	a.staysQuiet(t)
	looks := a.looks()
	before := a.sequence()
	a.staging.SetBakeTime(time.Second)
	a.staging.Pin("5.0.0")
	env.Eventually(t, "a report that staging went back", func() (bool, string) {
		e := a.staging.Environment("")
		a.staging.Read(e)
		return e.Status.Report.Sequence > before && e.Status.Releases[0].Tag == "5.0.0", ""
	})
	if n := a.looks() - looks; n > 0 {
		t.Errorf("%d requests for the report while nothing waits for it", n)
	}
	if err := prodPlane.RequestReconcile(t.Context(), a.prod.Environment("")); err != nil {
		t.Fatal(err)
	}
	told := a.prod.Await("that staging went back", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, environmentsv1.UpstreamWithdrewCondition),
			"UpstreamWithdrew: 5.1.0 no longer counts in staging, which went back to 5.0.0")
	})
	if len(told.Status.History) != 2 {
		t.Errorf("it has the history %q: nothing may be deployed by that", env.History(told))
	}
	if events := a.prod.AwaitEvents(told, environmentsv1.UpstreamWithdrewReason); len(events) != 1 {
		t.Errorf("production was told %q, want one event", events)
	}
}

// sequence returns the number of the report that staging has published last.
func (a *application) sequence() int64 {
	e := a.staging.Environment("")
	a.staging.Read(e)
	if e.Status.Report == nil {
		return 0
	}
	return e.Status.Report.Sequence
}

func (a *application) failsInStaging(t *testing.T) {
	t.Helper()
	a.staging.AwaitState("5.0.0", v1alpha1.BakeSucceeded)
	a.staging.Pin("")
	a.push(a.staging.GivesUpSoon().Release("5.2.0"), a.staging, a.prod)
	a.staging.AwaitState("5.2.0", v1alpha1.BakeFailed)
	held := a.prod.Await("a hold because it has failed in staging", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), "UpstreamFailed: 5.2.0: 5.2.0 failed in staging: ")
	})
	if got := env.History(held); len(got) != 2 {
		t.Errorf("production has the history %q", got)
	}
}

// A chain may be in several clusters: the first two environments are in one API server,
// and the third learns of the second by its report.
func TestChainOfThreeEnvironmentsIsInTwoClusters(t *testing.T) {
	a := newApplication(t, stagingPlane.Registry, "promotions/chain")
	dev := *a.staging
	dev.Namespace += "-dev"
	dev.Create(dev.Flux(a.registry.Host())...)
	first := dev.Environment("dev")
	first.Spec.AccessFrom = accessFor(a.staging.Namespace)
	dev.Create(first, dev.HealthCheck(), dev.Rollout(dev.Baked(2*time.Second, time.Minute)))
	a.deployStaging(2*time.Second, environmentsv1.Upstream{Environment: "dev", Namespace: dev.Namespace})
	a.deployProduction(func(*environmentsv1.Environment) {})

	a.publishTo("1.0.0", &dev, a.staging, a.prod)
	var before *v1alpha1.DeploymentHistoryEntry
	for _, e := range []*env.Env{&dev, a.staging, a.prod} {
		entry := promoted(e, "1.0.0")
		if before != nil && isBefore(entry, before) {
			t.Errorf("%s in %s took it at %s, and the environment before it has proven it at %s", e.Namespace, e.Plane.Name(), entry.Timestamp, before.BakeEndTime)
		}
		before = entry
	}
	a.staysQuiet(t)
	if got, want := digestOf(&dev), digestOf(a.prod); got != want {
		t.Errorf("dev has proven %s, and production runs %s", got, want)
	}
}

func digestOf(e *env.Env) string {
	e.T.Helper()
	digest := e.Live().Current().Version.Digest
	if digest == nil {
		e.T.Fatalf("%s: the history does not say which digest runs", e.Namespace)
	}
	return *digest
}

func accessFor(namespace string) *v1alpha1.AccessFrom {
	return &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}}}
}
