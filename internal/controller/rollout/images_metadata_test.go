// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"net"
	"testing"
	"time"
	"unsafe"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openStocked opens an env whose releases are in a registry.
func openStocked(t *testing.T, image func(*fixture.ScanBuilder) *fixture.ScanBuilder) *testEnv {
	t.Helper()
	s := openAlone(t)
	s.asksRegistries = true
	objects := shopWith(fixture.MakeRollout("shop"), "1.0.0")
	objects[0] = image(fixture.MakeScan("shop").Image(testPlane.Registry.Host() + "/" + s.Namespace)).Found("1.0.0").Obj()
	s.Add(objects...)
	s.push("1.0.0")
	return s
}

func asItIs(scan *fixture.ScanBuilder) *fixture.ScanBuilder { return scan }

// push stores an artifact whose revision is its tag.
func (s *testEnv) push(tag string) {
	_, err := testPlane.Registry.Push(s.Ctx, controlplane.Artifact{Repository: s.Namespace, Tag: tag})
	s.Expect(err).NotTo(HaveOccurred())
}

// counted counts the answers of registries.
func (s *testEnv) counted(read imageinfo.Read) imageinfo.Read {
	return func(ctx context.Context, image registry.Image) (releases.Metadata, error) {
		defer s.answers.Add(1)
		return read(ctx, image)
	}
}

// registryDies makes the registry unreachable until comesBack is called or the test ends.
func (s *testEnv) registryDies(t *testing.T) (comesBack func()) {
	t.Helper()
	s.Expect(testPlane.Registry.GoAway()).To(Succeed())
	comesBack = func() { s.Expect(testPlane.Registry.ComeBack()).To(Succeed()) }
	t.Cleanup(comesBack)
	return comesBack
}

// scanned sets whether the ImageRepository can be scanned.
func (s *testEnv) scanned(ready metav1.ConditionStatus) {
	scan := fixture.MakeScan("shop").Found("1.0.0")
	if ready == metav1.ConditionFalse {
		scan = scan.NotReady("connection refused")
	}
	s.ChangeStatus(fixture.MakeScan("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImageRepository).Status.Conditions = scan.Obj().Status.Conditions
	})
}

// revisions returns the revisions in the status: of the known releases, the candidates
// and the history.
func (s *testEnv) revisions(name string) [][]string {
	status := s.rollout(name).Status
	var deployed []v1alpha1.VersionInfo
	for _, entry := range status.History {
		deployed = append(deployed, entry.Version)
	}
	var all [][]string
	for _, releases := range [][]v1alpha1.VersionInfo{status.AvailableReleases, s.candidates(name), deployed} {
		reported := []string{}
		for _, release := range releases {
			if release.Revision == nil || release.Created == nil || release.Digest == nil {
				reported = append(reported, release.Tag+" of nothing")
			} else {
				reported = append(reported, release.Tag+" of "+*release.Revision)
			}
		}
		all = append(all, reported)
	}
	return all
}

func TestNoRegistryKeepsAPromotionWaitingAndMetadataArrivesLater(t *testing.T) {
	s := openStocked(t, asItIs)
	comesBack := s.registryDies(t)
	s.scanned(metav1.ConditionFalse)
	stop := s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.Eventually(func() [][]string { return s.revisions("shop") }).Should(Equal([][]string{
		{"1.0.0 of nothing", "1.1.0 of nothing"}, {"1.1.0 of nothing"}, {"1.0.0 of nothing"},
	}))

	comesBack()
	s.push("1.1.0")
	s.scanned(metav1.ConditionTrue)
	known := [][]string{{"1.0.0 of 1.0.0", "1.1.0 of 1.1.0"}, {"1.1.0 of 1.1.0"}, {"1.0.0 of 1.0.0"}}
	s.Eventually(func() [][]string { return s.revisions("shop") }).Should(Equal(known))
	s.Expect(*s.rollout("shop").Status.ArtifactType).To(Equal("application/vnd.cncf.flux.config.v1+json"))
	s.Expect(*s.rollout("shop").Status.Source).To(Equal("https://example.com/" + s.Namespace))

	stop()
	asked := testPlane.Registry.Requests()
	s.play(t, testPlane.RESTConfig())
	s.Remove(&v1alpha1.RolloutGate{}, "approval")
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
	s.Consistently(func() uint64 { return testPlane.Registry.Requests() }, time.Second).Should(Equal(asked),
		"what is stored is not asked for again")
}

func TestMetadataCostsNoWriteOfItsOwnDuringAPromotion(t *testing.T) {
	s := openStocked(t, asItIs)
	requests := &fixture.Requests{}
	user := testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	s.play(t, user)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.Eventually(s.answers.Load).Should(BeEquivalentTo(1), "the registry has answered")
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
	s.Eventually(func() [][]string { return s.revisions("shop") }).Should(Equal([][]string{{"1.0.0 of 1.0.0"}, {}, {"1.0.0 of 1.0.0"}}))
	s.Expect(requests.CountBoth("PATCH", "/namespaces/"+s.Namespace+"/")).To(Equal(4), "two of the status, one of each target")
}

func TestMetadataIsStoredWhileAPromotionGoesOnForLong(t *testing.T) {
	s := openStocked(t, asItIs)
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Pass(10 * time.Second)
	s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		o.SetAnnotations(map[string]string{"example.com/touched": "to have the Rollout looked at"})
	})
	s.Eventually(func() [][]string { return s.revisions("shop") }).Should(Equal([][]string{{"1.0.0 of 1.0.0"}, {}, {"1.0.0 of 1.0.0"}}))
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}))
}

func TestLoginOfTheImageRepositoryIsUsed(t *testing.T) {
	s := openStocked(t, func(scan *fixture.ScanBuilder) *fixture.ScanBuilder { return scan.Secret("login") })
	testPlane.Registry.RequireLogin("flux", "secret")
	t.Cleanup(func() { testPlane.Registry.RequireLogin("", "") })
	s.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "login"},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"` + testPlane.Registry.Host() +
			`":{"username":"flux","password":"secret"}}}`},
	})
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Eventually(func() [][]string { return s.revisions("shop") }).Should(Equal([][]string{{"1.0.0 of 1.0.0"}, {}, {"1.0.0 of 1.0.0"}}))
}

func TestRegistryThatHangsHoldsNoWorker(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = silent.Close() })
	s := openStocked(t, func(scan *fixture.ScanBuilder) *fixture.ScanBuilder {
		return scan.Image(silent.Addr().String() + "/shop")
	})
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	for _, tag := range []string{"1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"} {
		s.pinTo(tag)
		s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal(tag + tag))
	}
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 6, Tag: "1.5.0", State: v1alpha1.BakeSucceeded})
}

// TestMetadataRequestsDoNotAliasCachedObjects: images are remembered when the objects that name
// them are long deleted, and would keep all their strings in memory.
func TestMetadataRequestsDoNotAliasCachedObjects(t *testing.T) {
	g := NewWithT(t)
	text := func(s string) string { return string([]byte(s)) } // in its own piece of memory
	digest := text("sha256:1")
	repository := &imagev1.ImageRepository{Spec: imagev1.ImageRepositorySpec{Image: text("registry/shop")}}
	release := v1alpha1.VersionInfo{Tag: text("1.0.0"), Digest: &digest}
	images := imagesOf(repository, []v1alpha1.VersionInfo{release})
	g.Expect(images).To(HaveLen(1))
	for kept, of := range map[string]string{
		images[0].Name: repository.Spec.Image, images[0].Tag: release.Tag, images[0].Digest: digest,
	} {
		g.Expect(kept).To(Equal(of))
		g.Expect(unsafe.StringData(kept)).NotTo(BeIdenticalTo(unsafe.StringData(of)), kept)
	}
}
