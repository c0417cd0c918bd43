// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
	cases "github.com/fluxrollouts/rollout-controller/test/admission"
)

func TestRuleHoldsWhatMustWait(t *testing.T) {
	const controller = "system:serviceaccount:kuberik-system:controller"
	for name, c := range cases.Cases("shop") {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			request := admission.Request{Username: "jane", Old: stored(c.Old), New: stored(c.New)}
			if c.Old == nil {
				request.New.UID = ""
			}
			if c.ByController {
				request.Username = controller
			}
			by, paused := admission.Rule{Controller: controller}.PausedBy(request, placed(c.Coordinations))
			g.Expect(paused).To(Equal(len(c.PausedBy) > 0))
			if paused {
				g.Expect(c.PausedBy).To(ContainElement(by))
			}
		})
	}
}

func TestNobodyIsTheControllerWhileItDoesNotKnowItsName(t *testing.T) {
	c := cases.Cases("shop")["released by the controller: as asked"]
	request := admission.Request{Old: stored(c.Old), New: stored(c.New)}
	_, paused := admission.Rule{}.PausedBy(request, placed(c.Coordinations))
	NewWithT(t).Expect(paused).To(BeTrue())
}

func TestFirstCoordinationByNameIsSaidToHold(t *testing.T) {
	c := cases.Cases("shop")["two select it: paused by either"]
	coordinations := placed(c.Coordinations)
	coordinations[0], coordinations[1] = coordinations[1], coordinations[0]
	by, _ := admission.Rule{}.PausedBy(admission.Request{New: stored(c.New)}, coordinations)
	NewWithT(t).Expect(by).To(Equal("a"))
}

// stored returns the Deployment as the API server would store it.
func stored(d *appsv1.Deployment) *appsv1.Deployment {
	if d == nil {
		return nil
	}
	d = d.DeepCopy()
	d.Namespace, d.UID = "shop", cases.StoredUID
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
