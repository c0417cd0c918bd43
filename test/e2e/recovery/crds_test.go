// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// The controller runs all the time, as it does when somebody deletes a CRD by mistake and Flux
// brings everything back.
func TestCRDsAreDeletedAndInstalledAgain(t *testing.T) {
	t.Parallel()
	a := alone(t)
	before := generations(a.prod)
	p := a.page()
	p.does("What to back up")
	p.must("kubectl delete crd rollouts.kuberik.com")
	p.must("kubectl delete crd rolloutgates.kuberik.com healthchecks.kuberik.com environments.environments.kuberik.com")
	p.does("The CRDs were deleted")
	a.prod.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	a.prod.AwaitCandidate("1.1.0")
	a.staysAt("1.0.0")
	if diff := cmp.Diff(before, generations(a.prod)); diff != "" {
		t.Errorf("targets were written, generations (-before +after):\n%s", diff)
	}
	a.staging.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.opens()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}
