// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// testEnv is an env with a Reconciler that runs one step whenever the test requests it.
// The test acts as users and as Flux.
type testEnv struct {
	*env.Env

	notifications *fixture.Notifications

	reconciler *Reconciler
	reads      func(client.WithWatch) client.WithWatch
	lawless    bool

	// quarantines makes the controller obey quarantines and report to them.
	quarantines bool

	// artifacts makes the controller follow ExternalArtifacts.
	artifacts bool

	// pushedAgain maps tags that were pushed again to their new digest.
	pushedAgain map[string]string

	// unread knows which objects cannot be read, once the controller runs.
	unread *unreadable.Objects

	// asksRegistries makes the controller read metadata when it is played.
	asksRegistries bool
	answers        *atomic.Int64 // of registries
}

// open opens an env in parallel with those of other tests. A test that touches shared
// objects, such as cluster-scoped ones, uses openAlone.
func open(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	env.Parallel(t)
	return openAlone(t, objects...)
}

// openAlone creates the objects, with their status if they have one.
func openAlone(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := &testEnv{Env: env.Open(t, testClient, env.Kinds()...), answers: &atomic.Int64{}, notifications: &fixture.Notifications{}}
	s.restart()
	s.Add(objects...)
	return s
}

// restart replaces the reconciler with one that remembers nothing.
func (s *testEnv) restart() {
	cached := s.Wire.Through(s.indexes().Cached(s.WithWatch))
	if s.reads != nil {
		cached = s.reads(cached)
	}
	s.reconciler = &Reconciler{
		Client: cached, APIReader: s.WithWatch, Events: s.Events, Now: s.Clock.Now, Notifications: s.notifications, Instance: "test",
		Identity: identity.Trusted,
	}
	s.reconciler.late.helmReleases.Store(true)
	s.reconciler.late.gitRepositories.Store(true)
	s.reconciler.late.artifacts.Store(s.artifacts)
	s.reconciler.late.environments.Store(true)
	s.reconciler.late.quarantines.Store(s.quarantines)
	s.reconciler.late.approvals.Store(true)
}

// indexes returns the indexes of the caches.
func (s *testEnv) indexes() env.Indexes {
	found := env.Indexes{}
	s.Expect(index(s.Ctx, found)).To(Succeed())
	s.Expect(targets.IndexHelmReleases(s.Ctx, found)).To(Succeed())
	s.Expect(targets.IndexGitRepositories(s.Ctx, found)).To(Succeed())
	s.Expect(targets.IndexArtifacts(s.Ctx, found)).To(Succeed())
	s.Expect(schedule.IndexGatesByOwner(s.Ctx, found)).To(Succeed())
	s.Expect(gather.IndexEnvironments(s.Ctx, found)).To(Succeed())
	s.Expect(gather.IndexApprovals(s.Ctx, found)).To(Succeed())
	return found
}

func (s *testEnv) rollout(name string) *v1alpha1.Rollout {
	rollout := &v1alpha1.Rollout{}
	s.Expect(s.Get(s.Ctx, s.Key(name), rollout)).To(Succeed())
	return rollout
}

// reconcile runs one step and checks that the result obeys the law.
func (s *testEnv) reconcile(name string) ctrl.Result {
	result, err := s.try(name)
	s.Expect(err).NotTo(HaveOccurred())
	return result
}

// try runs one step that may fail.
func (s *testEnv) try(name string) (ctrl.Result, error) {
	result, err := s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key(name)})
	if !s.Wire.Dead() && !s.lawless {
		s.obeysLaw(name)
	}
	return result, err
}

// obeysLaw checks that the conditions are what Flux and kstatus expect, with one
// documented exception: during a running promotion, after a user has marked it as successful,
// and while a choice waits for approvals, Ready stays True while Reconciling is True.
func (s *testEnv) obeysLaw(name string) {
	stored, err := s.stored(name)
	if err != nil {
		s.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return
	}
	rollout := &v1alpha1.Rollout{}
	s.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, rollout)).To(Succeed())
	if rollout.Spec.Suspend || len(rollout.Status.Conditions) == 0 {
		return
	}
	ready := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.ReadyCondition)
	s.Expect(ready).NotTo(BeNil())
	condition := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.ReconcilingCondition)
	reconciling := condition != nil
	awaits := reconciling && (verdict.IsOfApprovals(condition.Reason) || condition.Reason == v1alpha1.DigestUnknownReason)
	calm := awaits || rollout.Current().State().Running() || ready.Reason == v1alpha1.DeploymentMarkedSuccessfulReason
	if calm && reconciling && ready.Status == metav1.ConditionTrue {
		ready.Status = metav1.ConditionFalse
	}
	s.CheckConditions(rollout)
	s.Expect(s.Kstatus(stored)).To(Equal(expectedKstatus(rollout)))
}

func expectedKstatus(rollout *v1alpha1.Rollout) status.Status {
	stalled := apimeta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.StalledCondition)
	reconciling := apimeta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.ReconcilingCondition)
	switch {
	case stalled, rollout.Current().State() == v1alpha1.BakeFailed:
		return status.FailedStatus
	case reconciling, rollout.Current().State().Running(), rollout.Current() == nil:
		return status.InProgressStatus
	}
	return status.CurrentStatus
}

func (s *testEnv) kstatus(name string) status.Status {
	stored, err := s.stored(name)
	s.Expect(err).NotTo(HaveOccurred())
	return s.Kstatus(stored)
}

// stored returns a Rollout as clients without its type see it.
func (s *testEnv) stored(name string) (*unstructured.Unstructured, error) {
	return s.Stored(v1alpha1.RolloutKind, s.Key(name))
}

// rest reconciles until a step writes nothing and requests no other.
func (s *testEnv) rest(name string) {
	for range 20 {
		before := len(s.Wire.Writes())
		result := s.reconcile(name)
		if len(s.Wire.Writes()) == before && result.RequeueAfter != recheck.AfterConflict {
			return
		}
	}
	s.Expect(errors.New("20 steps brought no rest")).NotTo(HaveOccurred(), "writes: %v", s.Wire.Writes())
}

// deploy lets Flux and the writers of the HealthChecks work until the Rollout rests.
func (s *testEnv) deploy(name string) {
	s.rest(name)
	s.fluxApplies()
	s.rest(name)
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest(name)
}

// release makes the ImagePolicy name another release, which a scan has found.
func (s *testEnv) release(policy, tag string) {
	scan := &imagev1.ImageRepository{}
	if s.Get(s.Ctx, s.Key(policy), scan) == nil && scan.Status.LastScanResult != nil {
		if found := scan.Status.LastScanResult; !slices.Contains(found.LatestTags, tag) {
			found.LatestTags, found.TagCount = append([]string{tag}, found.LatestTags...), found.TagCount+1
			s.Expect(s.Status().Update(s.Ctx, scan)).To(Succeed())
		}
	}
	s.ChangeStatus(fixture.MakePolicy(policy).Obj(), func(o client.Object) { setLatest(o, tag) })
}

// pin sets spec.wantedVersion; nil removes it.
func (s *testEnv) pin(name string, tag *string) {
	s.Change(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.WantedVersion = tag
	})
}

// condition is the part of a condition that tests compare.
type condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func (s *testEnv) condition(name, kind string) condition {
	found := apimeta.FindStatusCondition(s.rollout(name).Status.Conditions, kind)
	if found == nil {
		return condition{}
	}
	return condition{Status: found.Status, Reason: found.Reason, Message: found.Message}
}

// promoted is the part of a history entry that tests compare.
type promoted struct {
	ID    int64
	Tag   string
	State v1alpha1.BakeStatus
}

// candidates returns the candidates, newest first.
func (s *testEnv) candidates(name string) []v1alpha1.VersionInfo {
	var all []v1alpha1.VersionInfo
	for _, candidate := range s.rollout(name).Status.ReleaseCandidates {
		all = append(all, candidate.VersionInfo)
	}
	return all
}

func (s *testEnv) history(name string) []promoted {
	var all []promoted
	for _, entry := range s.rollout(name).Status.History {
		r := promoted{Tag: entry.Version.Tag, State: entry.State()}
		if entry.ID != nil {
			r.ID = *entry.ID
		}
		all = append(all, r)
	}
	return all
}
