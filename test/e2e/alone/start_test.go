// SPDX-License-Identifier: Apache-2.0

package alone

import (
	"os"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

func TestWhatCannotStartEndsAndSaysWhatIsMissing(t *testing.T) {
	kubeconfig, err := plane.AddUser("system:serviceaccount:default:nobody", "system:serviceaccounts")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ args, says string }{
		"promotes": {"--controllers=rollout", "the controller rollout cannot start: the API server serves no Rollout.kuberik.com: install the CRDs of config/crd"},
		"all":      {"--controllers=*", "deploymentcoordination: this account may not list deploymentcoordinations.apps.containerinfra.nl"},
		"nonsense": {"--controllers=rollouts", "is no controller: there are rollout, rolloutschedule"},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := plane.StartProcess("start-"+name, program, []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", tt.args}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Wait(t.Context()); err == nil {
				t.Error("it ended well")
			}
			if log := logOf(t, process); !strings.Contains(log, tt.says) {
				t.Errorf("it did not say %q:\n%s", tt.says, log)
			}
		})
	}
}

func logOf(t *testing.T, process *controlplane.Process) string {
	t.Helper()
	log, err := os.ReadFile(process.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}
