// SPDX-License-Identifier: Apache-2.0

package freeze_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/freeze"
)

var (
	cet = time.FixedZone("CET", 3600)
	now = time.Date(2026, time.November, 21, 14, 5, 9, 0, cet)
)

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "rollouts-cli"}
}

func texts(prettyName, description string) map[string]string {
	return map[string]string{"gate.kuberik.com/pretty-name": prettyName, "gate.kuberik.com/description": description}
}

func started(t *testing.T, until time.Time) freeze.Freeze {
	t.Helper()
	f, err := freeze.New("INC-4711", now, until, cet)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestObjects(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}
	forever := started(t, time.Time{})
	ending := started(t, time.Date(2026, time.November, 24, 6, 0, 0, 0, cet)).By("alice")
	always := v1alpha1.RolloutScheduleSpec{RolloutSelector: selector, Rules: []v1alpha1.ScheduleRule{{Name: "freeze"}}, Timezone: "UTC", Action: "Deny"}
	for name, tt := range map[string]struct{ got, want any }{
		"a gate, by somebody unknown": {forever.Gate("shop", "web"), &v1alpha1.RolloutGate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "freeze-web", Labels: labels(), Annotations: texts("Freeze", "INC-4711")},
			Spec:       v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: "web"}, Passing: new(false)},
		}},
		"a schedule without an end": {forever.By("bob").Schedule("shop", selector), &v1alpha1.RolloutSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "freeze-20261121-1405", Labels: labels(), Annotations: texts("Freeze", "INC-4711, by bob")},
			Spec:       always,
		}},
		"a schedule with an end": {ending.Schedule("shop", &metav1.LabelSelector{}), &v1alpha1.RolloutSchedule{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "freeze-20261121-1405", Labels: labels(),
				Annotations: texts("Freeze until Tue 24 Nov 2026 06:00 CET", "INC-4711, by alice"),
			},
			Spec: v1alpha1.RolloutScheduleSpec{
				RolloutSelector: &metav1.LabelSelector{}, Timezone: "UTC", Action: "Deny",
				Rules: []v1alpha1.ScheduleRule{
					{Name: "freeze", DateRange: &v1alpha1.DateRange{Start: "2026-11-21", End: "2026-11-23"}},
					{
						Name: "freeze", TimeRange: &v1alpha1.TimeRange{Start: "00:00", End: "05:00"},
						DateRange: &v1alpha1.DateRange{Start: "2026-11-24", End: "2026-11-24"},
					},
				},
			},
		}},
		"a schedule of the cluster": {forever.ClusterSchedule(selector), &v1alpha1.ClusterRolloutSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: "freeze-20261121-1405", Labels: labels(), Annotations: texts("Freeze", "INC-4711")},
			Spec:       v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: always},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRejects(t *testing.T) {
	for name, tt := range map[string]struct {
		why   string
		until time.Time
		want  string
	}{
		"no reason":          {"", time.Time{}, "a freeze needs a reason"},
		"a long reason":      {strings.Repeat("x", 1025), time.Time{}, "the reason has 1025 bytes, at most 1024 are possible"},
		"an end in the past": {"x", now.Add(-time.Hour), "a freeze until Sat 21 Nov 2026 13:05 CET would be over already"},
		"an end now":         {"x", now, "a freeze until Sat 21 Nov 2026 14:05 CET would be over already"},
		"an end without a date": {
			"x", time.Date(9999, time.December, 31, 23, 59, 1, 0, time.UTC), "a freeze cannot end after the year 9999: leave out the end",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := freeze.New(tt.why, now, tt.until, cet)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndIsAWholeMinute(t *testing.T) {
	whole := time.Date(2026, time.November, 21, 14, 6, 0, 0, cet)
	for name, until := range map[string]time.Time{
		"it is one already":  whole,
		"a second after now": now.Add(time.Second),
		"a moment before it": whole.Add(-time.Nanosecond),
	} {
		t.Run(name, func(t *testing.T) {
			if got := started(t, until).Until; !got.Equal(whole) {
				t.Errorf("it ends at %s, want %s", got, whole)
			}
		})
	}
}
