// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// TestEndpointThatHangsHoldsNobody promotes five releases while events are answered,
// and five while no event is answered.
func TestEndpointThatHangsHoldsNobody(t *testing.T) {
	const series = 5
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.Rollout())
	promote(s, "1.0.0")
	answered := promoteAll(s, 1, series)

	relay.hang()
	defer relay.answerAgain()
	taken, passed := relay.counts()
	sent := metric(t, "rollout_notifications_sent_total")
	hung := promoteAll(s, 2, series)
	takenAfter, passedAfter := relay.counts()
	t.Logf("%d promotions took %s while events were answered and %s while none was: %.2f times as long",
		series, answered, hung, hung.Seconds()/answered.Seconds())
	if passedAfter != passed {
		t.Errorf("%d events were answered by an endpoint that hangs", passedAfter-passed)
	}
	if attempts := takenAfter - taken; attempts < 1 || attempts > 2*series {
		t.Errorf("%d attempts were made during %d promotions: the controller waits for them, or sends nothing", attempts, series)
	}
	if waiting := metric(t, "rollout_notifications_queue_length"); waiting < series {
		t.Errorf("%v events wait, want at least one per promotion", waiting)
	}

	env.Eventually(t, "an event that is given up", func() (bool, string) {
		dropped := metric(t, "rollout_notifications_dropped_total")
		return dropped > 0, fmt.Sprint(dropped)
	})
	relay.answerAgain()
	env.Eventually(t, "what still waited being delivered", func() (bool, string) {
		waiting := metric(t, "rollout_notifications_queue_length")
		return waiting == 0 && metric(t, "rollout_notifications_sent_total") > sent, fmt.Sprint(waiting)
	})
}

// promoteAll promotes some releases one after another, and returns the time that this
// took.
func promoteAll(s *env.Env, major, n int) time.Duration {
	s.T.Helper()
	start := time.Now()
	for minor := range n {
		promote(s, fmt.Sprintf("%d.%d.1", major, minor))
	}
	return time.Since(start)
}

func promote(s *env.Env, version string) {
	s.T.Helper()
	s.Publish(s.ConfigRelease(version))
	s.AwaitState(version, v1alpha1.BakeSucceeded)
}

// metric returns the sum of a metric of the controller over all labels.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	return env.Metric(t, metricsAddress, name)
}
