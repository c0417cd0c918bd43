// SPDX-License-Identifier: Apache-2.0

package measurements

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// A release whose error rate is too high fails, and says by which numbers. The release
// before had the same HealthCheck, and succeeded.
func TestReleaseIsJudgedByItsErrorRate(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.HealthCheck(), errorRate(s), s.Rollout(s.Baked(6*time.Second, 2*time.Minute)))
	rates.set("1.0.0", 0.002)
	s.Publish(s.ConfigRelease("1.0.0"))
	good := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if message := *good.Current().BakeStatusMessage; !strings.HasSuffix(message, "(2 HealthChecks: error-rate 0.002) for the bake time of 6s") {
		t.Errorf("the outcome is %q", message)
	}

	rates.set("1.1.0", 0.5)
	s.Publish(s.ConfigRelease("1.1.0"))
	bad := s.AwaitState("1.1.0", v1alpha1.BakeFailed)
	message := "0.5, 0.5 (2 of 2 bad; value <= 0.01 || value <= baseline.orValue(0.01) * 2.0), before 0.002"
	want := []v1alpha1.FailedHealthCheck{{Name: "error-rate", Namespace: s.Namespace, Message: &message}}
	if diff := cmp.Diff(want, bad.Current().FailedHealthChecks); diff != "" {
		t.Errorf("it failed by (-want +got):\n%s", diff)
	}
	check := errorRate(s)
	s.Read(check)
	if release := check.Status.Release; release == nil || release.Tag != "1.1.0" || check.Status.Query != `error_rate{version="1.1.0"}` {
		t.Errorf("the status is about %v, by %s", release, check.Status.Query)
	}
	explained(s, message)
}

// explained checks that the command line shows what the controller has measured, and that
// both agree on what follows.
func explained(s *env.Env, message string) {
	s.T.Helper()
	text := s.CommandLine(s.Namespace+":alice", "system:masters").MustRun("explain", s.Name)
	for _, part := range []string{
		"✗ HealthCheck " + s.Namespace + "/error-rate is Unhealthy: " + message, "(about 1.1.0)",
		"  0.5    0.002     Bad\n", "it is measured until it is Healthy, every 1m",
	} {
		if !strings.Contains(text, part) {
			s.T.Errorf("the explanation does not say %q:\n%s", part, text)
		}
	}
}

// The first example of the guide, as it is there: two objects. Only names and times differ. It
// says nothing of a check of the Kustomization, and the Rollout has one all the same.
func TestErrorRateThatDoublesIsRolledBack(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(env.Sample(t, "error-rate/rollback.yaml", "namespace: shop", "namespace: "+s.Namespace, "{name: shop,", "{name: "+s.Name+",",
		"{name: shop}", "{name: "+s.Name+"}", "bakeTime: 10m", "bakeTime: 12s", "window: 2m", "window: 6s", "class: prometheus", "class: prometheus\n  interval: 5s\n  delay: 6s")...)
	rates.fail(0.01)
	s.Publish(s.ConfigRelease("1.0.0"))
	good := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if message := *good.Current().BakeStatusMessage; !strings.Contains(message, "(2 HealthChecks: shop-errors 0.0") {
		t.Errorf("the outcome is %q", message)
	}

	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitState("1.1.0", v1alpha1.BakeInProgress)
	rates.fail(0.2)
	back := s.Await("the rollback", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 3 })
	failed := back.Status.History[1]
	if failed.State() != v1alpha1.BakeFailed || len(failed.FailedHealthChecks) != 1 || failed.FailedHealthChecks[0].Name != "shop-errors" ||
		!strings.Contains(*failed.FailedHealthChecks[0].Message, ", before 0.0") {
		t.Errorf("1.1.0 is %s: %s", failed.State(), *failed.BakeStatusMessage)
	}
	rates.fail(0.01)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	own, measured := s.HealthCheck(), s.HealthCheck()
	own.Name, measured.Name = s.Name+"-kustomization-"+s.Name, "shop-errors"
	s.Read(own)
	s.Delete(measured)
	env.Eventually(t, "the end of the check that nothing asks for any more", func() (bool, string) {
		err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(own), own)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// The database breaks while 2.1.0 bakes, so every release has as many errors. To go back does
// not help: the rollback is compared with the last good time, not with the failure.
func TestRollbackIsComparedWithTheLastGoodTime(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.HealthCheck(), errorRate(s), s.Rollout(s.Baked(6*time.Second, 2*time.Minute), func(spec *v1alpha1.RolloutSpec) {
		spec.Rollback = &v1alpha1.RolloutRollback{}
	}))
	rates.set("2.0.0", 0.002)
	s.Publish(s.ConfigRelease("2.0.0"))
	s.AwaitState("2.0.0", v1alpha1.BakeSucceeded)

	rates.set("2.1.0", 0.5)
	s.Publish(s.ConfigRelease("2.1.0"))
	s.Await("2.1.0", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "2.1.0" })
	rates.set("2.0.0", 0.5)
	s.Await("the rollback", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 3 })
	isAsBadAsBefore(s, "2.0.0")
}

// 3.1.0 fails, and a user lets 3.2.0 go, which is as bad. The limit does not move up with
// each bad release.
func TestFixIsComparedWithTheLastGoodRelease(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.HealthCheck(), errorRate(s), s.Rollout(s.Baked(6*time.Second, 2*time.Minute)))
	rates.set("3.0.0", 0.002)
	s.Publish(s.ConfigRelease("3.0.0"))
	s.AwaitState("3.0.0", v1alpha1.BakeSucceeded)
	rates.set("3.1.0", 0.5)
	s.Publish(s.ConfigRelease("3.1.0"))
	s.AwaitState("3.1.0", v1alpha1.BakeFailed)
	rates.set("3.2.0", 0.5)
	s.Publish(s.ConfigRelease("3.2.0"))
	s.AwaitCandidate("3.2.0")
	s.Ask(v1alpha1.UnblockFailedAnnotation, "true")
	s.Await("3.2.0", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "3.2.0" })
	isAsBadAsBefore(s, "3.2.0")
}

// Nobody uses the application at night. The deadline does not fail its release: it waits, says
// so once, and goes on when there is traffic.
func TestServiceWithoutTrafficWaitsForIt(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.HealthCheck(), errorRate(s), s.Rollout(s.Baked(6*time.Second, 20*time.Second)))
	s.Publish(s.ConfigRelease("8.0.0"))
	late := s.Await("that it waits for traffic", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.ReadyCondition), v1alpha1.BakeOverdueReason)
	})
	if current := late.Current(); current.State() != v1alpha1.BakeDeploying {
		t.Errorf("8.0.0 is %s: %s", current.State(), *current.BakeStatusMessage)
	}
	rates.set("8.0.0", 0.002)
	s.AwaitState("8.0.0", v1alpha1.BakeSucceeded)
}

// isAsBadAsBefore checks that the current release, the third entry of the history, is not
// good because the failure before it was as bad.
func isAsBadAsBefore(s *env.Env, version string) {
	s.T.Helper()
	want := "0.5, 0.5 (2 of 2 bad; value <= 0.01 || value <= baseline.orValue(0.01) * 2.0), before 0.002"
	check := errorRate(s)
	env.Eventually(s.T, version+" compared with the last good release", func() (bool, string) {
		s.Read(check)
		status := check.Status
		return strings.Contains(status.Query, version) && status.Status != v1alpha1.HealthStatusPending, fmt.Sprintf("%+v", status)
	})
	if check.Status.Status != v1alpha1.HealthStatusUnhealthy || *check.Status.Message != want {
		s.T.Errorf("the check is %s: %s", check.Status.Status, *check.Status.Message)
	}
	if current := s.Live().Current(); current.Version.Tag != version || current.State() == v1alpha1.BakeSucceeded {
		s.T.Errorf("%s is %s: %s", current.Version.Tag, current.State(), *current.BakeStatusMessage)
	}
}

// errorRate returns a HealthCheck that compares the error rate with that of the release
// before.
func errorRate(s *env.Env) *v1alpha1.HealthCheck {
	class := v1alpha1.HealthCheckClassPrometheus
	check := s.HealthCheck()
	check.Name, check.Annotations = "error-rate", nil
	check.Spec = v1alpha1.HealthCheckSpec{
		Class:         &class,
		MeasuringSpec: v1alpha1.MeasuringSpec{Interval: seconds(5), Delay: seconds(2), FailureThreshold: 2},
		Prometheus: &v1alpha1.PrometheusSpec{
			Query:     `error_rate{version="$(version)"}`,
			Condition: "value <= 0.01 || value <= baseline.orValue(0.01) * 2.0",
			Baseline:  v1alpha1.BaselineBeforePromotion,
		},
	}
	return check
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// A Service that does not exist is said before anybody waits for its answer, and the next
// release is held until it is corrected. A pin goes.
func TestCheckThatCannotBeMeasuredHoldsTheNextRelease(t *testing.T) {
	t.Parallel()
	s := env.New(t, plane)
	s.CreateFlux()
	check := s.HealthCheck()
	class := v1alpha1.HealthCheckClassHTTP
	check.Annotations, check.Spec.Class = nil, &class
	check.Spec.HTTP = &v1alpha1.HTTPSpec{URL: "http://metadata.internal/"}
	check.Spec.Interval = seconds(5)
	s.Create(check, s.Rollout(s.Baked(5*time.Second, 2*time.Minute)))
	s.Publish(s.ConfigRelease("1.0.0"))
	problem := "spec.http.url: http://metadata.internal:80 is not a destination that HealthChecks may use"
	env.Eventually(t, "the problem of the check", func() (bool, string) {
		s.Read(check)
		return strings.HasPrefix(check.Status.Problem, problem), fmt.Sprintf("%+v", check.Status)
	})
	s.Change(check, func() { check.Spec.HTTP = &v1alpha1.HTTPSpec{URL: rates.server.URL + "/healthz"} })
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	s.Change(check, func() { check.Spec.HTTP.Condition = "statu == 200" })
	s.Publish(s.ConfigRelease("1.1.0"))
	s.Await("1.1.0 held by the check", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.ReadyCondition), "1.1.0 waits: HealthCheck "+s.Namespace+"/"+s.Name+" cannot be measured: spec.http.condition")
	})
	s.Pin("1.1.0")
	s.AwaitState("1.1.0", v1alpha1.BakeDeploying)
	s.Change(check, func() { check.Spec.HTTP.Condition = "status == 200 && body == 'ok'" })
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}
