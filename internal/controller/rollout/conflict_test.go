// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	takesTag = "spec.ref.tag is overwritten by kustomize-controller for Kustomization flux-system/apps: " +
		"remove it from the manifest that this Kustomization applies, or name it in its spec.ignore"
	takesVersion = "spec.postBuild.substitute.VERSION is overwritten by kustomize-controller for Kustomization flux-system/apps: " +
		"remove it from the manifest that this Kustomization applies, or name it in its spec.ignore"
)

// The manifests in the Git repository of the Kustomization flux-system/apps.
const (
	gitSetsTag = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {ref: {tag: 0.9.0}}
`
	gitSetsDigest = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {ref: {tag: 0.9.0, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}
`
	gitSetsNoTag = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {insecure: false}
`
	gitSetsVersion = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {VERSION: 0.9.0}}}
`
	gitSetsNoVersion = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {TIER: gold}}}
`
)

// parentApplies simulates the kustomize-controller that applies the manifest in Git to
// the object shop.
func (s *testEnv) parentApplies(manifest string) {
	s.appliesAs("kustomize-controller", manifest, map[string]string{
		kustomizev1.GroupVersion.Group + "/name": "apps", kustomizev1.GroupVersion.Group + "/namespace": "flux-system",
	})
}

// appliesAs makes a forced server-side apply to the object shop.
func (s *testEnv) appliesAs(manager, manifest string, labels map[string]string) {
	s.Expect(s.Apply(s.Ctx, s.toShop(manifest, labels), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// appliesUnforced makes one that does not overwrite other managers.
func (s *testEnv) appliesUnforced(manager, manifest string) error {
	return s.Apply(s.Ctx, s.toShop(manifest, nil), client.FieldOwner(manager))
}

func (s *testEnv) toShop(manifest string, labels map[string]string) runtime.ApplyConfiguration {
	object := &unstructured.Unstructured{}
	s.Expect(yaml.Unmarshal([]byte(manifest), object)).To(Succeed())
	object.SetName("shop")
	object.SetNamespace(s.Namespace)
	object.SetLabels(labels)
	return client.ApplyConfigurationFromUnstructured(object)
}

// openContest deploys 1.0.0 to the OCIRepository shop and lets the parent overwrite its
// tag twice, ten seconds apart.
func openContest(t *testing.T, more ...client.Object) *testEnv {
	t.Helper()
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", more...)...)
	s.deploy("shop")
	s.parentApplies(gitSetsTag)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "the first time it is put back at once")
	s.Pass(10 * time.Second)
	s.parentApplies(gitSetsTag)
	s.deploy("shop")
	return s
}

func TestFieldThatIsTakenBackAgainIsContested(t *testing.T) {
	s := openContest(t)
	s.Expect(s.carried("shop")["tag"]).To(Equal("0.9.0"))
	conflict := condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason, "OCIRepository shop: " + takesTag}
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(conflict))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Reason).To(Equal(v1alpha1.TargetConflictReason))
	s.Expect(s.rollout("shop").Status.Targets).To(ContainElement(v1alpha1.TargetStatus{
		Kind: "OCIRepository", Name: "shop", Namespace: s.Namespace, Version: "1.0.0",
		Digest: digestOf("1.0.0"), State: v1alpha1.TargetConflict, Reason: v1alpha1.TargetContested, Message: takesTag,
	}))
	reported := s.Events.Take()
	s.Expect(reported[len(reported)-2:]).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
			Message: "OCIRepository " + s.Namespace + "/shop had drifted and was set to 1.0.0 again"},
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TargetConflictReason, Message: conflict.Message},
	}))
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(20 * time.Second))
}

func TestFirstWriteThatCameLateBeginsNoContest(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write != "patch OCIRepository shop" {
			return fixture.Fault{}
		}
		s.Wire.Fail = nil
		s.parentApplies(gitSetsNoTag) // another writer was a moment earlier
		return fixture.Fault{}
	}
	s.deploy("shop")
	s.Events.Take()

	s.Pass(10 * time.Second)
	s.parentApplies(gitSetsTag)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"), "the first time it is put back at once")
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
		Message: "OCIRepository " + s.Namespace + "/shop had drifted and was set to 1.0.0 again",
	}}))
}

func TestContestedFieldIsWrittenEverMoreRarely(t *testing.T) {
	s := openContest(t)
	s.Events.Take()
	s.Wire.Forget()
	began := s.Clock.Now()
	var wrote []string
	for s.Clock.Now().Sub(began) < time.Hour {
		before := len(s.Wire.Writes())
		s.rest("shop")
		s.fluxApplies()
		s.rest("shop")
		if len(s.Wire.Writes()) > before {
			wrote = append(wrote, s.Clock.Now().Sub(began).String())
		}
		step := 20 * time.Second
		if s.Clock.Now().Sub(began) >= 7*time.Minute+step {
			step = time.Minute // the writes are minutes apart by now
		}
		s.Pass(step)
		s.parentApplies(gitSetsTag)
	}
	s.Expect(wrote).To(Equal([]string{"20s", "1m20s", "3m20s", "7m20s", "15m20s", "25m20s", "35m20s", "45m20s", "55m20s"}))
	s.Expect(s.Wire.Writes()).To(HaveEach("patch OCIRepository shop"), "no status is written")
	s.Expect(s.Events.Take()).To(BeEmpty())
}

// A digest takes precedence over the tag, and no write would take effect. Time alone
// changes nothing, and the controller does not check again until Git changes.
func TestContestedTagThatADigestOutranksIsLeftAlone(t *testing.T) {
	s := openContest(t)
	s.parentApplies(gitSetsDigest)
	s.rest("shop")
	s.Pass(time.Hour)
	s.Wire.Forget()
	s.Expect(s.reconcile("shop").RequeueAfter).To(BeZero())
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.parentApplies(gitSetsTag)
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
}

func TestContestEndsAtOnceWhenTheOtherManagerLetsGo(t *testing.T) {
	s := openContest(t)
	s.Events.Take()
	s.parentApplies(gitSetsNoTag)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(BeZero())
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
		Message: "OCIRepository " + s.Namespace + "/shop had drifted and was set to 1.0.0 again",
	}}))
	s.Expect(s.reconcile("shop").RequeueAfter).To(BeZero())
}

func TestWriteThatFailsWhenTheOtherManagerHasLetGoIsDoneAgain(t *testing.T) {
	s := openContest(t)
	s.parentApplies(gitSetsNoTag)
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if write != "patch OCIRepository shop" {
			return fixture.Fault{}
		}
		s.Wire.Fail = nil
		s.parentApplies(gitSetsNoTag + "metadata: {annotations: {note: changed}}")
		return fixture.Fault{}
	}
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestContestEndsWhenTheOtherManagerWantsTheSame(t *testing.T) {
	s := openContest(t)
	s.Wire.Forget()
	s.parentApplies(strings.Replace(gitSetsTag, "0.9.0", "1.0.0", 1))
	s.deploy("shop")
	s.Expect(s.Wire.Writes()).To(HaveEach("patch Rollout/status shop"))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestContestEndsWhenTheOtherManagerWantsTheNextRelease(t *testing.T) {
	s := openContest(t)
	s.Wire.Forget()
	s.parentApplies(strings.Replace(gitSetsTag, "0.9.0", "1.1.0", 1))
	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.Wire.Writes()).NotTo(ContainElement("patch OCIRepository shop"))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(BeZero())
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestContestEndsWhenTheFieldIsKeptLongerThanBefore(t *testing.T) {
	s := openContest(t)
	s.Pass(20 * time.Second)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.TargetConflictReason),
		"nothing proves yet that the other manager has gone")

	wait := s.reconcile("shop").RequeueAfter
	s.Expect(wait).To(Equal(30*time.Second + 12500*time.Millisecond))
	s.Pass(wait)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
	s.Expect(s.reconcile("shop").RequeueAfter).To(BeZero())
}

func TestNewReleaseIsWrittenOnceToAContestedTarget(t *testing.T) {
	s := openContest(t)
	s.Wire.Forget()
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"))
	s.parentApplies(gitSetsTag)
	s.deploy("shop")
	s.parentApplies(gitSetsTag)
	s.deploy("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("0.9.0"))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying}))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetConflictReason, "OCIRepository shop: " + takesTag}))
	s.Expect(s.Wire.Writes()).To(ConsistOf(
		"patch Rollout/status shop", "patch OCIRepository shop", "patch Kustomization shop"))

	s.parentApplies(gitSetsNoTag)
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
}

func TestRestartDoesNotHurryAContest(t *testing.T) {
	s := openContest(t)
	s.Wire.Forget()
	s.Events.Take()
	for range 10 {
		s.restart()
		s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(30 * time.Second))
		s.Pass(time.Second)
		s.parentApplies(gitSetsTag)
	}
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())

	s.restart()
	s.parentApplies(gitSetsNoTag)
	s.deploy("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestRestartBetweenTwoRoundsDoesNotEndAContest(t *testing.T) {
	s := openContest(t)
	s.Pass(20 * time.Second)
	s.deploy("shop")
	s.Wire.Forget()
	s.restart()
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(13 * time.Minute))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.TargetConflictReason))
}

// After a restart, the stored reason shows that a field is contested, in whatever words.
func TestContestIsResumedFromItsReason(t *testing.T) {
	g := NewWithT(t)
	rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0")).Obj()
	target := targets.Target{Repository: fixture.MakeRepository("web").DrivenBy("shop").Obj()}
	seen := content.Target{Kind: target.Kind(), Namespace: fixture.Namespace, Name: "web"}
	stored := func(reason v1alpha1.TargetReason, message string) {
		rollout.Status.Targets = []v1alpha1.TargetStatus{{
			Kind: seen.Kind, Namespace: seen.Namespace, Name: seen.Name, Version: "1.0.0",
			State: v1alpha1.TargetConflict, Reason: reason, Message: message,
		}}
	}
	m := &remembered{}
	stored(v1alpha1.TargetOutranked, "spec.ref.semver is overwritten by nobody")
	g.Expect(m.conflictOf(rollout, target, seen, fixture.Noon)).To(BeNil())
	stored(v1alpha1.TargetContested, "in any words")
	g.Expect(m.conflictOf(rollout, target, seen, fixture.Noon)).NotTo(BeNil())
	g.Expect(m.conflictOf(rollout, target, seen, fixture.Noon).Message()).To(Equal("in any words"))
}

func TestContestedVariableNamesItsRival(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	for range 2 {
		s.Pass(time.Hour)
		s.parentApplies(gitSetsVersion)
		s.deploy("shop")
	}
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.TargetConflictReason, "Kustomization shop: " + takesVersion}))
	s.Expect(s.carried("shop")["VERSION"]).To(Equal("1.0.0"), "the pause is long over")
	s.parentApplies(gitSetsVersion)
	s.rest("shop")
	s.Expect(s.carried("shop")["VERSION"]).To(Equal("0.9.0"))

	s.parentApplies(gitSetsNoVersion)
	s.deploy("shop")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "VERSION": "1.0.0", "TIER": "gold"}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestWhoeverTakesAFieldIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		take func(*testEnv)
		want string
	}{
		"another applier": {
			take: func(s *testEnv) { s.appliesAs("argocd-controller", gitSetsTag, nil) },
			want: "spec.ref.tag is overwritten by argocd-controller: remove it from what that field manager writes",
		},
		"a client that writes it": {
			take: func(s *testEnv) { s.changeTag("0.9.0") },
			want: "spec.ref.tag is overwritten by rollout.test: remove it from what that field manager writes",
		},
		"a client that removes it": {
			take: func(s *testEnv) {
				s.Change(&sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
					o.(*sourcev1.OCIRepository).Spec.Reference = nil
				})
			},
			want: "spec.ref.tag is overwritten by a writer that removes it and leaves no name: find it in the audit log of the API server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			for range 2 {
				s.Pass(time.Second)
				tt.take(s)
				s.deploy("shop")
			}
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
				metav1.ConditionFalse, v1alpha1.TargetConflictReason, "OCIRepository shop: " + tt.want}))
			s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(29 * time.Second))
		})
	}
}

func TestUserWhoChangesAFieldNowAndThenContestsNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.deploy("shop")
	for range 3 {
		s.Pass(11 * time.Minute)
		s.changeTag("0.9.0")
		s.deploy("shop")
		s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
		s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))
	}
}

func TestContestIsForgottenWithItsTargetAndItsRollout(t *testing.T) {
	s := openContest(t)
	s.Expect(s.reconciler.memory.of(s.Key("shop")).conflicts).To(HaveLen(1))
	s.Remove(&sourcev1.OCIRepository{}, "shop")
	s.rest("shop")
	s.Expect(s.reconciler.memory.of(s.Key("shop")).conflicts).To(BeEmpty())

	s = openContest(t)
	s.Remove(&v1alpha1.Rollout{}, "shop")
	_, err := s.try("shop")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.reconciler.memory.of(s.Key("shop")).conflicts).To(BeEmpty())
}

func TestNoPassThatIsDueAlreadyFollowsAtOnce(t *testing.T) {
	g := NewWithT(t)
	noon := fixture.Noon
	later := noon.Add(time.Second)
	g.Expect(requeue(noon, time.Time{}, later, false).RequeueAfter).To(BeZero())
	g.Expect(requeue(noon, noon.Add(time.Hour), later, false).RequeueAfter).To(Equal(time.Hour - time.Second))
	g.Expect(requeue(noon, noon.Add(time.Nanosecond), later, false).RequeueAfter).To(Equal(time.Millisecond), "what came due during the pass")
	g.Expect(requeue(noon, noon, later, false).RequeueAfter).To(Equal(recheck.Overdue))
	g.Expect(requeue(noon, time.Time{}, later, true).RequeueAfter).To(Equal(recheck.AtOnce))
}
