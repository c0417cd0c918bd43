// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Times around noon. Entries of the fixture were recorded at eleven.
var (
	noon   = fixture.Noon
	eleven = noon.Add(-time.Hour)
	one    = noon.Add(time.Hour)
)

func rollout() *fixture.RolloutBuilder { return fixture.MakeRollout("shop") }

func entry(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag) }

func check(name string) *fixture.HealthCheckBuilder { return fixture.MakeHealthCheck(name) }

func built(all ...*fixture.HealthCheckBuilder) []v1alpha1.HealthCheck {
	var checks []v1alpha1.HealthCheck
	for _, c := range all {
		checks = append(checks, *c.Obj())
	}
	return checks
}

func release(tag string) *fixture.ReleaseBuilder { return fixture.MakeRelease(tag) }

func wireTime(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func to[T any](value T) *T { return &value }

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}
