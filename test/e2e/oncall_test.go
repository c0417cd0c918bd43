// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// From the alert to the release before: which Rollout, why, go back, and is it out?
func TestOnCallRollsBackAFailedReleaseWithFourCommands(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout(func(spec *v1alpha1.RolloutSpec) {
		spec.BakeTime, spec.DeployTimeout = &metav1.Duration{Duration: time.Second}, &metav1.Duration{Duration: time.Minute}
	}))
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Publish(s.BrokenRelease("1.1.0"))
	s.AwaitState("1.1.0", v1alpha1.BakeFailed)
	bob := s.CommandLine(s.Namespace+":bob", masters, audited)

	const cause = "Kustomization " // and what Flux says of it
	failed := bob.MustRun("get", "--failed")
	if !strings.Contains(failed, s.Name+"  1.1.0    Failed") || !strings.Contains(failed, cause) {
		t.Errorf("the cause is not in\n%s", failed)
	}
	explanation := bob.MustRun("explain", s.Name)
	if !strings.Contains(explanation, "✗ 1.1.0 failed: ") || !strings.Contains(explanation, cause) {
		t.Errorf("the cause is not in\n%s", explanation)
	}
	var rollback string
	for _, command := range suggested.FindAllStringSubmatch(explanation, -1) {
		if strings.Contains(command[1], " rollback ") {
			rollback = strings.Replace(command[1], "-m ''", "-m 'INC-4711'", 1)
		}
	}
	if answer := bob.Shell(rollback + " -y"); rollback == "" || answer.Code != 0 {
		t.Fatalf("%q: %+v, suggested by\n%s", rollback, answer, explanation)
	}
	if answer := bob.Run("wait", s.Name, "--for=version=1.0.0"); answer.Code != 0 {
		t.Errorf("wait: %+v", answer)
	}
}
