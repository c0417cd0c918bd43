// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// own is the name of the check that the Rollout shop owns.
const own = "shop-kustomization-shop"

func targetHealth() *fixture.RolloutBuilder {
	return fixture.MakeRollout("shop").TargetHealth()
}

func TestTargetsMustBeRolledOutWithoutAHealthCheckOfTheUser(t *testing.T) {
	s := open(t, shopWith(targetHealth(), "1.0.0")...)
	s.rest("shop")
	s.Expect(s.Wire.Writes()[0]).To(Equal("create HealthCheck "+own), "before anything is promoted")
	check, rollout := s.check(own), s.rollout("shop")
	s.Expect(metav1.IsControlledBy(check, rollout)).To(BeTrue())
	s.Expect(check.Annotations).To(Equal(map[string]string{v1alpha1.KustomizationAnnotation: "shop"}))
	s.Expect(check.IsClass(v1alpha1.HealthCheckClassKustomization)).To(BeTrue())

	s.fluxApplies()
	s.rest("shop")
	s.Expect(marks(s.check(own))).To(HaveLen(1))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "it is applied, and not rolled out")
	s.reports(own, v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))

	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Change(fixture.MakeHealthCheck(own).Obj(), func(o client.Object) { o.(*v1alpha1.HealthCheck).Spec.Enforce = new(false) })
	s.rest("shop")
	s.Expect(s.check(own).IsEnforced()).To(BeTrue(), "it is the controller's")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"create HealthCheck " + own, "patch HealthCheck " + own}))

	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.TargetHealth = "" })
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(ContainElement("delete HealthCheck " + own))
	s.Expect(apierrors.IsNotFound(s.Get(s.Ctx, s.Key(own), check))).To(BeTrue())
}

func TestCheckOfATargetThatCannotBeCreatedHoldsAndSaysWhy(t *testing.T) {
	t.Parallel()
	const about = "/" + own + ", which says whether Kustomization "
	for name, tt := range map[string]struct {
		refuse error
		taken  bool
		want   string
	}{
		"forbidden": {
			refuse: apierrors.NewForbidden(schema.GroupResource{Group: "kuberik.com", Resource: "healthchecks"}, own, nil),
			want:   "could not be created, because the API server forbids it: let the role of this controller create healthchecks.kuberik.com, and look at quotas",
		},
		"for a moment": {refuse: apierrors.NewTooManyRequests("busy", 1), want: "could not be created: TooManyRequests"},
		"taken":        {taken: true, want: "exists and is not this Rollout's own: delete it, or rename it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			if tt.taken {
				s.Add(fixture.MakeHealthCheck(own).Obj())
			}
			s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
				if write == "create HealthCheck "+own && tt.refuse != nil {
					return fixture.Fault{Err: tt.refuse}
				}
				return fixture.Fault{}
			}
			s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
				o.(*v1alpha1.Rollout).Spec.TargetHealth = v1alpha1.TargetHealthRequired
			})
			s.release("shop", "1.1.0")
			_, err := s.try("shop")
			s.Expect(err).To(HaveOccurred(), "it tries again")
			message := "HealthCheck " + s.Namespace + about + s.Namespace + "/shop is rolled out, " + tt.want
			s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.HealthCheckMissingReason, message}))
			s.Expect(s.condition("shop", v1alpha1.DeploymentBlockedCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.HealthCheckMissingReason, message}))
			s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))

			s.Wire.Fail = nil
			if tt.taken {
				s.Expect(s.Delete(s.Ctx, s.check(own))).To(Succeed())
			}
			s.rest("shop")
			s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
		})
	}
}
