// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A refused write is reported once, whatever else is known of the target, and not again
// while nothing changes.
func TestRefusedWriteIsReportedOnceWhateverTheTargetSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		open  func(t *testing.T) *testEnv
		write string
	}{
		"applied, and fields are to be relinquished": {
			func(t *testing.T) *testEnv {
				t.Helper()
				return openAfterUpstream(t, fixture.MakeRollout("shop"), asUpstreamLeftIt)
			},
			"patch OCIRepository shop",
		},
		"suspended": {
			func(t *testing.T) *testEnv {
				t.Helper()
				s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
				s.Change(fixture.MakeRepository("shop").Obj(), func(o client.Object) { o.(*sourcev1.OCIRepository).Spec.Suspend = true })
				return s
			},
			"patch OCIRepository shop",
		},
		"contested": {
			func(t *testing.T) *testEnv {
				t.Helper()
				s := openContest(t)
				s.Pass(time.Hour)
				return s
			},
			"patch OCIRepository shop",
		},
		"one of its variables has a name that Flux refuses": {
			func(t *testing.T) *testEnv {
				t.Helper()
				s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
				s.Change(fixture.MakeKustomization("shop").Obj(), func(o client.Object) {
					o.(*kustomizev1.Kustomization).Annotations[v1alpha1.SubstituteAnnotationPrefix+"MY-VERSION"+v1alpha1.SubstituteAnnotationSuffix] = "shop"
				})
				return s
			},
			"patch Kustomization shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.open(t)
			refuse := true
			s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
				if refuse && write == tt.write {
					return fixture.Fault{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "targets"}, "shop", nil)}
				}
				return fixture.Fault{}
			}
			s.Events.Take()
			for range 3 { // until nothing else changes
				_, err := s.try("shop")
				s.Expect(err).To(HaveOccurred())
			}
			s.Expect(s.Events.Take()).To(ContainElement(And(HaveField("Reason", v1alpha1.TargetFailedReason), HaveField("Message", ContainSubstring("forbidden")))))
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("forbidden"))))
			s.Wire.Forget()
			for range 5 {
				_, err := s.try("shop")
				s.Expect(err).To(HaveOccurred(), "it is tried again")
			}
			s.Expect(s.Wire.Writes()).To(HaveEach(tt.write), "no status is written")
			s.Expect(s.Events.Take()).To(BeEmpty())

			refuse = false
			s.rest("shop")
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).NotTo(ContainSubstring("forbidden"))
		})
	}
}
