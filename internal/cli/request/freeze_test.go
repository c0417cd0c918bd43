// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // to have the same zones on every machine

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
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

func started(t *testing.T, until time.Time) request.Freeze {
	t.Helper()
	f, err := request.NewFreeze("INC-4711", now, until, cet)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestObjectsOfAFreeze(t *testing.T) {
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

func TestNewFreezeRejects(t *testing.T) {
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
			_, err := request.NewFreeze(tt.why, now, tt.until, cet)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreezeEndsInAWholeMinute(t *testing.T) {
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

// at parses a time of RFC 3339, which says which of two equal readings of a clock is meant.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestFreezeIsClosedUntilTheEndAndOpenAfterwards(t *testing.T) {
	for name, tt := range map[string]struct{ zone, now, until string }{
		"on the same day":                           {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-21T18:30:00+01:00"},
		"in the minute that has begun":              {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-21T14:06:00+01:00"},
		"in some days":                              {"Europe/Berlin", "2026-11-21T14:05:09+01:00", "2026-11-24T06:00:00+01:00"},
		"at midnight in UTC":                        {"UTC", "2026-11-21T14:05:09Z", "2026-11-22T00:00:00Z"},
		"at midnight in UTC, days later":            {"UTC", "2026-11-21T14:05:09Z", "2026-11-25T00:00:00Z"},
		"at midnight of the user":                   {"America/New_York", "2026-11-21T22:00:00-05:00", "2026-11-22T00:00:00-05:00"},
		"a minute after midnight":                   {"UTC", "2026-11-21T23:59:59Z", "2026-11-22T00:01:00Z"},
		"at the end of the year":                    {"Europe/Berlin", "2026-12-20T00:00:00+01:00", "2027-01-04T08:00:00+01:00"},
		"on a leap day":                             {"UTC", "2028-02-28T10:00:00Z", "2028-02-29T12:00:00Z"},
		"when clocks go forward":                    {"Europe/Berlin", "2026-03-28T20:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		"after clocks went forward":                 {"Europe/Berlin", "2026-03-29T01:59:00+01:00", "2026-03-29T08:15:00+02:00"},
		"in the hour that comes twice":              {"Europe/Berlin", "2026-10-24T20:00:00+02:00", "2026-10-25T02:30:00+02:00"},
		"in that hour, the second time":             {"Europe/Berlin", "2026-10-24T20:00:00+02:00", "2026-10-25T02:30:00+01:00"},
		"from the first to the second time":         {"America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"},
		"after clocks went back":                    {"America/New_York", "2026-10-31T12:00:00-04:00", "2026-11-01T08:00:00-05:00"},
		"where clocks are set by half an hour":      {"Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+10:30"},
		"where the day of UTC is the one before":    {"Pacific/Kiritimati", "2026-11-21T08:00:00+14:00", "2026-11-22T08:00:00+14:00"},
		"where clocks differ by 45 minutes":         {"Asia/Kathmandu", "2026-11-21T05:00:00+05:45", "2026-11-22T05:45:00+05:45"},
		"after twenty years":                        {"UTC", "2016-12-31T10:00:00Z", "2036-12-31T23:59:00Z"},
		"when the last day of the calendar is over": {"UTC", "2026-11-21T14:05:09Z", "9999-12-31T23:59:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			now, until := at(t, tt.now), at(t, tt.until)
			f, err := request.NewFreeze("x", now, until, zone)
			if err != nil {
				t.Fatal(err)
			}
			spec := f.Schedule("shop", &metav1.LabelSelector{}).Spec
			s, err := schedule.Parse(&spec)
			if err != nil {
				t.Fatal(err)
			}
			checkClosedUntil(t, s, now, until)
		})
	}
}

// checkClosedUntil looks at each minute of the first and the last two days, and of the
// days after the end.
func checkClosedUntil(t *testing.T, s *schedule.Schedule, now, until time.Time) {
	t.Helper()
	const near = 49 * time.Hour
	if state := s.At(now); state.Open || !state.Next.Equal(until) {
		t.Errorf("it says %q at once, want closed until %s", state, until.UTC())
	}
	for m := now; m.Before(until.Add(near)); m = m.Add(time.Minute) {
		if m.After(now.Add(near)) && m.Before(until.Add(-near)) {
			m = until.Add(-near)
		}
		if open := s.At(m).Open; open != !m.Before(until) {
			t.Fatalf("open is %t at %s, which is %s from the end", open, m.UTC(), m.Sub(until))
		}
	}
	if s.At(until.Add(-time.Nanosecond)).Open {
		t.Error("it opens before the minute of the end")
	}
	if state := s.At(until); !state.Open || !state.Next.IsZero() {
		t.Errorf("at the end it says %q", state)
	}
}

func TestFreezeWithoutAnEndIsClosedForever(t *testing.T) {
	f := started(t, time.Time{})
	spec := f.ClusterSchedule(&metav1.LabelSelector{}).Spec.RolloutScheduleSpec
	s, err := schedule.Parse(&spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, moment := range []time.Time{now.AddDate(-1, 0, 0), now, now.AddDate(100, 0, 0)} {
		if state := s.At(moment); state.String() != "closed by rule freeze (no end time)" {
			t.Errorf("at %s it is %q", moment, state)
		}
	}
}
