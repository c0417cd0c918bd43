// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestCommandLineQuarantineHoldsAReleaseUntilItIsLifted(t *testing.T) {
	s := gated(t)
	judy := s.CommandLine(s.Namespace+":judy", masters)

	held := judy.MustRun("quarantine", s.Name, "1.1.0", "-m", "loses orders")
	mustSay(t, held, "holds 1.1.0, by its digest, until it is lifted", "not stopped: pins, force-deploy and unblock-failed", ": created")
	mustSay(t, judy.MustRun("quarantine", s.Name, "1.1.0", "-m", "loses orders"), "already holds 1.1.0", "nothing was sent")
	judy.MustRun("approve", s.Name, "--gate", "freeze", "--version", "1.1.0", "-y")
	s.Await("held by the quarantine alone", func(r *v1alpha1.Rollout) bool {
		all := r.Status.ReleaseCandidates
		return len(all) == 1 && len(all[0].Holds) == 1 && all[0].Holds[0].Reason == v1alpha1.QuarantinedReason
	})
	explanation := judy.MustRun("explain", s.Name)
	mustSay(t, explanation, "✗ Quarantined  1.1.0 is in quarantine by ReleaseQuarantine sha256-", ": loses orders, by "+s.Namespace+":judy")
	if strings.Contains(explanation, "the status of the Rollout says something else") {
		t.Errorf("the controller and the command line disagree:\n%s", explanation)
	}
	mustSay(t, judy.MustRun("status", s.Name), "Quarantines", "ReleaseQuarantine/sha256-")

	remedies := suggested.FindAllStringSubmatch(explanation, -1)
	if len(remedies) != 2 || !strings.Contains(remedies[0][1], " lift sha256-") || !strings.Contains(remedies[1][1], " pin ") {
		t.Fatalf("the remedies are not to lift it, or to pin the release:\n%s", explanation)
	}
	s.Stays("at 1.0.0", isHistory(env.History(s.Live())...))
	if answer := judy.Shell(remedies[0][1] + " -y"); answer.Code != 0 {
		t.Fatalf("%s: %+v", remedies[0][1], answer)
	}
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}
