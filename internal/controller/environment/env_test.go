// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// testEnv is an env with a Reconciler that runs one step whenever the test requests it.
// The test writes the statuses of Rollouts.
type testEnv struct {
	*env.Env
	reconciler *Reconciler
}

func open(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := &testEnv{Env: env.Open(t, testClient, env.Kinds()...)}
	s.restart()
	s.Add(objects...)
	return s
}

// restart replaces the reconciler with one that remembers nothing.
func (s *testEnv) restart() {
	found := env.Indexes{}
	s.Expect(gather.Index(s.Ctx, found)).To(Succeed())
	s.Expect(gather.IndexEnvironments(s.Ctx, found)).To(Succeed())
	s.reconciler = &Reconciler{Client: s.Wire.Through(found.Cached(s.WithWatch)), Events: s.Events, Now: s.Clock.Now}
}

// play runs the controller, with the caches and watches of production.
func (s *testEnv) play(t *testing.T) {
	t.Helper()
	s.playShard(t, s.Events, nil)
}

// playShard runs the instance for the Rollouts that a selector selects.
func (s *testEnv) playShard(t *testing.T, events *fixture.Events, selector labels.Selector) {
	t.Helper()
	mgr := s.NewManager(testPlane.RESTConfig(), env.Scheme(), cache.Options(cache.Setting{Rollouts: selector}))
	own, err := shard.New(mgr, ctrlcache.New, selector, map[string]ctrlcache.Config{s.Namespace: {}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(gather.Index(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	s.Expect(gather.IndexEnvironments(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	r := &Reconciler{Client: mgr.GetClient(), Events: events, Now: s.Clock.Now, Shard: own}
	s.Expect(r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	s.Run(t, mgr)
}

// reconcile runs one step for each Environment and checks their conditions.
func (s *testEnv) reconcile(names ...string) {
	for _, name := range names {
		result, err := s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key(name)})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result).To(Equal(renewalOf(s.environment(name), s.Clock.Now())), "only the confirmation of a release depends on time")
		s.CheckConditions(s.environment(name))
	}
}

// renewalOf returns when the next pass must be because the current release is to be
// confirmed.
func renewalOf(e *environmentsv1.Environment, now time.Time) ctrl.Result {
	if due := environment.RenewalAt(e.Status.Releases); due.After(now) {
		return ctrl.Result{RequeueAfter: due.Sub(now)}
	}
	return ctrl.Result{}
}

func (s *testEnv) environment(name string) *environmentsv1.Environment {
	return s.in(s.Namespace, name)
}

func (s *testEnv) in(namespace, name string) *environmentsv1.Environment {
	e := &environmentsv1.Environment{}
	s.Expect(s.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, e)).To(Succeed())
	return e
}

// promotes replaces the history of a Rollout, newest first.
func (s *testEnv) promotes(rollout string, entries ...*fixture.EntryBuilder) {
	s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: rollout}}, func(o client.Object) {
		status := &o.(*v1alpha1.Rollout).Status
		status.History = nil
		for i, entry := range entries {
			status.History = append(status.History, entry.ID(int64(len(entries)-i)).Obj())
		}
	})
}

// condition is the part of a condition that tests compare.
type condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func (s *testEnv) ready(name string) condition {
	found := apimeta.FindStatusCondition(s.environment(name).Status.Conditions, v1alpha1.ReadyCondition)
	s.Expect(found).NotTo(BeNil())
	s.Expect(found.ObservedGeneration).To(Equal(s.environment(name).Generation))
	return condition{found.Status, found.Reason, found.Message}
}

// reason returns a function that reads the reason of Ready; empty before the first pass.
func (s *testEnv) reason(name string) func() string {
	return func() string { return environment.ReadyReason(s.environment(name)) }
}

// stalled reports whether a user must act.
func (s *testEnv) stalled(name string) bool {
	return apimeta.IsStatusConditionTrue(s.environment(name).Status.Conditions, v1alpha1.StalledCondition)
}

// writes returns the writes of the controller since the last call.
func (s *testEnv) writes() []string {
	all := slices.Clone(s.Wire.Writes())
	s.Wire.Forget()
	return all
}

func release(tag string) v1alpha1.VersionInfo {
	return fixture.MakeRelease(tag).Digest("sha256:" + tag).Obj()
}

func entry(tag string) *fixture.EntryBuilder {
	return fixture.MakeEntry(tag).Version(release(tag)).At(fixture.Noon)
}

func baked(tag string) *fixture.EntryBuilder {
	return entry(tag).Succeeded().ProvenBy(1, 1).BakeStart(fixture.Noon).BakeEnd(fixture.Noon.Add(time.Hour))
}
