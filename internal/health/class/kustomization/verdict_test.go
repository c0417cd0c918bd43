// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

func TestDescribeKeepsTheCauseAtTheEnd(t *testing.T) {
	message := "Deployment exceeded its deadline: " + strings.Repeat("ReplicaSet web ", 20) + "\nquota exceeded"
	got := describe([]observation{{name: "Deployment shop/web", State: workload.State{Message: message}}})
	if !strings.HasPrefix(got, "Deployment shop/web: Deployment exceeded") || !strings.HasSuffix(got, "quota exceeded") {
		t.Errorf("it says %q", got)
	}
}
