// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// markedBy adds the marks of that many deleted Rollouts to the check.
func (s *testEnv) markedBy(gone int) {
	s.Change(fixture.MakeHealthCheck("web").Obj(), func(o client.Object) {
		for i := range gone {
			metav1.SetMetaDataAnnotation(o.(*v1alpha1.HealthCheck).GetObjectMeta().(*metav1.ObjectMeta),
				fmt.Sprintf("%s00000000-0000-0000-0000-%012d", v1alpha1.ResetAnnotationPrefix, i), "1at2026-03-02T11:00:00Z/")
		}
	})
}

// Preview environments are created and deleted, and share a check.
func TestMarksOfRolloutsThatAreGoneAreDropped(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.markedBy(40)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(marks(s.check("web"))).To(HaveLen(1), "that of the Rollout which exists")
}

func TestFewMarksAreNotLookedInto(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.markedBy(10)
	s.deploy("shop")
	s.Expect(marks(s.check("web"))).To(HaveLen(11))
}

func TestCheckThatCannotBeResetSaysWhy(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.rest("shop")
	s.fluxApplies()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "kuberik.com", Resource: "healthchecks"}, "web", nil)
	refuse := true
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if refuse && write == "patch HealthCheck/status web" {
			return fixture.Fault{Err: forbidden}
		}
		return fixture.Fault{}
	}
	for range 4 {
		_, err := s.try("shop")
		s.Expect(err).To(HaveOccurred())
	}
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(fmt.Sprintf(
		"1.0.0: applied; waiting for HealthCheck %[1]s/web, which cannot be reset: reset HealthCheck %[1]s/web: %[2]s", s.Namespace, forbidden)))
	refuse = false
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
}

// unlisted may not list Rollouts, and counts the attempts.
type unlisted struct {
	client.Reader
	tries *int
}

func (u unlisted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Kind != v1alpha1.RolloutKind+"List" {
		return u.Reader.List(ctx, list, opts...)
	}
	*u.tries++
	return apierrors.NewForbidden(schema.GroupResource{Group: "kuberik.com", Resource: "rollouts"}, "", nil)
}

func TestResetMarksNeedOneListAlsoWhenItIsForbidden(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.markedBy(40)
	tries := 0
	s.reconciler.APIReader = unlisted{s.WithWatch, &tries}
	s.deployAndBake("shop")
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeInProgress}), "its check was reset again")
	s.Expect(marks(s.check("web"))).To(HaveLen(41), "which are of Rollouts that are gone is not known")
	s.Expect(tries).To(Equal(1))
}
