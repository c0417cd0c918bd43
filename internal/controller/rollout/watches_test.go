// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/controller/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// play runs the whole controller in the env, as some user, with the caches and watches
// of production. The returned function stops it.
func (s *testEnv) play(t *testing.T, user *rest.Config) (stop func()) {
	t.Helper()
	return s.playShard(t, user, s.Events, nil)
}

// playShard runs the shard of a selector, with its own events.
func (s *testEnv) playShard(t *testing.T, user *rest.Config, events *fixture.Events, selector labels.Selector) (stop func()) {
	t.Helper()
	mgr, rollouts := s.setUp(t, user, events, selector)
	s.Expect(rollouts.WatchHelmReleases(s.Ctx)).To(Succeed())
	return s.Run(t, mgr)
}

// setUp prepares a complete shard, except HelmReleases.
func (s *testEnv) setUp(t *testing.T, user *rest.Config, events *fixture.Events, selector labels.Selector) (ctrl.Manager, *Reconciler) {
	t.Helper()
	s.unread = &unreadable.Objects{Report: announce.Unreadable(s.Log.Logger(), events)}
	mgr := s.NewManager(user, env.Scheme(), cache.Options(cache.Setting{Rollouts: selector}), func(o *ctrl.Options) {
		o.NewCache, o.NewClient = fieldindex.NewCache(s.unread.NewCache), unreadable.NewClient
	})
	s.Expect(mgr.Add(s.unread)).To(Succeed())
	shard, err := shard.New(mgr, s.unread.NewCache, selector, map[string]ctrlcache.Config{s.Namespace: {}})
	s.Expect(err).NotTo(HaveOccurred())
	past := s.Live(mgr, cache.Options(cache.Setting{}))
	r := &Reconciler{Client: mgr.GetClient(), APIReader: past.Keeping(Kept()), Objects: past.Objects, Events: events, Now: s.Clock.Now, Shard: shard}
	if s.asksRegistries {
		registries, err := registry.NewReader(mgr.GetClient(), past, loopback.Guard())
		s.Expect(err).NotTo(HaveOccurred())
		r.Metadata = imageinfo.New(s.counted(registries.Read), registries.List, logr.Discard())
	}
	s.Expect(r.SetupWithManager(s.Ctx, mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	s.Expect(gather.IndexEnvironments(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	s.Expect(r.WatchEnvironments()).To(Succeed())
	if s.quarantines {
		s.setUpQuarantines(mgr, r, shard)
	}
	s.Expect(schedule.IndexGatesByOwner(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	for _, cluster := range []bool{false, true} {
		r := &schedule.Reconciler{Client: mgr.GetClient(), Events: events, Now: s.Clock.Now, Cluster: cluster, Shard: shard}
		s.Expect(r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	}
	return mgr, r
}

// comesTo waits until the history contains an entry and checks that the law is obeyed.
func (s *testEnv) comesTo(name string, want promoted) {
	s.Eventually(func() []promoted { return s.history(name) }).Should(ContainElement(want))
	s.obeysLaw(name)
}

func TestEachInputWakesTheRolloutThatItConcerns(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.play(t, testPlane.RESTConfig())

	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Eventually(func() []string { return marks(s.check("web")) }).Should(HaveLen(1), "what Flux applied wakes it")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeInProgress})
	s.checkFails("web", "broken", fixture.Noon)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeFailed})

	s.pinTo("1.1.0")
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.1.0"))
	s.changeTag("0.0.9")
	s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.1.0"))
}

func TestGatesPoliciesAndLateTargetsWakeTheRollout(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})

	s.Add(fixture.MakeGate("approval", "shop").Closed().Obj())
	s.Eventually(func() []v1alpha1.RolloutGateStatusSummary { return s.rollout("shop").Status.Gates }).Should(HaveLen(1))
	s.release("shop", "1.1.0")
	s.Eventually(func() condition { return s.condition("shop", v1alpha1.GatesPassingCondition) }).Should(
		HaveField("Reason", v1alpha1.SomeGatesBlockingReason))
	s.Remove(&v1alpha1.RolloutGate{}, "approval")
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})

	s.Add(fixture.MakeRepository("late").DrivenBy("shop").Obj())
	s.Eventually(func() string { return s.carried("late")["tag"] }).Should(Equal("1.1.0"))
}

func TestSettledControllerWritesNothingUntilSomethingHappens(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	requests := &fixture.Requests{}
	user := testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	s.play(t, user)
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})

	s.Expect(requests.Count("PATCH")).To(Equal(4), "two of the status, one of each target")
	all := requests.Count("")
	s.Consistently(func() int { return requests.Count("") }, time.Second).Should(Equal(all))
}

func TestControllerThatIsReplacedMidwayFinishesTheJob(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	stop := s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
	stop()
	s.play(t, testPlane.RESTConfig())
	s.Eventually(func() string { return s.carried("shop")["tag"] + s.carried("shop")["VERSION"] }).Should(Equal("1.0.01.0.0"))
	s.fluxApplies()
	s.Eventually(func() []promoted { return s.history("shop") }).Should(Equal(
		[]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestMissingPermissionOnATargetIsShownAndRecovers(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + name}, Rules: rules}
		s.Expect(s.Create(s.Ctx, role)).To(Succeed())
		s.Expect(s.Create(s.Ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.Namespace}},
		})).To(Succeed())
	}
	grant("reads", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"kuberik.com"}, Resources: []string{"*"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"*"}, Verbs: []string{"patch"}})
	user, err := testPlane.RESTConfigFor(s.Namespace)
	s.Expect(err).NotTo(HaveOccurred())
	s.play(t, user)

	s.Eventually(func() condition { return s.condition("shop", v1alpha1.TargetsAppliedCondition) }).Should(And(
		HaveField("Reason", v1alpha1.TargetFailedReason), HaveField("Message", ContainSubstring("is forbidden"))))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "TIER": "gold"}))

	grant("writes", rbacv1.PolicyRule{
		APIGroups: []string{kustomizev1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"patch"}})
	s.Eventually(func() string { return s.carried("shop")["VERSION"] }).Should(Equal("1.0.0"))
	s.fluxApplies()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
}

func TestFixedAnnotationReachesTheRolloutAtOnce(t *testing.T) {
	s := open(t, fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeRollout("shop").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shpo").Obj())
	s.play(t, testPlane.RESTConfig())
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded})
	s.Change(fixture.MakeRepository("shop").Obj(), func(o client.Object) {
		o.SetAnnotations(map[string]string{v1alpha1.RolloutAnnotation: "shop"})
	})
	s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.0.0"))
}
