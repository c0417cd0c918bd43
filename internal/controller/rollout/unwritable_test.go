// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestRolloutTooLargeForAStatusIsReportedOnceAndPromotesNothing: users have filled the
// Rollout up to the limit of etcd, and a status does not fit any more.
func TestRolloutTooLargeForAStatusIsReportedOnceAndPromotesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Events.Take()
	const etcdTakes, step = 1536 << 10, 256
	for size := etcdTakes; ; size -= step {
		large := s.rollout("shop")
		large.Spec.WantedVersion = new(strings.Repeat("x", size))
		if s.Update(s.Ctx, large) == nil {
			break
		}
		s.Expect(size).To(BeNumerically(">", etcdTakes/2), "no size is small enough")
	}
	s.release("shop", "1.1.0")

	s.lawless = true // the conditions cannot be updated and are outdated
	for range 5 {
		_, err := s.try("shop")
		s.Expect(err).To(MatchError(ContainSubstring("write status: ")))
	}
	s.lawless = false
	reported := s.Events.Take()
	s.Expect(reported).To(HaveLen(1))
	s.Expect(reported[0].Type).To(Equal(corev1.EventTypeWarning))
	s.Expect(reported[0].Reason).To(Equal(v1alpha1.StatusNotWrittenReason))
	s.Expect(reported[0].Message).To(HavePrefix("nothing is promoted, since the status cannot be written: "))
	s.Expect(len(reported[0].Message)).To(BeNumerically("<", 2048))
	s.Expect(s.carried("shop")).To(HaveKeyWithValue("tag", "1.0.0"))

	s.pin("shop", nil)
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.reconciler.memory.of(s.Key("shop")).unwritable).To(BeEmpty())
}
