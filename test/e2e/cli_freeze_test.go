// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestCommandLineFreezeHoldsReleasesUntilUnfreeze(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	nights := pastSchedule(s)
	s.Create(s.Rollout(), nights)
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	dave := s.CommandLine(s.Namespace+":dave", masters)

	frozen := dave.MustRun("freeze", "--all", "--until", "+2h", "-m", "INC-4711")
	mustSay(t, frozen, "✔ frozen until ", "UTC: 1 Rollout of namespace "+s.Namespace+" (RolloutSchedule freeze-",
		"not stopped: pins, force-deploy and bypass-gates; the first release of a new Rollout")
	mustSay(t, dave.MustRun("freeze", s.Name, "-m", "INC-4712"), "✔ frozen until it is unfrozen: Rollout "+s.Namespace+"/shop (RolloutGate freeze-shop)")
	if again := dave.Run("freeze", s.Name, "-m", "INC-4712"); again.Code != 2 {
		t.Errorf("a second freeze of one Rollout: %+v", again)
	}
	mustSay(t, dave.MustRun("freeze", "--all", "-A", "-m", "x", "--dry-run=server"), "of all namespaces (ClusterRolloutSchedule freeze-")
	if all := dave.MustRun("freeze", "-o", "name"); strings.Contains(all, "clusterrolloutschedule") {
		t.Errorf("a dry run was stored:\n%s", all)
	}

	s.AwaitClosed()
	s.Publish(s.Release("1.1.0"))
	s.AwaitCandidate("1.1.0")
	explainsTheHold(s, dave, "closed by rule freeze until ")
	for _, part := range []string{"RolloutSchedule  freeze-", "INC-4711, by " + s.Namespace + ":dave", "RolloutGate      freeze-shop", "it is unfrozen"} {
		mustSay(t, dave.MustRun("freeze"), part)
	}

	mustSay(t, dave.MustRun("unfreeze", s.Name), "nothing goes out at once", "✔ RolloutGate freeze-shop: removed")
	unasked := dave.Run("unfreeze", "--all")
	if mustSay(t, unasked.Stdout, s.Namespace+"/shop: 1.0.0 → 1.1.0: "); unasked.Code != 1 {
		t.Errorf("without -y, where nobody can be asked: %+v", unasked)
	}
	s.Stays("at 1.0.0", isHistory(env.History(s.Live())...))
	mustSay(t, dave.MustRun("unfreeze", "--all", "-y"), ": removed")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	s.Read(nights)
	if answer := dave.Run("unfreeze", "--all", "-y"); answer.Code != 0 {
		t.Errorf("nothing is frozen any more: %+v", answer)
	}
}

func TestCommandLineFreezeLetsARunningBakeEnd(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout(func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: time.Hour} }))
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeInProgress)
	erin := s.CommandLine(s.Namespace+":erin", masters)

	mustSay(t, erin.MustRun("freeze", "--all", "-m", "INC-4711"), "not stopped: shop 1.0.0 is baking; pins")
	s.SetBakeTime(time.Second)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.AwaitClosed()
	s.Publish(s.Release("1.1.0"))
	s.AwaitCandidate("1.1.0")
	explainsTheHold(s, erin, "closed by rule freeze (no end time)")
}

// explainsTheHold checks that the Rollout is held by a freeze, and that explain says the
// same.
func explainsTheHold(s *env.Env, user *env.CommandLine, part string) {
	s.T.Helper()
	var messages []string
	s.Await("held by a freeze", func(r *v1alpha1.Rollout) bool {
		messages = nil
		for _, hold := range r.Status.ReleaseCandidates[0].Holds {
			messages = append(messages, hold.Message)
		}
		return strings.Contains(strings.Join(messages, "; "), part)
	})
	mustSay(s.T, user.MustRun("explain", s.Name), messages...)
}

// pastSchedule returns a schedule that was closed on one day, long ago.
func pastSchedule(s *env.Env) *v1alpha1.RolloutSchedule {
	return &v1alpha1.RolloutSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nights", Namespace: s.Namespace},
		Spec: v1alpha1.RolloutScheduleSpec{
			RolloutSelector: &metav1.LabelSelector{},
			Rules:           []v1alpha1.ScheduleRule{{DateRange: &v1alpha1.DateRange{Start: "2020-01-01", End: "2020-01-01"}}},
		},
	}
}

// mustSay checks that an answer has all parts.
func mustSay(t *testing.T, answer string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			t.Errorf("it does not say %q:\n%s", part, answer)
		}
	}
}
