// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// loses returns a check of a rollout that is not complete any more since a time.
func loses(since time.Time) *fixture.HealthCheckBuilder {
	return check("shop").Kustomization().Pending().ChangedAt(since).Message("Waiting for Deployment shop-prod/web: Available: 0/2")
}

func notStarted(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
	return c.Reason(v1alpha1.HealthNotStarted)
}

// What was rolled out and is not healthy any more fails the bake. Kubernetes never says
// so of a workload that was rolled out once.
func TestReleaseThatIsLostDuringItsBake(t *testing.T) {
	bake := func(check *fixture.HealthCheckBuilder) *situation {
		return bakes(2*time.Hour, check, eleven.Add(30*time.Minute), 0)
	}
	withTimeout := func(s *situation, timeout time.Duration) *situation {
		s.input.Rollout.Spec.DeployTimeout = &metav1.Duration{Duration: timeout}
		return s
	}
	recovering := func(s *situation) *situation {
		s.input.Rollout.Status.History[0].Recovery = v1alpha1.RecoveryFromFailure
		return s
	}
	tenMinutesAgo, late := noon.Add(-10*time.Minute), one.Add(15*time.Minute+instant)
	for name, test := range map[string]struct {
		given  *situation
		action promotion.Action
		cause  v1alpha1.FailureCause
		again  time.Time
	}{
		"for less than ten minutes it may come back": {
			bake(loses(noon.Add(-9 * time.Minute))), promotion.Wait, "", noon.Add(time.Minute),
		},
		"after ten minutes it has failed": {bake(loses(tenMinutesAgo)), promotion.FailBake, v1alpha1.CauseHealthCheckFailed, never},
		"spec.deployTimeout is the time that it may take": {
			withTimeout(bake(loses(tenMinutesAgo)), 25*time.Minute), promotion.Wait, "", noon.Add(15 * time.Minute),
		},
		"also if it is shorter": {
			withTimeout(bake(loses(noon.Add(-time.Minute))), time.Minute), promotion.FailBake, v1alpha1.CauseHealthCheckFailed, never,
		},
		"what was never started says nothing about the release": {
			bake(notStarted(loses(tenMinutesAgo))), promotion.FailBake, v1alpha1.CauseDeployTimeout, never,
		},
		"nor does what several Rollouts deploy": {
			bake(loses(tenMinutesAgo)).shared("shop"), promotion.FailBake, v1alpha1.CauseDeployTimeout, never,
		},
		"what cannot be observed is not lost": {
			bake(loses(tenMinutesAgo).Reason(v1alpha1.HealthNotObserved)), promotion.Wait, "", late,
		},
		"a promotion that cannot fail waits": {recovering(bake(loses(tenMinutesAgo))), promotion.Wait, "", late},
		"what was lost before the bake counts from its start": {
			bakes(2*time.Hour, loses(eleven.Add(-time.Hour)), eleven, 0).at(eleven.Add(9 * time.Minute)), promotion.Wait, "", eleven.Add(10 * time.Minute),
		},
		"a check of another class has its own rules": {bake(check("db").Pending().ChangedAt(tenMinutesAgo)), promotion.Wait, "", late},
		"a target that Flux calls unhealthy for so long fails it, too": {
			bakes(2*time.Hour, check("db").Healthy(), tenMinutesAgo, 0).targets(unhealthy("apps")), promotion.FailBake, v1alpha1.CauseTargetUnhealthy, never,
		},
		"and not before": {
			bakes(2*time.Hour, check("db").Healthy(), noon.Add(-9*time.Minute), 0).targets(unhealthy("apps")), promotion.Wait, "", noon.Add(time.Minute),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.action, d.Action)
			diff(t, test.cause, d.Cause)
			diff(t, test.again, d.RecheckAt)
		})
	}
}

func TestLossSaysSinceWhenAndWhatIsMissing(t *testing.T) {
	d := promotion.Decide(bakes(2*time.Hour, loses(noon.Add(-10*time.Minute)), noon.Add(-10*time.Minute), 0).in())
	diff(t, "HealthCheck shop-prod/shop: not healthy since 2026-03-02T11:50:00Z: Waiting for Deployment shop-prod/web: Available: 0/2", d.Message)
	diff(t, []v1alpha1.FailedHealthCheck{failedCheck("shop", "not healthy since 2026-03-02T11:50:00Z: Waiting for Deployment shop-prod/web: Available: 0/2")}, d.Failed)
}

// Only what has run, and belongs to one release, is a verdict about it.
func TestCauseOfAFailure(t *testing.T) {
	failed := func() *fixture.HealthCheckBuilder { return check("shop").Kustomization().Unhealthy().ErrorAt(noon) }
	deploys := func(checks ...*fixture.HealthCheckBuilder) *situation {
		return given(deploying().BakeTime(time.Hour).DeployTimeout(time.Hour)).targets(applied("apps")).resetChecks(checks...)
	}
	late := func(target content.Target) *situation { return deploys().at(one).targets(target) }
	starved, shared := unhealthy("apps"), unhealthy("apps")
	starved.NotStarted, shared.Shared = true, true
	for name, test := range map[string]struct {
		given *situation
		want  v1alpha1.FailureCause
	}{
		"a HealthCheck": {deploys(failed()), v1alpha1.CauseHealthCheckFailed},
		"a HealthCheck of what was never started":   {deploys(notStarted(failed())), v1alpha1.CauseDeployTimeout},
		"and another one of what has failed":        {deploys(notStarted(failed()), check("db").Unhealthy().ErrorAt(noon)), v1alpha1.CauseHealthCheckFailed},
		"a HealthCheck of what several deploy":      {deploys(failed()).shared("shop"), v1alpha1.CauseDeployTimeout},
		"a target":                                  {late(unhealthy("apps")), v1alpha1.CauseTargetUnhealthy},
		"a target of which nothing was started":     {late(starved), v1alpha1.CauseDeployTimeout},
		"a target by which several Rollouts deploy": {late(shared), v1alpha1.CauseDeployTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, promotion.FailBake, d.Action)
			diff(t, test.want, d.Cause)
		})
	}
}
