// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

func TestPoliciesHaveNoNamespace(t *testing.T) {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		if got := program.ScopeOf(admissionv1.SchemeGroupVersion.WithKind(kind)); got != meta.RESTScopeRoot {
			t.Errorf("%s: scope %s", kind, got.Name())
		}
	}
}
