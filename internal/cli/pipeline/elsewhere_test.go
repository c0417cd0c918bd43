// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/pipeline"
)

// afterReport returns an Environment that comes after staging of cluster eu, of whose report
// it has read this.
func afterReport(name string, read environmentsv1.UpstreamStatus) environmentsv1.Environment {
	e := env(name, "staging")
	e.Spec.Upstreams[0].Repository, e.Spec.Upstreams[0].Cluster = "registry.example.com/promotions", "eu"
	read.Environment = "staging"
	e.Status.Upstreams = []environmentsv1.UpstreamStatus{read}
	return e
}

func reported(sequence int64, verified time.Time, message string, tags ...string) environmentsv1.UpstreamStatus {
	s := environmentsv1.UpstreamStatus{Sequence: sequence, VerifiedTime: &metav1.Time{Time: verified}, Message: message}
	for i, tag := range tags {
		s.Releases = append(s.Releases, environmentsv1.Release{Tag: tag, State: v1alpha1.BakeSucceeded, Current: i == 0})
	}
	return s
}

func TestRowOfAnotherClusterIsTheNewestReport(t *testing.T) {
	older, newer := reported(1, noon.Add(-time.Hour), "", "1.0.0"), reported(2, noon, "", "1.1.0", "1.0.0")
	failing := reported(2, noon, "it cannot be read", "1.1.0", "1.0.0")
	want := func(version string, verified time.Time, problems ...string) pipeline.Environment {
		return pipeline.Environment{
			Environment: "staging", Cluster: "eu", Namespace: "shop", Rollout: "staging", Problems: problems,
			Verified: &metav1.Time{Time: verified}, Runs: &pipeline.Running{Version: version, State: v1alpha1.BakeSucceeded},
		}
	}
	for name, tt := range map[string]struct {
		environments []environmentsv1.Environment
		want         pipeline.Environment
	}{
		"one":                      {environments(afterReport("prod", older)), want("1.0.0", noon.Add(-time.Hour))},
		"the newer of two":         {environments(afterReport("prod-a", older), afterReport("prod-b", newer)), want("1.1.0", noon)},
		"the one without problems": {environments(afterReport("prod-a", failing), afterReport("prod-b", newer)), want("1.1.0", noon)},
		"the newer one with problems": {
			environments(afterReport("prod-a", failing), afterReport("prod-b", older)), want("1.1.0", noon, "it cannot be read"),
		},
		"none yet": {environments(afterReport("prod", environmentsv1.UpstreamStatus{Message: "there is no report"})), pipeline.Environment{
			Environment: "staging", Cluster: "eu", Namespace: "shop", Rollout: "staging", Problems: []string{"there is no report"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := pipeline.Of(pipeline.Facts{Environments: tt.environments, Unreadable: map[string]string{"shop": "that is of this cluster"}})[0].Environments[0]
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same names in two clusters are two environments.
func TestEnvironmentHereIsNotTheOneElsewhere(t *testing.T) {
	here := of("shop", env("staging"))
	got := pipeline.Of(pipeline.Facts{Environments: environments(here, afterReport("prod", reported(1, noon, "", "1.0.0")))})
	if diff := cmp.Diff([]string{"shop: staging, staging?, prod"}, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBehindAnotherClusterIsCountedByItsReport(t *testing.T) {
	facts := pipeline.Facts{
		Environments: environments(afterReport("prod", reported(1, noon, "", "1.2.0", "1.1.0", "1.0.0"))), Rollouts: rollouts(runs("prod", nil, "1.0.0")),
	}
	prod := pipeline.Of(facts)[0].Environments[1]
	if prod.Behind == nil || *prod.Behind != 2 {
		t.Errorf("it is behind by %v", prod.Behind)
	}
}
