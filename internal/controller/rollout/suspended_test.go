// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func (s *testEnv) suspendScan(suspend bool) {
	s.Change(fixture.MakeScan("shop").Obj(), func(o client.Object) { o.(*imagev1.ImageRepository).Spec.Suspend = suspend })
}

func (s *testEnv) suspendPolicy(suspend bool) {
	s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) { o.(*imagev1.ImagePolicy).Spec.Suspend = suspend })
}

func TestSuspendedPolicyNamesWhatIsNotSeen(t *testing.T) {
	s := open(t, fixture.MakeRollout("shop").Obj(), fixture.MakePolicy("shop").Latest("1.2.0").Obj(), fixture.MakeScan("shop").Found("1.2.0").Obj())
	s.rest("shop")
	s.scanFinds("1.3.0", "1.2.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReleasesUpdatedCondition).Status).To(Equal(metav1.ConditionTrue), "Flux evaluates the policy in a moment")

	s.suspendPolicy(true)
	s.rest("shop")
	suspended := "ImagePolicy shop is suspended: new releases are not seen; resume it; 1.3.0 is in the registry, and ImagePolicy shop does not name it"
	s.Expect(s.condition("shop", v1alpha1.ReleasesUpdatedCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.SuspendedReason, suspended}))
	ready := s.condition("shop", v1alpha1.ReadyCondition)
	s.Expect(ready.Status).To(Equal(metav1.ConditionTrue))
	s.Expect(ready.Message).To(And(HavePrefix("1.2.0: "), HaveSuffix("; "+suspended)))

	s.suspendPolicy(false)
	s.release("shop", "1.3.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReleasesUpdatedCondition).Status).To(Equal(metav1.ConditionTrue))
	s.Expect(s.rollout("shop").Current().Version.Tag).To(Equal("1.3.0"))
}
