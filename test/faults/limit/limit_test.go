// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestMemoryIsThatOfTheShippedDeployment(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(parts.Root(), "config", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped := &appsv1.Deployment{}
	if err := yaml.Unmarshal(text, shipped); err != nil {
		t.Fatal(err)
	}
	if got := shipped.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(); got != Memory {
		t.Errorf("the shipped Deployment has %d bytes, and the tests %d", got, Memory)
	}
}
