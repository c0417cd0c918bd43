// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openWithARunningApp opens a namespace in which another writer has deployed 1.0.0. The
// policy names 1.1.0 and a gate is closed.
func openWithARunningApp(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := open(t, append(objects,
		fixture.MakeScan("shop").Found("1.0.0", "1.1.0").Obj(),
		fixture.MakePolicy("shop").Latest("1.1.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Obj(),
		fixture.MakeGate("approval", "shop").Closed().Obj(),
		fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied).Obj(),
	)...)
	s.somebodySets("1.0.0", "1.0.0")
	return s
}

// somebodySets sets the tag and the variable under a field manager of its own.
func (s *testEnv) somebodySets(tag, variable string) {
	s.appliesAs("somebody", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {ref: {tag: `+tag+`}}
`, nil)
	s.appliesAs("somebody", `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {VERSION: `+variable+`}}}
`, nil)
}

func TestFirstReleaseAppliedTakesOverWhatRuns(t *testing.T) {
	s := openWithARunningApp(t)
	repository, kustomization := s.shopTargets()
	s.rest("shop")
	s.Expect(s.history("shop")).To(BeEmpty(), "Flux has not applied it yet")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.FirstReleaseNotAppliedReason,
		"spec.firstRelease is Applied: the history begins with 1.0.0 once every target has applied it; " +
			"Kustomization " + s.Namespace + "/shop has not applied it; OCIRepository " + s.Namespace + "/shop has not applied it; " +
			"if nothing runs yet, set spec.wantedVersion to the first release"}))
	s.Expect(s.kstatus("shop")).To(Equal(status.InProgressStatus))

	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(*s.rollout("shop").Status.History[0].Message).To(Equal("spec.firstRelease is Applied; the targets carry this version"))
	s.Expect(s.candidates("shop")).To(Equal(fixture.Releases("1.1.0")), "the gate holds it, although this history is new")
	s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))
	repositoryNow, kustomizationNow := s.shopTargets()
	s.Expect(repositoryNow.Generation).To(Equal(repository.Generation))
	s.Expect(kustomizationNow.Generation).To(Equal(kustomization.Generation))

	s.Change(fixture.MakeGate("approval", "shop").Obj(), func(o client.Object) { o.(*v1alpha1.RolloutGate).Spec.Passing = new(true) })
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.carried("shop")).To(HaveKeyWithValue("tag", "1.1.0"))
	s.Expect(s.carried("shop")).To(HaveKeyWithValue("VERSION", "1.1.0"))
}

func TestFirstReleaseAppliedWritesNothingWhileItIsNotKnownWhatRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(*testEnv)
		want    func(*testEnv) condition
		fix     func(*testEnv)
	}{
		"targets disagree": {
			func(s *testEnv) { s.somebodySets("1.0.0", "0.9.0") },
			func(*testEnv) condition {
				return condition{metav1.ConditionTrue, v1alpha1.TargetsDisagreeReason,
					"spec.firstRelease is Applied, and the targets carry different versions (0.9.0, 1.0.0): set spec.wantedVersion to the right one"}
			},
			func(s *testEnv) { s.somebodySets("1.0.0", "1.0.0") },
		},
		"a target carries nothing": {
			func(s *testEnv) {
				s.Change(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
					delete(o.(*kustomizev1.Kustomization).Spec.PostBuild.Substitute, "VERSION")
				})
			},
			func(s *testEnv) condition {
				return condition{metav1.ConditionTrue, v1alpha1.FirstReleaseUnknownReason,
					"spec.firstRelease is Applied, and Kustomization " + s.Namespace + "/shop carries no version: " +
						"set the one that runs there or in spec.wantedVersion; if nothing runs yet, set spec.firstRelease to Newest"}
			},
			func(s *testEnv) { s.pinTo("1.0.0") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openWithARunningApp(t)
			test.arrange(s)
			s.fluxApplies()
			s.Wire.Forget()
			s.rest("shop")
			s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(test.want(s)))
			s.Expect(s.history("shop")).To(BeEmpty())
			s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))

			test.fix(s)
			s.deploy("shop")
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
		})
	}
}

// The entry contains what Flux has pulled. It is therefore proven at once, and an earlier
// push is not taken for a change.
func TestFirstReleaseAppliedRecordsWhatFluxHasPulled(t *testing.T) {
	s := openWithARunningApp(t)
	s.fluxApplies()
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	repository := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), repository)).To(Succeed())
	entry := s.rollout("shop").Status.History[0]
	s.Expect(entry.Version.Digest).NotTo(BeNil())
	s.Expect(repository.Status.Artifact.Revision).To(Equal("1.0.0@" + *entry.Version.Digest))
}

func TestFirstReleaseIsOneOfTwo(t *testing.T) {
	s := open(t)
	s.Expect(s.apply(s.manifest(`{releasesImagePolicy: {name: shop}, firstRelease: Applied}`))).To(Succeed())
	s.Expect(s.apply(s.manifest(`{releasesImagePolicy: {name: shop}, firstRelease: Newest}`))).To(Succeed())
	s.Expect(s.apply(s.manifest(`{releasesImagePolicy: {name: shop}, firstRelease: Oldest}`))).To(MatchError(ContainSubstring("spec.firstRelease")))
}
