// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestFailedReleaseSucceedsWhenItIsRetriedAfterItsCauseIsGone(t *testing.T) {
	s, failed := breakVersion(t, "1.3.0")
	if err := plane.FixVersion(t.Context(), "1.3.0"); err != nil {
		t.Fatal(err)
	}
	s.Stays("Failed without a retry", isHistory(env.History(failed)...))

	s.Ask(v1alpha1.RetryAnnotation, "")
	done := s.AwaitState("1.3.0", v1alpha1.BakeSucceeded)
	if got := env.History(done); !isHistory("2 1.3.0 Succeeded", "1 1.0.0 Succeeded")(done) {
		t.Errorf("the history is %v, want the same entry to have succeeded", got)
	}
	if _, asked := done.Annotations[v1alpha1.RetryAnnotation]; asked {
		t.Error("the request for a retry is still there")
	}
	if done.Status.History[0].LastRetryTimestamp == nil {
		t.Error("the entry does not say when it was retried")
	}
}

func TestFixIsPromotedPastTheFailureAndTheGate(t *testing.T) {
	s, _ := breakRelease(t)
	s.Create(closedGate(s))
	s.AwaitClosed()
	s.Publish(s.Release("1.2.1"))
	s.AwaitCandidate("1.2.1")
	s.Ask(v1alpha1.UnblockFailedAnnotation, "true")
	s.Stays("held by the gate", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "1.2.0" })

	s.Ask(v1alpha1.BypassGatesAnnotation, "1.2.1")
	done := s.AwaitState("1.2.1", v1alpha1.BakeSucceeded)
	if len(done.Annotations) > 0 {
		t.Errorf("requests that were used up are still there: %v", done.Annotations)
	}
	want := "BakeFailureDisabled=True PreviousBakeFailed: failure detection is off for 1.2.1: it replaces 1.2.0, which failed"
	if got := env.Condition(done, v1alpha1.BakeFailureDisabledCondition); got != want {
		t.Errorf("the condition says %q, want %q", got, want)
	}
	if got, want := imageOf(s), "registry.example/shop:1.2.1"; got != want {
		t.Errorf("the Deployment runs %s, want %s", got, want)
	}
}
