// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"reflect"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// keep makes the reconciler read the objects of a kind as they are now, like a cache that
// does not see later changes.
func (s *testEnv) keep(kept client.ObjectList) {
	s.Expect(s.List(s.Ctx, kept, client.InNamespace(s.Namespace))).To(Succeed())
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if reflect.TypeOf(list) == reflect.TypeOf(kept) {
					reflect.ValueOf(list).Elem().Set(reflect.ValueOf(kept.DeepCopyObject()).Elem())
				}
				return err
			},
		})
	}
	s.restart()
}

func TestBakeDoesNotEndWellOnTargetsThatACacheStillShows(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.keep(&kustomizev1.KustomizationList{})
	s.fluxFails("shop", "Deployment shop is gone")
	s.Pass(10 * time.Minute)
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(
		"1.0.0: the bake time is over; Kustomization " + s.Namespace + "/shop: Deployment shop is gone"))
}

func TestNoDeadlineFailsWhatTheCacheHasNotSeenApplied(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute), "1.0.0")...)
	s.rest("shop")
	s.keep(&kustomizev1.KustomizationList{})
	s.fluxApplies()
	s.Pass(10*time.Minute + time.Second)
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// A node is lost for an hour, with the controller and the only replica on it.
func TestControllerThatWasAwayOverTheDeadlineFailsNothingThatIsWell(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute).SelectAllChecks(), "1.0.0",
		fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.Pass(time.Hour)
	s.restart()
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "the check was not asked yet")
	s.Expect(s.check("web").Status.Status).To(Equal(v1alpha1.HealthStatusPending))
	s.Pass(9 * time.Minute)
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

func TestCheckThatWasAskedAfterTheDeadlineHasAsLongAgain(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").DeployTimeout(10*time.Minute).SelectAllChecks(), "1.0.0",
		fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.Pass(time.Hour)
	s.rest("shop")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.Pass(time.Second)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeFailed))
}
