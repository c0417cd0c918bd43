// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// marked are releases of which 1.1.5 is forward-only, oldest first.
var marked = []string{"1.0.0", "1.1.0", "1.1.5", "1.2.0"}

// openFailed opens an env in which 1.2.0 has failed after 1.0.0 had succeeded, and is to
// be answered by a rollback in an hour. All metadata is known except the marks: the
// releases were read before spec.rollback was set.
func openFailed(t *testing.T, rollback v1alpha1.RolloutRollback) *testEnv {
	t.Helper()
	s := openAlone(t)
	s.asksRegistries = true
	rollout := fixture.MakeRollout("shop")
	var known []v1alpha1.VersionInfo
	for _, tag := range marked {
		known = append(known, s.pushMarked(tag))
	}
	rollout.Releases(known...).History(
		fixture.MakeEntry("1.2.0").Version(known[3]).Failed(), fixture.MakeEntry("1.0.0").Version(known[0]).Succeeded(),
	)
	objects := shopWith(rollout, "1.2.0")
	objects[0] = fixture.MakeScan("shop").Image(testPlane.Registry.Host() + "/" + s.Namespace).Found(marked...).Obj()
	shop := objects[len(objects)-1].(*v1alpha1.Rollout)
	shop.Spec.Rollback, shop.Status.ArtifactType = &rollback, ptr.To("application/vnd.cncf.flux.config.v1+json")
	shop.Status.History[0].RollbackDue = &metav1.Time{Time: fixture.Noon.Add(time.Hour)}
	s.Add(objects...)
	return s
}

// pushMarked stores an artifact and returns what is known of it without its mark.
func (s *testEnv) pushMarked(tag string) v1alpha1.VersionInfo {
	artifact := controlplane.Artifact{Repository: s.Namespace, Tag: tag}
	if tag == "1.1.5" {
		artifact.Annotations = map[string]string{"com.kuberik.rollout.forward-only": "true"}
	}
	digest, err := testPlane.Registry.Push(s.Ctx, artifact)
	s.Expect(err).NotTo(HaveOccurred())
	return fixture.MakeRelease(tag).Digest(digest).Revision(tag).Created(fixture.Noon).Obj()
}

// forwardOnly returns of each known release whether it is forward-only.
func (s *testEnv) forwardOnly() []string {
	all := []string{}
	for _, release := range s.rollout("shop").Status.AvailableReleases {
		mark := "unknown"
		if release.ForwardOnly != nil {
			mark = fmt.Sprint(*release.ForwardOnly)
		}
		all = append(all, release.Tag+" "+mark)
	}
	return all
}

// manifestsRead returns how many manifests the registry was asked for.
func (s *testEnv) manifestsRead() int {
	return testPlane.Registry.RequestsTo(s.Namespace)["GET manifests"]
}

// passes makes the controller look at the Rollout a number of times.
func (s *testEnv) passes(times int) {
	for i := range times {
		request := fmt.Sprint("look ", i)
		s.Merge(s.rollout("shop"), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReconcileRequestAnnotation, request))
		s.Eventually(func() string { return s.rollout("shop").Status.LastHandledReconcileAt }).Should(Equal(request))
	}
}

var nothingIsMarked = []string{"1.0.0 unknown", "1.1.0 unknown", "1.1.5 unknown", "1.2.0 unknown"}

func TestRegistryIsAskedOnceForTheForwardOnlyMarksThatARollbackNeeds(t *testing.T) {
	s := openFailed(t, v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect})
	stop := s.play(t, testPlane.RESTConfig())
	s.Eventually(s.forwardOnly).Should(Equal([]string{"1.0.0 unknown", "1.1.0 false", "1.1.5 true", "1.2.0 false"}))
	s.Expect(s.manifestsRead()).To(Equal(3), "one for each release that a rollback takes back")
	s.Expect(s.rollout("shop").Status.History[0].Version.ForwardOnly).To(HaveValue(BeFalse()))

	s.passes(3)
	stop()
	s.play(t, testPlane.RESTConfig())
	s.passes(2)
	s.Expect(s.manifestsRead()).To(Equal(3), "what is stored is not asked for again")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.2.0", State: v1alpha1.BakeFailed}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
}

func TestForwardOnlyMarksAreNotAskedForWhereTheyDoNotMatter(t *testing.T) {
	s := openFailed(t, v1alpha1.RolloutRollback{})
	s.play(t, testPlane.RESTConfig())
	s.passes(3)
	s.Expect(s.manifestsRead()).To(BeZero())
	s.Expect(s.forwardOnly()).To(Equal(nothingIsMarked))
}

func TestDeadRegistryIsNotAskedForForwardOnlyMarksInEachPass(t *testing.T) {
	s := openFailed(t, v1alpha1.RolloutRollback{Barriers: v1alpha1.RollbackBarriersRespect})
	comesBack := s.registryDies(t)
	s.play(t, testPlane.RESTConfig())
	s.Eventually(s.answers.Load).Should(BeEquivalentTo(3), "each was tried")
	s.passes(10)
	s.Expect(s.answers.Load()).To(BeNumerically("<=", 6), "a second attempt comes after five seconds, whatever happens meanwhile")
	s.Expect(s.forwardOnly()).To(Equal(nothingIsMarked))

	comesBack()
	s.scanned(metav1.ConditionFalse)
	s.scanned(metav1.ConditionTrue)
	s.Eventually(s.forwardOnly).Should(Equal([]string{"1.0.0 unknown", "1.1.0 false", "1.1.5 true", "1.2.0 false"}))
	s.Expect(s.manifestsRead()).To(Equal(3))
}

func TestDecisionKnowsWhetherMetadataIsRead(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Expect(s.reconciler.gather(s.Ctx, s.rollout("shop")).MetadataOff).To(BeTrue())
	store := imageinfo.New(nil, nil, s.Log.Logger())
	s.reconciler.Metadata = store
	s.Expect(s.reconciler.gather(s.Ctx, s.rollout("shop")).MetadataOff).To(BeFalse())

	ended, end := context.WithCancel(s.Ctx)
	end()
	s.Expect(store.Start(ended)).To(Succeed(), "its queues end with it")
}
