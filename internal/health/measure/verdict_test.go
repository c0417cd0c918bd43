// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
)

const (
	healthy   = v1alpha1.HealthStatusHealthy
	unhealthy = v1alpha1.HealthStatusUnhealthy
	pending   = v1alpha1.HealthStatusPending
)

// began is when counting begins. The measurements follow every 30 s.
var began = time.Date(2026, 7, 6, 12, 0, 0, 0, time.UTC)

func at(n int) time.Time { return began.Add(time.Duration(n) * 30 * time.Second) }

// add adds measurements that are written as letters: g is good, b is bad, n is no data, and e
// is an error.
func add(c measure.Count, s measure.Spec, words string) measure.Count {
	for i, word := range words {
		m := measure.Measurement{At: at(i + 1), Value: fmt.Sprint(i + 1)}
		switch word {
		case 'g':
			m.Result = v1alpha1.MeasurementGood
		case 'b':
			m.Result = v1alpha1.MeasurementBad
		case 'n':
			m.Result, m.Value = v1alpha1.MeasurementNoData, ""
		case 'e':
			m.Result, m.Value, m.Message = v1alpha1.MeasurementError, "", "timeout"
		}
		c = c.Add(m, s)
	}
	return c
}

func spec(change func(*measure.Spec)) measure.Spec {
	s := measure.NewSpec(prometheus, v1alpha1.MeasuringSpec{}, blocks(prometheus))
	if change != nil {
		change(&s)
	}
	return s
}

func TestVerdictsByMeasurementsInARow(t *testing.T) {
	twice := func(s *measure.Spec) { s.SuccessThreshold = 2 }
	noData := func(policy v1alpha1.NoDataPolicy) func(*measure.Spec) {
		return func(s *measure.Spec) { s.NoData = policy }
	}
	notEnforced := func(s *measure.Spec) { s.Enforced = false }
	for name, tt := range map[string]struct {
		words   string
		change  func(*measure.Spec)
		want    v1alpha1.HealthStatus
		message string
		failed  int // the number of the measurement that is the error time
	}{
		"nothing yet":                        {"", nil, pending, "waiting for the first measurement", 0},
		"good":                               {"g", nil, healthy, "1 (1 of 1 good; value <= 0.01)", 0},
		"good, and good":                     {"gg", nil, healthy, "2 (1 of 1 good; value <= 0.01)", 0},
		"good, not often enough":             {"g", twice, pending, "1 (1 of 2 good; value <= 0.01)", 0},
		"good often enough":                  {"gg", twice, healthy, "1, 2 (2 of 2 good; value <= 0.01)", 0},
		"bad, not often enough":              {"gb", nil, pending, "2 (1 of 3 bad; value <= 0.01)", 0},
		"bad three times":                    {"bbb", nil, unhealthy, "1, 2, 3 (3 of 3 bad; value <= 0.01)", 1},
		"bad four times":                     {"gbbbb", nil, unhealthy, "3, 4, 5 (3 of 3 bad; value <= 0.01)", 2},
		"good ends a row of bad ones":        {"bgbb", nil, pending, "3, 4 (2 of 3 bad; value <= 0.01), 3 of 4 bad in all", 0},
		"bad ends a row of good ones":        {"gbg", twice, pending, "3 (1 of 2 good; value <= 0.01), 1 of 3 bad in all", 0},
		"good again":                         {"bbbg", nil, healthy, "4 (1 of 1 good; value <= 0.01), 3 of 4 bad in all", 0},
		"good again, not often enough":       {"bbbg", twice, pending, "4 (1 of 2 good; value <= 0.01), 3 of 4 bad in all", 0},
		"an error does not end a row":        {"bebeb", nil, unhealthy, "1, 3, 5 (3 of 3 bad; value <= 0.01)", 1},
		"an error does not count":            {"bbe", nil, pending, "1, 2 (2 of 3 bad; value <= 0.01)", 0},
		"an error keeps Healthy":             {"ge", nil, healthy, "1 (1 of 1 good; value <= 0.01)", 0},
		"no data does not count":             {"bnbnb", nil, unhealthy, "1, 3, 5 (3 of 3 bad; value <= 0.01)", 1},
		"no data only":                       {"n", nil, pending, "no data", 0},
		"errors only":                        {"e", nil, pending, "not observed: timeout", 0},
		"no data is good":                    {"n", noData(v1alpha1.NoDataHealthy), healthy, "no data (1 of 1 good; value <= 0.01)", 0},
		"no data is bad":                     {"bnn", noData(v1alpha1.NoDataUnhealthy), unhealthy, "1, no data, no data (3 of 3 bad; value <= 0.01)", 1},
		"a row older than what is kept":      {"bbbnnnnnnnnnn", func(s *measure.Spec) { s.Interval = time.Hour }, unhealthy, "measured earlier (3 of 3 bad; value <= 0.01)", 1},
		"not enforced, nothing yet":          {"", notEnforced, pending, "waiting for the first measurement", 0},
		"not enforced, good":                 {"g", notEnforced, healthy, "1 (1 of 1 good; value <= 0.01)", 0},
		"not enforced, bad":                  {"bbb", notEnforced, healthy, "would be Unhealthy: 1, 2, 3 (3 of 3 bad; value <= 0.01)", 0},
		"not enforced, in doubt":             {"b", notEnforced, healthy, "would be Pending: 1 (1 of 3 bad; value <= 0.01)", 0},
		"not enforced, not to be reached":    {"e", notEnforced, healthy, "would be Pending: not observed: timeout", 0},
		"a long row names the newest values": {"bbbbbbb", func(s *measure.Spec) { s.FailureThreshold = 7 }, unhealthy, "3, 4, 5, 6, 7 (7 of 7 bad; value <= 0.01)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := spec(tt.change)
			got := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, tt.words).Verdict(s, s.Interval, at(len(tt.words)))
			g.Expect(got.Status).To(Equal(tt.want))
			g.Expect(got.Message).To(Equal(tt.message))
			var failed time.Time
			if tt.failed > 0 {
				failed = at(tt.failed)
			}
			g.Expect(got.ErrorTime).To(Equal(failed))
		})
	}
}

func TestVerdictsThatBecomeStale(t *testing.T) {
	for name, tt := range map[string]struct {
		words   string
		pace    time.Duration
		now     time.Time
		want    v1alpha1.HealthStatus
		message string
		recheck time.Time
	}{
		"not yet":                    {"gee", 30 * time.Second, at(4).Add(-1), healthy, "1 (1 of 1 good; value <= 0.01)", at(4)},
		"after three intervals":      {"gee", 30 * time.Second, at(4), pending, "not observed since 12:00:30 UTC: timeout", time.Time{}},
		"Unhealthy":                  {"bbbn", 30 * time.Second, at(6), pending, "not observed since 12:01:30 UTC: no data", time.Time{}},
		"nothing but errors":         {"eee", 30 * time.Second, at(3), pending, "not observed since 12:00:00 UTC: timeout", time.Time{}},
		"no measurement ends":        {"g", 30 * time.Second, at(4), pending, "not observed since 12:00:30 UTC: no measurement has ended", time.Time{}},
		"good again":                 {"geeeeg", 30 * time.Second, at(6), healthy, "6 (1 of 1 good; value <= 0.01)", at(9)},
		"never before the first one": {"", 30 * time.Second, at(100), pending, "waiting for the first measurement", time.Time{}},
		"never at rest":              {"g", 0, at(1000), healthy, "1 (1 of 1 good; value <= 0.01)", time.Time{}},
		"later at a slower pace":     {"bbb", 2 * time.Minute, at(14), unhealthy, "1, 2, 3 (3 of 3 bad; value <= 0.01)", at(15)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := spec(nil)
			got := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, tt.words).Verdict(s, tt.pace, tt.now)
			g.Expect(got.Status).To(Equal(tt.want))
			g.Expect(got.Message).To(Equal(tt.message))
			g.Expect(got.RecheckAt).To(Equal(tt.recheck))
		})
	}
}

func TestJobThatRunsOnceDoesNotBecomeStale(t *testing.T) {
	s := measure.NewSpec(job, v1alpha1.MeasuringSpec{}, blocks(job))
	c := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, "g")
	NewWithT(t).Expect(c.Verdict(s, 30*time.Second, at(10_000))).To(Equal(measure.Verdict{Status: healthy, Message: "1 (1 of 1 good)"}))
}

func TestVerdictsAfterAStart(t *testing.T) {
	twice := func(s *measure.Spec) { s.SuccessThreshold = 2 }
	for name, tt := range map[string]struct {
		start  measure.Start
		stored v1alpha1.HealthStatus
		words  string
		change func(*measure.Spec)
		want   v1alpha1.HealthStatus
	}{
		"a reset forgets Healthy":                      {measure.AfterReset, healthy, "", nil, pending},
		"a reset forgets Unhealthy":                    {measure.AfterReset, unhealthy, "", nil, pending},
		"after a restart Healthy stands":               {measure.AfterRestart, healthy, "", nil, healthy},
		"until a bad one":                              {measure.AfterRestart, healthy, "b", nil, pending},
		"and not the error before it":                  {measure.AfterRestart, healthy, "en", nil, healthy},
		"nor one of two good ones":                     {measure.AfterRestart, healthy, "g", twice, healthy},
		"three bad ones":                               {measure.AfterRestart, healthy, "bbb", nil, unhealthy},
		"after a restart Unhealthy stands":             {measure.AfterRestart, unhealthy, "", nil, unhealthy},
		"also with one of three bad ones":              {measure.AfterRestart, unhealthy, "b", nil, unhealthy},
		"until a good one":                             {measure.AfterRestart, unhealthy, "g", nil, healthy},
		"until one of two good ones":                   {measure.AfterRestart, unhealthy, "g", twice, pending},
		"after a restart Pending stays":                {measure.AfterRestart, pending, "", nil, pending},
		"a new spec forgets Healthy":                   {measure.AfterChange, healthy, "", nil, pending},
		"a new spec does not forget Unhealthy":         {measure.AfterChange, unhealthy, "", nil, unhealthy},
		"a new spec is Healthy by a measurement":       {measure.AfterChange, unhealthy, "g", nil, healthy},
		"a restart, and nothing is observed":           {measure.AfterRestart, healthy, "eee", nil, pending},
		"a restart, and Unhealthy is not observed":     {measure.AfterRestart, unhealthy, "eee", nil, pending},
		"not enforced: after a restart Healthy stands": {measure.AfterRestart, healthy, "", func(s *measure.Spec) { s.Enforced = false }, healthy},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := spec(tt.change)
			stored := measure.Stored{Status: tt.stored, Message: "as before"}
			got := add(measure.NewCount(tt.start, stored, began), s, tt.words).Verdict(s, s.Interval, at(len(tt.words)))
			g.Expect(got.Status).To(Equal(tt.want))
			if got.Message == "as before" {
				g.Expect(got.Status).To(Equal(tt.stored))
				g.Expect(got.ErrorTime).To(BeZero(), "the stored time stays")
			}
		})
	}
}

// The longest message is that of a Job: its name, why it failed, and the termination message.
func TestLongMessageIsShownOnceAndCutInTheList(t *testing.T) {
	g := NewWithT(t)
	s := spec(func(s *measure.Spec) { s.FailureThreshold, s.Condition = 3, "" })
	long := "Job " + strings.Repeat("j", 63) + " failed (MaxFailedIndexesExceeded): " + strings.Repeat("x", 256)
	c := measure.NewCount(measure.AfterReset, measure.Stored{}, began)
	for i := range 3 {
		c = c.Add(measure.Measurement{At: at(i), Message: long, Result: v1alpha1.MeasurementBad}, s)
	}
	v := c.Verdict(s, s.Interval, at(3))
	g.Expect(v.Message).To(Equal(strings.Repeat(long[:65]+" … "+strings.Repeat("x", 32)+", ", 2) + long + " (3 of 3 bad)"))
	for _, m := range c.Measurements() {
		g.Expect(m.Message).To(Equal(long[:84] + " … " + strings.Repeat("x", 41)))
	}
	c = measure.NewCount(measure.AfterReset, measure.Stored{}, began).Add(measure.Measurement{At: at(1), Message: long, Result: v1alpha1.MeasurementError}, s)
	g.Expect(c.Verdict(s, s.Interval, at(1)).Message).To(Equal("not observed: " + long))
}

func TestInvalid(t *testing.T) {
	g := NewWithT(t)
	s := spec(nil)
	g.Expect(measure.Invalid(s, "it is empty")).To(Equal(measure.Verdict{Status: pending, Message: "cannot be measured: it is empty"}))
	s.Enforced = false
	g.Expect(measure.Invalid(s, "it is empty")).To(Equal(measure.Verdict{Status: healthy, Message: "would be Pending: cannot be measured: it is empty"}))
}

func TestNotMeasured(t *testing.T) {
	s, relaxed := spec(nil), spec(nil)
	relaxed.Enforced = false
	for _, was := range []v1alpha1.HealthStatus{pending, unhealthy} {
		g, v := NewWithT(t), measure.Verdict{Status: was, Message: "0.5", ErrorTime: at(1), RecheckAt: at(2)}
		g.Expect(v.NotMeasured(s, "it rains")).To(Equal(measure.Verdict{Status: pending, Message: "not measured: it rains"}))
		g.Expect(v.NotMeasured(relaxed, "it rains")).To(Equal(measure.Verdict{Status: healthy, Message: "would be Pending: not measured: it rains"}))
	}
	stands := measure.Verdict{Status: healthy, Message: "0.5"}
	NewWithT(t).Expect(stands.NotMeasured(s, "it rains")).To(Equal(stands))
}

func TestMessages(t *testing.T) {
	s := spec(nil)
	bad := func(value, baseline, message string) measure.Measurement {
		return measure.Measurement{At: at(1), Value: value, Baseline: baseline, Message: message, Result: v1alpha1.MeasurementBad}
	}
	long := strings.Repeat("é", 500)
	for name, tt := range map[string]struct {
		all  []measure.Measurement
		want string
	}{
		"numbers and a baseline": {
			[]measure.Measurement{bad("0.0312", "", ""), bad("0.0298", "", ""), bad("0.0305", "0.004", "")},
			"0.0312, 0.0298, 0.0305 (3 of 3 bad; value <= 0.01), before 0.004",
		},
		"a message":             {[]measure.Measurement{bad("", "", "status 503")}, "status 503 (1 of 3 bad; value <= 0.01)"},
		"a number and a text":   {[]measure.Measurement{bad("12 ms", "", "status 503")}, "12 ms (status 503) (1 of 3 bad; value <= 0.01)"},
		"neither":               {[]measure.Measurement{bad("", "", "")}, "(1 of 3 bad; value <= 0.01)"},
		"lines and other bytes": {[]measure.Measurement{bad("", "", "a\n\tb\xff")}, "a b? (1 of 3 bad; value <= 0.01)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := measure.NewCount(measure.AfterReset, measure.Stored{}, began)
			for _, m := range tt.all {
				c = c.Add(m, s)
			}
			NewWithT(t).Expect(c.Verdict(s, s.Interval, at(1)).Message).To(Equal(tt.want))
		})
	}
	t.Run("long texts fit into a status", func(t *testing.T) {
		g := NewWithT(t)
		s.Condition, s.FailureThreshold = long, 9
		c := measure.NewCount(measure.AfterReset, measure.Stored{}, began)
		for range 9 {
			c = c.Add(bad(long, long, long), s)
		}
		g.Expect(utf8.RuneCountInString(c.Verdict(s, s.Interval, at(1)).Message)).To(BeNumerically("<=", 1024))
		for _, m := range c.Measurements() {
			g.Expect(utf8.RuneCountInString(m.Value)).To(BeNumerically("<=", 64))
			g.Expect(utf8.RuneCountInString(m.Baseline)).To(BeNumerically("<=", 64))
			g.Expect(utf8.RuneCountInString(m.Message)).To(BeNumerically("<=", 128))
		}
	})
}

func TestMeasurementsOfTheStatus(t *testing.T) {
	g := NewWithT(t)
	s := spec(nil)
	c := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, "ggggggggggbe")
	stored := c.Measurements()
	g.Expect(stored).To(HaveLen(10))
	g.Expect(stored[0].Result).To(Equal(v1alpha1.MeasurementError))
	g.Expect(stored[1].Value).To(Equal("11"))
	g.Expect(stored[9].Value).To(Equal("3"))
	g.Expect(c.LastMeasured()).To(Equal(at(12)))
	g.Expect(c.Decided()).To(BeTrue())

	restarted := measure.NewCount(measure.AfterRestart, measure.Stored{Status: healthy, Measurements: stored}, at(13))
	g.Expect(restarted.Measurements()).To(Equal(stored))
	g.Expect(restarted.LastMeasured()).To(Equal(at(12)))
	g.Expect(restarted.Decided()).To(BeFalse())

	reset := measure.NewCount(measure.AfterReset, measure.Stored{Status: healthy, Measurements: stored}, at(13))
	g.Expect(reset.Measurements()).To(BeEmpty())
	g.Expect(reset.LastMeasured()).To(BeZero())
}

func TestNumber(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "0.0312": 0.0312, "0.004": 0.004, "0.03125": 0.03125, "0.3333": 1.0 / 3, "14": 14, "14.5": 14.5, "999.9": 999.9,
		"123457": 123456.7, "1e+15": 1e15, "1.234e-07": 1.2341e-7, "-2.5": -2.5, "+Inf": math.Inf(1), "-Inf": math.Inf(-1),
	} {
		NewWithT(t).Expect(measure.Number(v)).To(Equal(want))
	}
	NewWithT(t).Expect(measure.Number(math.Copysign(0, -1))).To(Equal("0"))
}

// FuzzVerdict compares the verdict with a naive one over the whole list, and checks that a
// row of one kind is never Healthy and Unhealthy.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte("ggbbbeng"), 3, 1)
	f.Fuzz(func(t *testing.T, words []byte, failures, successes int) {
		s := spec(func(s *measure.Spec) {
			s.FailureThreshold, s.SuccessThreshold = 1+abs(failures)%5, 1+abs(successes)%5
		})
		text, row := "", ""
		for _, b := range words[:min(len(words), 40)] {
			word := string("gbne"[b%4])
			text += word
			if word == "g" || word == "b" {
				row += word
			}
		}
		want := pending
		if strings.HasSuffix(row, strings.Repeat("g", s.SuccessThreshold)) {
			want = healthy
		}
		if strings.HasSuffix(row, strings.Repeat("b", s.FailureThreshold)) {
			want = unhealthy
		}
		c := add(measure.NewCount(measure.AfterReset, measure.Stored{}, began), s, text)
		if got := c.Verdict(s, 0, at(1)); got.Status != want || got.Message == "" {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
