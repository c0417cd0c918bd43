// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/monitoring"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// alarms is how often the scenario raises each alert. An alert counts if it is pending or
// firing.
var alarms = map[string]int{
	"RolloutBakeFailed":          1,
	"RolloutDeployingTooLong":    2, // one is never applied, and one is in conflict
	"RolloutEnvironmentNotReady": 1,
	failing:                      1,
	"RolloutHealthChecksLate":    1,
	"RolloutPinned":              2, // one to the version that restored it, one to an invalid tag
	"RolloutReleaseWaiting":      1,
	"RolloutScheduleNotReady":    1,
	"RolloutStalled":             1, // the other one is suspended
	"RolloutSuspended":           1,
	"RolloutTargetConflict":      1,
	"RolloutTargetFailed":        1,
	"RolloutUnreadableObjects":   1,
}

const (
	// failing may be raised for more than one controller, because the write of any
	// controller may conflict with another write.
	failing = "RolloutReconcileErrors"
	// lost is raised after events for Flux's alerts are lost, which takes some time.
	lost = "RolloutNotificationsDropped"
)

func TestAlertsAndDashboardShowTheReleases(t *testing.T) {
	prometheus := watch(t)
	env.LogRolloutsIfFailed(t, plane)
	play(t)

	t.Run("alerts are raised", func(t *testing.T) {
		env.Eventually(t, "just the alerts of the scenario", func() (bool, string) {
			alerts := alertsOf(t, prometheus)
			delete(alerts, lost)
			alerts[failing] = min(alerts[failing], 1)
			return maps.Equal(alerts, alarms), cmp.Diff(alarms, alerts)
		})
	})
	t.Run("rules are evaluated without an error", func(t *testing.T) { rulesAreWell(t, prometheus) })
	t.Run("panels show something", func(t *testing.T) { panelsShow(t, prometheus) })
	t.Run("metrics and labels exist", func(t *testing.T) { everythingExists(t, prometheus) })
	t.Run("the guide explains all metrics", func(t *testing.T) { guideIsComplete(t, prometheus) })
	t.Run("the numbers are those of the scenario", func(t *testing.T) { numbers(t, prometheus) })

	t.Run("the controller is gone", func(t *testing.T) {
		if err := plane.Controller.Kill(); err != nil {
			t.Fatal(err)
		}
		raised(t, prometheus, "RolloutControllerDown")
	})
	t.Run("nobody leads", func(t *testing.T) {
		occupyLease(t)
		if err := plane.Controller.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		raised(t, prometheus, "RolloutControllerNoLeader")
		if alerts := alertsOf(t, prometheus); alerts["RolloutControllerDown"] > 0 {
			t.Errorf("a replica runs, and the alerts are %v", alerts)
		}
	})
}

// raised waits for an alert.
func raised(t *testing.T, prometheus prometheusv1.API, want string) {
	t.Helper()
	env.Eventually(t, "the alert "+want, func() (bool, string) {
		alerts := alertsOf(t, prometheus)
		return alerts[want] > 0, fmt.Sprint(alerts)
	})
}

// incomplete matches a text in which the value of a label is missing.
var incomplete = regexp.MustCompile(`<error|<no value>|(^|\s)/|/(\s|$|\.)|  `)

// alertsOf counts the alerts whose condition is true.
func alertsOf(t *testing.T, prometheus prometheusv1.API) map[string]int {
	t.Helper()
	result, err := prometheus.Alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, alert := range result.Alerts {
		name := string(alert.Labels[model.AlertNameLabel])
		counts[name]++
		for kind, text := range alert.Annotations {
			if incomplete.MatchString(string(text)) {
				t.Errorf("the %s of %s is %q", kind, name, text)
			}
		}
	}
	return counts
}

func rulesAreWell(t *testing.T, prometheus prometheusv1.API) {
	t.Helper()
	result, err := prometheus.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var evaluated int
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			alerting := rule.(prometheusv1.AlertingRule)
			evaluated++
			if alerting.Health != prometheusv1.RuleHealthGood {
				t.Errorf("%s: %s %s", alerting.Name, alerting.Health, alerting.LastError)
			}
		}
	}
	alerts, err := monitoring.Alerts()
	if err != nil {
		t.Fatal(err)
	}
	if evaluated != len(alerts) {
		t.Errorf("%d rules are evaluated, want %d", evaluated, len(alerts))
	}
}

func panelsShow(t *testing.T, prometheus prometheusv1.API) {
	t.Helper()
	queries, err := monitoring.Dashboard("rollouts.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		env.Eventually(t, "panel "+q.Of+" shows something", func() (bool, string) { // a rate needs two samples
			value, warnings, err := prometheus.Query(t.Context(), q.Expr, time.Now())
			series, isVector := value.(model.Vector)
			return err == nil && len(warnings) == 0 && !(isVector && len(series) == 0),
				fmt.Sprintf("%v %v %v in\n%s", value, err, warnings, q.Expr)
		})
	}
}

// everythingExists checks that each metric that a query selects exists, and each metric
// that kube-state-metrics is configured to report, with all of its labels.
func everythingExists(t *testing.T, prometheus prometheusv1.API) {
	t.Helper()
	queries, err := monitoring.Queries()
	if err != nil {
		t.Fatal(err)
	}
	selectors, err := monitoring.Selectors(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := monitoring.CustomResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(selectors...) {
		want[s.Metric] = append(want[s.Metric], s.Labels...)
	}
	for metric, labels := range want {
		there, _, err := prometheus.LabelNames(t.Context(), []string{metric}, time.Now().Add(-time.Hour), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(there) == 0 {
			t.Errorf("there is no %s", metric)
			continue
		}
		for _, label := range labels {
			if !slices.Contains(there, label) {
				t.Errorf("no %s has the label %s; they have %v", metric, label, there)
			}
		}
	}
}

// guideIsComplete checks that the guide lists each metric of the project that Prometheus
// has, from all parts of the controller.
func guideIsComplete(t *testing.T, prometheus prometheusv1.API) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	names, _, err := prometheus.LabelValues(t.Context(), model.MetricNameLabel, []string{`{__name__=~"rollout_.+"}`},
		time.Now().Add(-time.Hour), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 20 {
		t.Errorf("there are only %v", names)
	}
	partOfHistogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range names {
		if row := "\n| `" + partOfHistogram.ReplaceAllString(string(name), "") + "` |"; !strings.Contains(string(guide), row) {
			t.Errorf("the guide has no row for %s", name)
		}
	}
}

// numbers checks the values of the metrics after the scenario.
func numbers(t *testing.T, prometheus prometheusv1.API) {
	t.Helper()
	for query, want := range map[string]map[string]float64{
		`sum by (result) (rollout_promotions_total)`: {"Succeeded": 2, "Failed": 2, "Cancelled": 0},
		`sum by (trigger) (rollout_promotions_started_total)`: {
			"automatic": 5, "manual": 1, "retry": 0, "adoption": 0, "tag_moved": 0},
		`sum by (result) (rollout_bake_duration_seconds_count)`: {"Succeeded": 0, "Failed": 1, "Cancelled": 0},
		`sum(rollout_restore_duration_seconds_count)`:           {"": 1},
		`sum by (reason) (rollout_blocked)`:                     {"SomeGatesBlocking": 1},
		`sum by (bake_status) (rollout_rollouts)`: {
			"None": 1, "Deploying": 2, "InProgress": 0, "Succeeded": 2, "Failed": 1, "Cancelled": 0},
		`count by (bake_status) (rollout_resource_promotion_info)`: {"Deploying": 2, "Succeeded": 2, "Failed": 1},
		`count by (reason) (rollout_resource_candidate_info)`:      {"SomeGatesBlocking": 1},
	} {
		// A scrape that fails on a busy machine leaves nothing until the next one.
		env.Eventually(t, query+" is that of the scenario", func() (bool, string) {
			got := valuesOf(t, prometheus, query)
			return maps.Equal(want, got), cmp.Diff(want, got)
		})
	}
}

// valuesOf returns the values of a query by the texts of their labels.
func valuesOf(t *testing.T, prometheus prometheusv1.API, query string) map[string]float64 {
	t.Helper()
	value, _, err := prometheus.Query(t.Context(), query, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, sample := range value.(model.Vector) {
		var name string
		for _, label := range sample.Metric {
			name += string(label)
		}
		values[name] = float64(sample.Value)
	}
	return values
}

// occupyLease gives the Lease to another holder, which does not act.
func occupyLease(t *testing.T) {
	t.Helper()
	leases := &coordinationv1.LeaseList{}
	if err := plane.Client().List(context.Background(), leases); err != nil {
		t.Fatal(err)
	}
	var held int
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Namespace != scenario.Namespace || !strings.Contains(lease.Name, "kuberik.com") {
			continue
		}
		held++
		holder, seconds, now := "somebody", int32(3600), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
		if err := plane.Client().Update(context.Background(), lease); err != nil {
			t.Fatal(err)
		}
	}
	if held != 1 {
		t.Fatalf("%d Leases are occupied, want 1", held)
	}
}
