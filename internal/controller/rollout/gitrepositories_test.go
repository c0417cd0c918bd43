// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fromGit returns the Rollout shop, an ImagePolicy with the release, and a GitRepository whose
// tag it writes, with the Kustomization that applies it.
func fromGit(rollout *fixture.RolloutBuilder, tag string, more ...client.Object) []client.Object {
	return append([]client.Object{
		fixture.MakeScan("shop").Found(tag).Obj(),
		fixture.MakePolicy("shop").Latest(tag).Digest(digestOf(tag)).Obj(),
		fixture.MakeGitRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(),
		fixture.MakeKustomization("shop").From("GitRepository", "shop").Obj(),
		rollout.Obj(),
	}, more...)
}

func (s *testEnv) git() *sourcev1.GitRepository {
	found := &sourcev1.GitRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), found)).To(Succeed())
	return found
}

// gitHas simulates source-controller: the tag is in Git, and points to a revision.
func (s *testEnv) gitHas(revision string) {
	r := s.git()
	r.Status.Artifact = fixture.Artifact(revision)
	s.gitSays(r, metav1.ConditionTrue, "GitOperationSucceeded", "stored artifact")
}

// gitFails simulates a source-controller that cannot check out the tag.
func (s *testEnv) gitFails(reason, message string) {
	s.gitSays(s.git(), metav1.ConditionFalse, reason, message)
}

func (s *testEnv) gitSays(r *sourcev1.GitRepository, ready metav1.ConditionStatus, reason, message string) {
	r.Status.ObservedGeneration = r.Generation
	r.Status.LastHandledReconcileAt = r.Annotations[v1alpha1.ReconcileRequestAnnotation]
	fluxSays(&r.Status.Conditions, r.Generation, ready, message)
	r.Status.Conditions[0].Reason = reason
	s.Expect(s.Status().Update(s.Ctx, r)).To(Succeed())
}

// gitDeploys lets Flux check out what the GitRepository names, and apply it.
func (s *testEnv) gitDeploys() {
	s.rest("shop")
	s.gitHas(fixture.Commit(s.git().Spec.Reference.Tag))
	s.fluxAppliesKustomizations()
	s.rest("shop")
}

func TestReleaseIsDeployedFromGit(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
	s.gitDeploys()
	s.release("shop", "1.1.0")
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.git().Spec.Reference.Tag).To(Equal("1.1.0"))
	s.gitHas(fixture.Commit("1.1.0"))
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "the Kustomization has applied the commit of 1.0.0")
	s.fluxAppliesKustomizations()
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.Wire.Writes()[:2]).To(Equal([]string{"patch Rollout/status shop", "patch GitRepository shop"}))
	s.Expect(s.rollout("shop").Status.Targets).To(Equal([]v1alpha1.TargetStatus{
		{Kind: "GitRepository", Name: "shop", Namespace: s.Namespace, Version: "1.1.0", Digest: fixture.Commit("1.1.0")[len("1.1.0@"):], State: v1alpha1.TargetApplied},
		{Kind: "Kustomization", Name: "shop", Namespace: s.Namespace, Version: "1.1.0", State: v1alpha1.TargetApplied},
	}))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())

	s.pinTo("1.0.0")
	s.gitDeploys()
	s.Expect(s.git().Spec.Reference.Tag).To(Equal("1.0.0"))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 3, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}))
}

func TestGitAndImageAreDeployedTogether(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0",
		fixture.MakeRepository("shop").DrivenBy("shop").PinnedBy("shop").Obj(), fixture.MakeKustomization("image").From("OCIRepository", "shop").Obj())...)
	s.gitDeploys()
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.reference()).To(Equal("1.0.0@" + digestOf("1.0.0")))
}

func TestTagThatIsNotInGitIsWaitedFor(t *testing.T) {
	const missing = "failed to checkout and determine revision: couldn't find remote ref \"refs/tags/1.1.0\""
	for name, tt := range map[string]struct {
		comes bool
		want  v1alpha1.BakeStatus
	}{"until it is": {true, v1alpha1.BakeSucceeded}, "until the deadline": {false, v1alpha1.BakeFailed}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, fromGit(fixture.MakeRollout("shop").DeployTimeout(time.Hour), "1.0.0")...)
			s.gitDeploys()
			s.release("shop", "1.1.0")
			s.rest("shop")
			s.gitFails(sourcev1.GitOperationFailedReason, missing)
			s.rest("shop")
			want := v1alpha1.TargetStatus{
				Kind: "GitRepository", Name: "shop", Namespace: s.Namespace, Version: "1.1.0",
				State: v1alpha1.TargetPending, Reason: v1alpha1.TargetArtifactFailed, Message: missing,
			}
			s.Expect(s.rollout("shop").Status.Targets).To(ContainElement(want))
			s.gitSays(s.git(), metav1.ConditionUnknown, "Progressing", "reconciliation in progress")
			s.Wire.Forget()
			s.rest("shop")
			s.Expect(s.rollout("shop").Status.Targets).To(ContainElement(want), "while Flux tries again")
			s.Expect(s.Wire.Writes()).To(BeEmpty())
			if tt.comes {
				s.gitDeploys()
			} else {
				s.Pass(2 * time.Hour)
				s.rest("shop")
				s.Expect(s.rollout("shop").Current().BakeStatusMessage).To(HaveValue(ContainSubstring(missing)))
			}
			s.Expect(s.history("shop")[0].State).To(Equal(tt.want))
		})
	}
}

// A tag that is moved in Git is deployed by Flux, like one that is pushed again to a registry.
// The commit is not the digest of the release, which stays the same.
func TestTagThatIsMovedInGitIsSaid(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
	s.gitDeploys()
	before := s.rollout("shop").Current().Version
	s.gitHas("1.0.0@sha1:moved")
	s.fluxAppliesKustomizations()
	s.rest("shop")
	current := s.rollout("shop").Current()
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 2, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(current.Version).To(Equal(before))
	s.Expect(current.Message).To(HaveValue(ContainSubstring("tag 1.0.0 was pushed again, and GitRepository " + s.Namespace + "/shop has pulled it: it is sha1:moved now, and was sha1:")))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestTagOfARunningGitRepositoryIsAdopted(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop").FirstRelease(v1alpha1.FirstReleaseApplied), "1.0.0")...)
	s.gitHas(fixture.Commit("0.0.1"))
	s.fluxAppliesKustomizations()
	s.rest("shop")
	history := s.rollout("shop").Status.History
	first := history[len(history)-1].Version
	s.Expect(first.Tag).To(Equal("0.0.1"))
	s.Expect(first.Digest).To(BeNil(), "a commit is not the digest of an image")
}

func TestBranchThatRunsBeforeTheFirstPromotionIsSaid(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop").Environment("prod"), "1.0.0")...)
	s.Merge(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: s.Namespace}}, `{"spec":{"ref":{"tag":null,"branch":"main"}}}`)
	s.gitHas(fixture.Commit("main"))
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).To(Equal("GitRepository shop runs main, which was never promoted: " +
		"spec.ref.tag is not set, so Flux pulls a branch until the first promotion; to end this now, pin a release in spec.wantedVersion"))
}

func TestLostConsumerOfAGitRepositoryIsSaid(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
	s.gitDeploys()
	s.Remove(fixture.MakeKustomization("shop").Obj(), "shop")
	s.Events.Take()
	s.rest("shop")
	s.Expect(s.Events.Take()).To(ContainElement(HaveField("Reason", v1alpha1.ConsumerLostReason)))
	s.Expect(s.rollout("shop").Status.Targets).To(ConsistOf(HaveField("Reason", v1alpha1.TargetNoConsumer)))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Message).To(ContainSubstring("no Kustomization or HelmRelease in this namespace applies it"))
}

func TestControllerMayDieBetweenTheWritesOfAGitRepository(t *testing.T) {
	deploy := func(s *testEnv, tag string) {
		s.release("shop", tag)
		for range 20 {
			_, _ = s.try("shop")
			if s.Wire.Dead() {
				s.Wire = &fixture.Wire{}
				s.restart()
			}
			if now := s.git().Spec.Reference.Tag; now == tag {
				s.gitHas(fixture.Commit(now))
				s.fluxAppliesKustomizations()
			}
		}
	}
	for n := range 6 {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
			s.Wire.Fail = func(write int, _ string, _ client.Object) fixture.Fault {
				if write == n+1 {
					return fixture.Fault{Err: fixture.ErrDead, Lost: true, Fatal: true}
				}
				return fixture.Fault{}
			}
			deploy(s, "1.0.0")
			deploy(s, "1.1.0")
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
			s.Expect(s.git().Generation).To(BeEquivalentTo(3), "each release is written once")
		})
	}
}

func TestGitRepositoriesThatAreServedLaterAreWrittenWithoutARestart(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
	mgr, r := s.setUp(t, testPlane.RESTConfig(), s.Events, nil)
	s.Run(t, mgr)
	s.Consistently(func() string { return s.git().Spec.Reference.Tag }, time.Second).Should(Equal("0.0.1"))
	s.Expect(r.WatchGitRepositories(s.Ctx)).To(Succeed())
	s.Eventually(func() string { return s.git().Spec.Reference.Tag }).Should(Equal("1.0.0"))
	s.gitHas(fixture.Commit("1.0.0"))
	s.fluxAppliesKustomizations()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
}

func TestWhereGitRepositoriesMayNotBeReadNobodyAsksForThem(t *testing.T) {
	s := open(t, fromGit(fixture.MakeRollout("shop"), "1.0.0")...)
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				s.Expect(list).NotTo(BeAssignableToTypeOf(&sourcev1.GitRepositoryList{}))
				return c.List(ctx, list, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				s.Expect(o).NotTo(BeAssignableToTypeOf(&sourcev1.GitRepository{}))
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
	s.restart()
	s.reconciler.late.gitRepositories.Store(false)
	s.rest("shop")
	s.Expect(s.reconciler.concerned().rolloutsOfConsumer(s.Ctx, fixture.MakeKustomization("shop").From("GitRepository", "shop").Obj())).To(BeEmpty())
	s.Expect(s.rollout("shop").Status.Targets).To(BeEmpty())
}

func TestOnlyGitRepositoriesOfRolloutsWakeAnything(t *testing.T) {
	plain, written := fixture.MakeGitRepository("fleet").Obj(), fixture.MakeGitRepository("fleet").DrivenBy("shop").Obj()
	for name, tt := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"of no Rollout":      {plain, plain, false},
		"of one":             {written, written, true},
		"of one from now on": {plain, written, true},
		"of one until now":   {written, plain, true},
	} {
		NewWithT(t).Expect(writtenByRollout().Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after})).To(Equal(tt.want), name)
	}
	NewWithT(t).Expect(writtenByRollout().Create(event.CreateEvent{Object: plain})).To(BeFalse())
	NewWithT(t).Expect(writtenByRollout().Delete(event.DeleteEvent{Object: plain})).To(BeFalse())
}
