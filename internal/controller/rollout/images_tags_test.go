// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pushUpTo pushes 1.2.0 up to a minor version to the registry. The policy names the last
// one.
func (s *testEnv) pushUpTo(minor int) {
	for i := 2; i <= minor; i++ {
		s.push(fmt.Sprintf("1.%d.0", i))
	}
	s.scanShowsOldest(minor, minor) // 1.0.0 is there, too
	s.release("shop", fmt.Sprintf("1.%d.0", minor))
}

// scanShowsOldest shows of the tags up to a minor version what Flux shows: the ten that
// are highest as strings.
func (s *testEnv) scanShowsOldest(minor, count int) {
	s.ChangeStatus(fixture.MakeScan("shop").Obj(), func(o client.Object) {
		shown := fixture.MakeScan("shop").Found("1.9.0", "1.8.0", "1.7.0", "1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0",
			fmt.Sprintf("1.%d.0", minor), fmt.Sprintf("1.%d.0", minor-1)).Among(count)
		o.(*imagev1.ImageRepository).Status.LastScanResult = shown.Obj().Status.LastScanResult
	})
}

func (s *testEnv) ledger() []string {
	tags := []string{}
	for _, release := range s.rollout("shop").Status.AvailableReleases {
		tags = append(tags, release.Tag)
	}
	return tags
}

func (s *testEnv) candidateTags() []string {
	tags := []string{}
	for _, release := range s.candidates("shop") {
		tags = append(tags, release.Tag)
	}
	return tags
}

func TestEveryTagOfTheRegistryIsKnownThoughFluxShowsTenOfThem(t *testing.T) {
	s := openStocked(t, asItIs)
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.pushUpTo(15)
	s.Eventually(s.ledger).Should(ContainElements("1.9.0", "1.10.0", "1.11.0", "1.12.0", "1.13.0", "1.14.0", "1.15.0"))
	s.Expect(s.candidateTags()).To(ContainElements("1.10.0", "1.11.0"))

	s.Expect(testPlane.Registry.Delete(s.Ctx, s.Namespace, "1.11.0")).To(Succeed())
	s.scanShowsOldest(15, 14)
	s.Eventually(s.candidateTags).ShouldNot(ContainElement("1.11.0"), "it was withdrawn")
	s.Expect(s.candidateTags()).To(ContainElements("1.10.0", "1.12.0"))
}

// TestUnchangedScanAsksTheRegistryForNothing: neither for tags nor for metadata.
func TestUnchangedScanAsksTheRegistryForNothing(t *testing.T) {
	s := openStocked(t, asItIs)
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.pushUpTo(12)
	s.Eventually(s.ledger).Should(ContainElement("1.10.0"))
	s.Eventually(func() string { return fmt.Sprint(s.revisions("shop")[0]) }).ShouldNot(ContainSubstring("of nothing"))
	asked := testPlane.Registry.Requests()
	for i := range 3 {
		s.ChangeStatus(fixture.MakeScan("shop").Obj(), func(o client.Object) {
			o.(*imagev1.ImageRepository).Status.LastScanResult.ScanTime.Time = fixture.Noon.Add(time.Duration(i+1) * time.Hour)
		})
		s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
			o.(*imagev1.ImagePolicy).Spec.Policy.SemVer.Range = fmt.Sprintf(">=0.0.%d", i) // makes the Rollout reconcile
		})
	}
	s.Consistently(func() uint64 { return testPlane.Registry.Requests() }, time.Second).Should(Equal(asked))
}

// TestScanOfAnOlderFluxWakesByWhatItShows: a scan has no revision before Flux 2.7.
func TestScanOfAnOlderFluxWakesByWhatItShows(t *testing.T) {
	g := NewWithT(t)
	older := func(scan *fixture.ScanBuilder) *imagev1.ImageRepository {
		repository := scan.Obj()
		repository.Status.LastScanResult.Revision = ""
		return repository
	}
	before, same := older(fixture.MakeScan("shop").Found("2", "1")), older(fixture.MakeScan("shop").Found("2", "1"))
	same.Status.LastScanResult.ScanTime.Time = fixture.Noon.Add(time.Hour)
	wakes := func(after *imagev1.ImageRepository) bool {
		return scanChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(wakes(same)).To(BeFalse())
	g.Expect(wakes(older(fixture.MakeScan("shop").Found("3", "2")))).To(BeTrue(), "another tag")
	g.Expect(wakes(older(fixture.MakeScan("shop").Found("2", "1").Among(11)))).To(BeTrue(), "another number of tags")
}

// With Next no release is skipped, however many come at once.
func TestNextGoesThroughEveryTagThatFluxDoesNotShow(t *testing.T) {
	s := openStocked(t, asItIs)
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.ReleaseStrategy = v1alpha1.ReleaseNext
	})
	s.play(t, testPlane.RESTConfig())
	s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.0.0"))
	s.pushUpTo(15)
	for minor := 2; minor <= 15; minor++ {
		tag := fmt.Sprintf("1.%d.0", minor)
		s.Eventually(func() string {
			s.fluxApplies()
			return s.carried("shop")["tag"]
		}).Should(Equal(tag), "none before it was skipped")
	}
}
