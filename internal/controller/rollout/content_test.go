// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// otherContent is the digest of a tag that was pushed again.
const otherContent = "sha256:bbbb"

// digestOf returns the first digest of a tag.
func digestOf(tag string) string { return strings.TrimPrefix(fixture.Revision(tag), tag+"@") }

// pushAgain pushes other content under a tag and lets Flux pull it.
func (s *testEnv) pushAgain(tag string) {
	s.pushedAgain = map[string]string{tag: otherContent}
	s.fluxPulls()
}

// reflects sets the digest that the ImagePolicy reports for its tag.
func (s *testEnv) reflects(digest string) {
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) { o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = digest })
}

// contents returns the digests of the history.
func (s *testEnv) contents() []string {
	var all []string
	for _, entry := range s.rollout("shop").Status.History {
		digest := "unknown"
		if entry.Version.Digest != nil {
			digest = *entry.Version.Digest
		}
		all = append(all, digest)
	}
	return all
}

func TestTagThatIsPushedAgainIsAnEntryOfItsOwnThatBakes(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute).SelectAllChecks(), "1.0.0",
		fixture.MakeHealthCheck("web").Obj())...)
	s.deployAndBake("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.contents()).To(Equal([]string{digestOf("1.0.0")}), "no policy has said so, but Flux")
	s.Events.Take()
	s.notifications.Take()
	s.Wire.Forget()

	s.pushAgain("1.0.0")
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeDeploying}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
	s.Expect(s.contents()).To(Equal([]string{otherContent, digestOf("1.0.0")}))
	s.Expect(s.rollout("shop").Current().TriggeredBy).To(Equal(&v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: promotion.SystemName}))
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}), "Flux has what it is to have")
	message := "recorded again 1.0.0 (tag 1.0.0 was pushed again, and OCIRepository " + s.Namespace + "/shop has pulled it: it is " +
		otherContent + " now, and was " + digestOf("1.0.0") + "); waiting for Flux to apply 1.0.0 to 2 targets, then for 1 HealthCheck"
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TagMovedReason, Message: message},
	}))
	s.Expect(heard(s.notifications.Take(), "Rollout")).To(Equal([]string{"error TagMoved 1.0.0: " + message}))

	s.deployAndBake("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.rollout("shop").Current().BakeEndTime.Sub(s.rollout("shop").Current().BakeStartTime.Time)).To(Equal(10 * time.Minute))
	s.Expect(s.rollout("shop").Status.Targets).To(ContainElement(v1alpha1.TargetStatus{
		Kind: "OCIRepository", Name: "shop", Namespace: s.Namespace, Version: "1.0.0", Digest: otherContent, State: v1alpha1.TargetApplied,
	}))
}

func TestTagThatIsPushedAgainDuringABakeEndsIt(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	s.deploy("shop")
	s.Pass(9 * time.Minute)
	s.pushAgain("1.0.0")
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeDeploying}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeCancelled},
	}))
	s.fluxApplies()
	s.Pass(time.Minute)
	s.rest("shop")
	s.Expect(s.rollout("shop").Current().BakeStartTime.Time).To(BeTemporally("==", s.Clock.Now()), "a bake of its own")
}

func TestOtherContentAtThePullIsNoProof(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	s.reflects(digestOf("1.0.0"))
	s.rest("shop")
	s.Events.Take()
	s.pushAgain("1.0.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}))
	message := "OCIRepository shop: has pulled 1.0.0 as " + otherContent + ", but the release is " + digestOf("1.0.0") +
		": push each release under a tag of its own; to take what the tag points to now, set spec.digestReflectionPolicy of ImagePolicy shop to Always while 1.0.0 is its latest, or pin another release with spec.wantedVersion"
	mismatch := condition{metav1.ConditionFalse, v1alpha1.DigestMismatchReason, message}
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(mismatch))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{metav1.ConditionTrue, mismatch.Reason, message}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.DigestMismatchReason, Message: message},
	}))

	s.reflects(otherContent) // as Flux does with digestReflectionPolicy Always
	s.rest("shop")
	s.Expect(s.contents()).To(Equal([]string{otherContent, digestOf("1.0.0")}))
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeInProgress}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeCancelled},
	}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{}))
}

func TestContentThatOnlyACacheStillShowsIsNoChange(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	s.keep(&sourcev1.OCIRepositoryList{})
	s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		status := &o.(*v1alpha1.Rollout).Status
		status.History[0].Version.Digest = new(otherContent)
		for i := range status.Targets {
			if status.Targets[i].Digest != "" {
				status.Targets[i].Digest = otherContent
			}
		}
	})
	s.pushedAgain = map[string]string{"1.0.0": otherContent}
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))
}
