// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestChecksOfOtherClassesAreLeftAlone verifies that no event of such a check is admitted
// until the check gets the evaluated class.
func TestChecksOfOtherClassesAreLeftAlone(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{}
	theirs := fixture.MakeHealthCheck("shop").Healthy().Obj()
	unhealthy := fixture.MakeHealthCheck("shop").Unhealthy().Obj()
	class := v1alpha1.HealthCheckClassKustomization
	theirs.ResourceVersion, unhealthy.ResourceVersion = "7", "8"
	ours := unhealthy.DeepCopy()
	ours.Spec.Class = &class
	p := r.checkPredicate()
	g.Expect(p.Create(event.CreateEvent{Object: theirs})).To(BeFalse())
	g.Expect(p.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: unhealthy})).To(BeFalse())
	g.Expect(p.Update(event.UpdateEvent{ObjectOld: unhealthy, ObjectNew: ours})).To(BeTrue())
	g.Expect(p.Update(event.UpdateEvent{ObjectOld: ours, ObjectNew: theirs})).To(BeTrue())
	g.Expect(p.Create(event.CreateEvent{Object: ours})).To(BeTrue())
}
