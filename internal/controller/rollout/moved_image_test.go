// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// names makes the ImagePolicy name a release of an image.
func (s *testEnv) names(image, tag string) {
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImagePolicy).Status.LatestRef = &imagev1.ImageRef{Name: image, Tag: tag}
	})
}

func TestMovedImageWaitsForAPin(t *testing.T) {
	s := open(t, fixture.MakeRollout("shop").Obj(),
		fixture.MakePolicy("shop").Latest("9.9.9").LatestImage("registry.example.com/old").Obj(), fixture.MakeScan("shop").Image("registry.example.com/old").Found("9.9.9").Obj())
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().Image).To(Equal("registry.example.com/old"))

	s.Change(fixture.MakeScan("shop").Obj(), func(o client.Object) { o.(*imagev1.ImageRepository).Spec.Image = "registry.example.com/new" })
	s.rest("shop")
	s.Expect(s.rollout("shop").Status.ReleaseCandidates).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(HavePrefix("9.9.9: "), "Flux has not scanned the other image yet")
	s.scanFinds("1.0.0")
	s.names("registry.example.com/new", "1.0.0")
	s.rest("shop")
	held := s.rollout("shop").Status.ReleaseCandidates
	s.Expect(held).To(HaveLen(1))
	s.Expect(held[0].Tag).To(Equal("1.0.0"))
	s.Expect(held[0].Holds[0].Reason).To(Equal(v1alpha1.PositionUnknownReason))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(HaveSuffix(
		"ImagePolicy shop ranks registry.example.com/new, and 9.9.9 is of registry.example.com/old: pin the release to continue from"))

	tag := "1.0.0"
	s.pin("shop", &tag)
	s.rest("shop")
	s.pin("shop", nil)
	s.scanFinds("1.1.0", "1.0.0")
	s.names("registry.example.com/new", "1.1.0")
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().Version.Tag).To(Equal("1.1.0"))
	s.Expect(s.rollout("shop").Current().Image).To(Equal("registry.example.com/new"))
}
