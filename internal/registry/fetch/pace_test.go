// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// durations reads times such as "5s 1m".
func durations(texts ...string) []time.Duration {
	all := []time.Duration{}
	for _, text := range texts {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		all = append(all, d)
	}
	return all
}

func TestPausesGrowWithoutNews(t *testing.T) {
	b := openBus(t)
	b.change(func(e *environmentsv1.Environment) {
		e.Spec.RequeueInterval = &metav1.Duration{Duration: 20 * time.Minute / 10}
	})
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(58 * time.Minute)
	b.Expect(b.fetches()).To(HaveLen(30))
	b.pass(time.Hour)
	b.Expect(b.fetches()).To(Equal(durations("60m", "64m", "72m", "82m", "92m", "102m", "112m")))
	b.publish(said(2, deploying("1.5.0")))
	b.pass(10 * time.Minute)
	b.Expect(b.fetches()).To(Equal(durations("122m", "124m", "126m", "128m")), "there is something new")
}

func TestLongIntervalDoesNotShrink(t *testing.T) {
	b := openBus(t)
	b.change(func(e *environmentsv1.Environment) {
		e.Spec.RequeueInterval = &metav1.Duration{Duration: 30 * time.Minute}
	})
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(3 * time.Hour)
	b.Expect(b.fetches()).To(HaveLen(7))
}

func TestEndOfTheBakeIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		until time.Duration
		want  []time.Duration
	}{
		"soon":              {30 * time.Minute, durations("0s", "30m5s", "30m10s", "30m20s", "30m40s", "31m20s", "32m20s", "33m20s")},
		"it is over":        {-time.Hour, durations("0s", "5s", "15s", "35s", "1m15s", "2m15s", "3m15s")},
		"in a moment":       {time.Second, durations("0s", "6s", "11s", "21s", "41s", "1m21s", "2m21s", "3m21s")},
		"later than it may": {2 * time.Hour, durations("0s", "1h", "2h", "2h0m5s", "2h0m15s", "2h0m35s", "2h1m15s", "2h2m15s", "2h3m15s")},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.publish(said(1, baking("1.4.0", fixture.Noon.Add(test.until))))
			b.Ask(prod, waits)
			b.pass(max(0, test.until) + 3*time.Minute + 30*time.Second)
			b.Expect(b.fetches()).To(Equal(test.want))
		})
	}
}

func TestFailuresBackOff(t *testing.T) {
	b := openBus(t)
	b.fails(func(registry.Place) error { return errAway })
	b.Ask(prod, waits)
	b.pass(40 * time.Minute)
	b.Expect(b.fetches()).To(Equal(durations("0s", "5s", "15s", "35s", "1m15s", "2m35s", "5m15s", "10m35s", "20m35s", "30m35s")))
	b.fails(nil)
	b.publish(said(1, deploying("1.4.0")))
	b.pass(4 * time.Minute)
	b.Expect(b.fetches()).To(Equal(durations("40m35s", "41m35s", "42m35s", "43m35s")))
}

// TestReportThatIsMissingMayComeAtAnyTime: the registry works, so it is asked as often as
// if there was a report.
func TestReportThatIsMissingMayComeAtAnyTime(t *testing.T) {
	b := openBus(t)
	b.Ask(prod, waits)
	b.pass(5 * time.Minute)
	b.Expect(b.fetches()).To(Equal(durations("0s", "5s", "15s", "35s", "1m15s", "2m15s", "3m15s", "4m15s")))
}

func TestBusyRegistryIsNotAsked(t *testing.T) {
	b := openBus(t)
	b.fails(func(registry.Place) error { return &registry.Busy{Status: 429, After: 20 * time.Minute} })
	b.Ask(prod, waits)
	b.pass(time.Minute)
	b.Expect(b.fetches()).To(HaveLen(1))
	b.fails(nil)
	b.publish(said(1, deploying("1.4.0")))
	b.change(func(*environmentsv1.Environment) {})
	b.Once(staging)
	b.Ask(prod, append(waits, at(2*time.Minute)...))
	b.pass(19*time.Minute + 30*time.Second)
	b.Expect(b.fetches()).To(Equal(durations("20m")))
	b.Expect(b.calls()).To(Equal([]string{"Environment prod", "Environment prod", "Rollout prod"}))
}
