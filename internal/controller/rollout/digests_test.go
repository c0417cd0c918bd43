// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// newContent is the digest of a tag that was pushed again, and can be written.
var newContent = "sha256:" + strings.Repeat("b", 64)

// byDigest returns the Rollout shop, whose OCIRepository shop gets tag and digest, and an
// ImagePolicy that reflects the digest of its release.
func byDigest(rollout *fixture.RolloutBuilder, tag string, more ...client.Object) []client.Object {
	return append([]client.Object{
		fixture.MakeScan("shop").Found(tag).Obj(),
		fixture.MakePolicy("shop").Latest(tag).Digest(digestOf(tag)).Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").PinnedBy("shop").Tag("0.0.1").Obj(),
		fixture.MakeKustomization("shop").Obj(),
		rollout.Obj(),
	}, more...)
}

// reference returns spec.ref of the OCIRepository shop, as <tag>@<digest>.
func (s *testEnv) reference() string {
	r := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), r)).To(Succeed())
	return r.Spec.Reference.Tag + "@" + r.Spec.Reference.Digest
}

// digestRelease makes the ImagePolicy shop name a release with its digest.
func (s *testEnv) digestRelease(tag, digest string) {
	s.release("shop", tag)
	s.reflects(digest)
}

func TestTagAndDigestAreWrittenInOnePatch(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.Wire.Forget()
	s.digestRelease("1.1.0", digestOf("1.1.0"))
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.1.0@" + digestOf("1.1.0")))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop", "patch OCIRepository shop", "patch Rollout/status shop"}))
	s.Expect(s.rollout("shop").Status.Targets).To(ContainElement(v1alpha1.TargetStatus{
		Kind: "OCIRepository", Name: "shop", Namespace: s.Namespace, Version: "1.1.0", Digest: digestOf("1.1.0"), State: v1alpha1.TargetApplied,
	}))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestTagThatIsPushedAgainWaitsForItsGate(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("qa", "shop").Obj())...)
	s.deploy("shop")
	s.Change(fixture.MakeGate("qa", "shop").Obj(), func(o client.Object) { o.(*v1alpha1.RolloutGate).Spec.Passing = new(bool) })
	s.Events.Take()

	s.pushedAgain = map[string]string{"1.0.0": newContent}
	s.reflects(newContent)
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@"+digestOf("1.0.0")), "what runs stays")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(Equal("1.0.0 (sha256:bbbbbbbb…): not passing: RolloutGate qa"))
	for _, event := range s.Events.Take() {
		s.Expect(event.Reason).NotTo(Equal(v1alpha1.TagMovedReason), event.Message)
	}

	s.Change(fixture.MakeGate("qa", "shop").Obj(), func(o client.Object) {
		passing, allowed := true, []string{"1.0.0@" + newContent}
		o.(*v1alpha1.RolloutGate).Spec.Passing, o.(*v1alpha1.RolloutGate).Spec.AllowedVersions = &passing, &allowed
	})
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@" + newContent))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.contents()).To(Equal([]string{newContent, digestOf("1.0.0")}))
}

func TestReleaseWithoutADigestWaits(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.digestRelease("1.1.0", "")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.rollout("shop").Status.ReleaseCandidates[0].Holds[0].Message).To(Equal(
		"the digest of 1.1.0 is not known: set spec.digestReflectionPolicy of ImagePolicy shop to Always, or let the controller read the registry"))

	s.pin("shop", new("1.1.0"))
	s.rest("shop")
	s.Expect(s.reference()).To(Equal("1.1.0@"), "a person does not wait, and no old digest outranks the tag")
	s.deploy("shop")
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.1.0@"+digestOf("1.1.0")), "once Flux has pulled it, it is pinned")
	s.Expect(s.contents()).To(Equal([]string{digestOf("1.1.0"), digestOf("1.0.0")}))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

func TestOlderContentOfTheCurrentTagIsPinned(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.pin("shop", new("1.0.0@"+newContent))
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@" + newContent))
	s.Expect(s.contents()).To(Equal([]string{newContent, digestOf("1.0.0")}))
	s.pin("shop", nil)
	s.deploy("shop")
	s.Expect(s.contents()[0]).To(Equal(digestOf("1.0.0")), "what the policy names is another release, and goes")
}

func TestDigestsAreSwitchedOnAndOff(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	annotate := func(value string) {
		s.Change(fixture.MakeRepository("shop").Obj(), func(o client.Object) {
			annotations := o.GetAnnotations()
			delete(annotations, v1alpha1.DigestRefAnnotation)
			if value != "" {
				annotations[v1alpha1.DigestRefAnnotation] = value
			}
			o.SetAnnotations(annotations)
		})
	}
	annotate("")
	s.deployAndBake("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@"))
	s.Events.Take()
	s.Wire.Forget()

	annotate("shop")
	s.deploy("shop")
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@" + digestOf("1.0.0")))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}), "no promotion, and no bake")
	s.Expect(s.Wire.Writes()).To(ContainElement("patch OCIRepository shop"))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetPinnedReason,
		Message: "OCIRepository " + s.Namespace + "/shop is pinned to the digest of 1.0.0, " + digestOf("1.0.0"),
	}}))

	annotate("")
	s.deploy("shop")
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@"))
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetUnpinnedReason,
		Message: "OCIRepository " + s.Namespace + "/shop is not pinned to a digest any more, and pulls 1.0.0 by its tag",
	}}))
	s.release("shop", "1.1.0")
	s.deployAndBake("shop")
	s.Expect(s.reference()).To(Equal("1.1.0@"))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

func TestDigestOfAnotherManagerIsNotRemoved(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.setRef(func(ref *sourcev1.OCIRepositoryRef) { ref.Digest = newContent })
	s.rest("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@" + newContent))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).To(Equal("OCIRepository shop: spec.ref.digest outranks spec.ref.tag in Flux: remove it"))
}

func TestRollbackToAnEntryWithoutADigest(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		o.(*v1alpha1.Rollout).Status.History[0].Version.Digest = nil // an entry of before
	})
	s.digestRelease("1.1.0", digestOf("1.1.0"))
	s.deploy("shop")
	s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		status := &o.(*v1alpha1.Rollout).Status
		status.History[1].Version.Digest = nil
		for i := range status.AvailableReleases {
			if status.AvailableReleases[i].Tag == "1.0.0" {
				status.AvailableReleases[i].Digest = nil
			}
		}
	})
	s.pin("shop", new("1.0.0"))
	s.rest("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@"))
	s.deploy("shop")
	s.deploy("shop")
	s.Expect(s.reference()).To(Equal("1.0.0@" + digestOf("1.0.0")))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 3, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}))
}

func TestDigestOfAnotherImageIsNotWritten(t *testing.T) {
	s := open(t, append(byDigest(fixture.MakeRollout("shop"), "1.0.0"), fixture.MakeRepository("other").DrivenBy("shop").PinnedBy("shop").Obj())...)
	s.deploy("shop")
	s.Expect(s.carried("other")).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).To(Equal(
		"OCIRepository other: pulls registry.example.com/other, and the ImagePolicy ranks registry.example.com/shop, so the digest of the release is not about it: " +
			"remove the annotation digest.rollout.kuberik.com/ref"))
}

func TestLostHistoryIsAdoptedWithItsDigest(t *testing.T) {
	s := open(t, byDigest(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.loseStatus()
	s.Wire.Forget()
	s.deploy("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
	s.Expect(s.contents()).To(Equal([]string{digestOf("1.0.0")}))
	s.Expect(s.reference()).To(Equal("1.0.0@" + digestOf("1.0.0")))
	s.Expect(s.Wire.Writes()).NotTo(ContainElement("patch OCIRepository shop"), "nothing is deployed again")
}
