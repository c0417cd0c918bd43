// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
)

var (
	now     = time.Date(2026, 7, 6, 12, 0, 0, 600_000_000, time.UTC)
	earlier = now.Add(-time.Hour).Truncate(time.Second)
	between = now.Add(-time.Minute).Truncate(time.Second)
)

func status(s v1alpha1.HealthStatus, message string, changed, failed time.Time) v1alpha1.HealthCheckStatus {
	out := v1alpha1.HealthCheckStatus{Status: s, Message: &message}
	if !changed.IsZero() {
		out.LastChangeTime = &metav1.Time{Time: changed}
	}
	if !failed.IsZero() {
		out.LastErrorTime = &metav1.Time{Time: failed}
	}
	return out
}

func TestStatusThatFollowsFromAResult(t *testing.T) {
	const (
		healthy   = v1alpha1.HealthStatusHealthy
		unhealthy = v1alpha1.HealthStatusUnhealthy
		pending   = v1alpha1.HealthStatusPending
	)
	var never time.Time
	second := now.Truncate(time.Second)
	for name, tc := range map[string]struct {
		old     v1alpha1.HealthCheckStatus
		result  health.Result
		want    v1alpha1.HealthCheckStatus
		changed bool
	}{
		"a new check gets its first status": {
			result:  health.Healthy("fine"),
			want:    status(healthy, "fine", second, never),
			changed: true,
		},
		"a change of status moves lastChangeTime and keeps lastErrorTime": {
			old:     status(unhealthy, "broken", earlier, between),
			result:  health.Healthy("fine"),
			want:    status(healthy, "fine", second, between),
			changed: true,
		},
		"another reason to be pending keeps lastChangeTime": {
			old:     status(pending, "reset", earlier, never),
			result:  health.Pending("waiting"),
			want:    status(pending, "waiting", earlier, never),
			changed: true,
		},
		"the same again is no change": {
			old:    status(pending, "waiting", earlier, never),
			result: health.Pending("waiting"),
			want:   status(pending, "waiting", earlier, never),
		},
		"other words for healthy are no change": {
			old:    status(healthy, "3 objects", earlier, between),
			result: health.Healthy("4 objects"),
			want:   status(healthy, "3 objects", earlier, between),
		},
		"a dated failure brings its own time": {
			old:     status(pending, "reset", earlier, never),
			result:  health.Unhealthy("broken", between),
			want:    status(unhealthy, "broken", second, between),
			changed: true,
		},
		"an undated failure begins now": {
			old:     status(healthy, "fine", earlier, never),
			result:  health.Unhealthy("broken", never),
			want:    status(unhealthy, "broken", second, second),
			changed: true,
		},
		"an undated failure that stays keeps its time": {
			old:    status(unhealthy, "broken", earlier, between),
			result: health.Unhealthy("broken", never),
			want:   status(unhealthy, "broken", earlier, between),
		},
		"another undated failure begins now": {
			old:     status(unhealthy, "broken", earlier, between),
			result:  health.Unhealthy("gone", never),
			want:    status(unhealthy, "gone", earlier, second),
			changed: true,
		},
		"an older failure that remains is not dated back": {
			old:     status(unhealthy, "a and b", earlier, between),
			result:  health.Unhealthy("a", earlier),
			want:    status(unhealthy, "a", earlier, between),
			changed: true,
		},
		"a failure from before a reset has its old time again": {
			old:     status(pending, "reset", between, never),
			result:  health.Unhealthy("broken", earlier),
			want:    status(unhealthy, "broken", second, earlier),
			changed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, changed := health.Next(tc.old, tc.result, now)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(changed).To(Equal(tc.changed))
		})
	}
}

func TestLongMessageIsCutBetweenCharacters(t *testing.T) {
	g := NewWithT(t)
	got, _ := health.Next(v1alpha1.HealthCheckStatus{}, health.Pending(strings.Repeat("ü", 5000)), now)
	g.Expect(utf8.RuneCountInString(*got.Message)).To(Equal(510 + len(" … ") - 2 + 255))
	g.Expect(utf8.ValidString(*got.Message)).To(BeTrue())
	_, changed := health.Next(got, health.Pending(strings.Repeat("ü", 5000)), now)
	g.Expect(changed).To(BeFalse())
}
