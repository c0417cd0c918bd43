// SPDX-License-Identifier: Apache-2.0

package hold_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/hold"
	"github.com/fluxrollouts/rollout-controller/test/admission"
)

func TestTheRuleHoldsWhatMustWait(t *testing.T) {
	const controller = "system:serviceaccount:kuberik-system:controller"
	for name, c := range admission.Cases("shop") {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			request := hold.Request{Username: "jane", Old: stored(c.Old), New: stored(c.New)}
			if c.Old == nil {
				request.New.UID = ""
			}
			if c.ByController {
				request.Username = controller
			}
			by, held := hold.Rule{Controller: controller}.HeldBy(request, placed(c.Coordinations))
			g.Expect(held).To(Equal(len(c.HeldBy) > 0))
			if held {
				g.Expect(c.HeldBy).To(ContainElement(by))
			}
		})
	}
}

func TestNobodyIsTheControllerWhileItDoesNotKnowItsName(t *testing.T) {
	c := admission.Cases("shop")["released by the controller: as asked"]
	request := hold.Request{Old: stored(c.Old), New: stored(c.New)}
	_, held := hold.Rule{}.HeldBy(request, placed(c.Coordinations))
	NewWithT(t).Expect(held).To(BeTrue())
}

func TestOfSeveralTheFirstByNameIsSaidToHold(t *testing.T) {
	c := admission.Cases("shop")["two select it: paused by either"]
	coordinations := placed(c.Coordinations)
	coordinations[0], coordinations[1] = coordinations[1], coordinations[0]
	by, _ := hold.Rule{}.HeldBy(hold.Request{New: stored(c.New)}, coordinations)
	NewWithT(t).Expect(by).To(Equal("a"))
}

// stored is the Deployment as the API server would have it.
func stored(d *appsv1.Deployment) *appsv1.Deployment {
	if d == nil {
		return nil
	}
	d = d.DeepCopy()
	d.Namespace, d.UID = "shop", admission.StoredUID
	return d
}

func placed(coordinations []*v1.DeploymentCoordination) []v1.DeploymentCoordination {
	var placed []v1.DeploymentCoordination
	for _, c := range coordinations {
		c = c.DeepCopy()
		if c.Namespace == "" {
			c.Namespace = "shop"
		}
		placed = append(placed, *c)
	}
	return placed
}
