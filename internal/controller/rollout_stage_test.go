// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// stage is a separate namespace on a real API server. Its reconciler runs one step
// whenever the test requests it. The test plays users and Flux, through the embedded
// client.
type stage struct {
	*WithT
	client.WithWatch

	ctx       context.Context
	namespace string
	opened    []string // namespaces
	clock     *fixture.Clock
	events    *fixture.Events
	wire      *fixture.Wire
	log       *fixture.Log

	notifications *fixture.Notifications

	reconciler *RolloutReconciler
	reads      func(client.WithWatch) client.WithWatch
	lawless    bool

	// pushedAgain maps tags that were pushed again to their new digest.
	pushedAgain map[string]string

	// unread knows which objects cannot be read, once the controller runs.
	unread *unreadable.Objects

	// asksRegistries makes the controller read metadata when it is played.
	asksRegistries bool
	answers        *atomic.Int64 // of registries
}

// beside contains the tests that run in parallel.
var beside sync.Map

// openStage opens a stage in parallel with those of other tests. A test that touches
// shared objects, such as cluster-scoped ones, uses openStageAlone.
func openStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	if _, already := beside.LoadOrStore(t, true); !already {
		t.Parallel()
	}
	return openStageAlone(t, objects...)
}

// openStageAlone creates the objects, with their status if they have one. In the end it
// removes everything, to spare other tests the search through it.
func openStageAlone(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	s := &stage{
		WithT: NewWithT(t), WithWatch: testClient, ctx: t.Context(),
		clock: &fixture.Clock{}, events: &fixture.Events{}, wire: &fixture.Wire{}, log: &fixture.Log{}, answers: &atomic.Int64{},
		notifications: &fixture.Notifications{},
	}
	t.Cleanup(s.clear)
	s.namespace = s.openNamespace(nil)
	s.restart()
	s.add(objects...)
	return s
}

func (s *stage) openNamespace(labels map[string]string) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stage-", Labels: labels}}
	s.Expect(s.Create(s.ctx, namespace)).To(Succeed())
	s.opened = append(s.opened, namespace.Name)
	return namespace.Name
}

// clear removes the objects of the namespaces that the stage has opened. For a thousand
// objects that may take longer than one request may.
func (s *stage) clear() {
	ctx := context.WithoutCancel(s.ctx)
	for _, namespace := range s.opened {
		for _, kind := range []client.Object{
			&v1alpha1.Rollout{}, &v1alpha1.RolloutGate{}, &v1alpha1.RolloutSchedule{}, &v1alpha1.HealthCheck{},
			&imagev1.ImageRepository{}, &imagev1.ImagePolicy{}, &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{},
			&helmv2.HelmRelease{},
		} {
			s.Eventually(func() error { return testClient.DeleteAllOf(ctx, kind, client.InNamespace(namespace)) }).Should(Succeed())
		}
	}
}

// restart replaces the reconciler with one that remembers nothing.
func (s *stage) restart() {
	found := indexes{}
	s.Expect(index(s.ctx, found)).To(Succeed())
	s.Expect(targets.IndexHelmReleases(s.ctx, found)).To(Succeed())
	s.Expect(IndexGatesByOwner(s.ctx, found)).To(Succeed())
	cached := s.wire.Through(found.cached(s.WithWatch))
	if s.reads != nil {
		cached = s.reads(cached)
	}
	s.reconciler = &RolloutReconciler{
		Client: cached, APIReader: s.WithWatch, Events: s.events, Now: s.clock.Now, Notifications: s.notifications, Instance: "stage",
	}
	s.reconciler.helm.cached.Store(true)
}

// add creates objects, those of the fixtures in the namespace of the stage.
func (s *stage) add(objects ...client.Object) {
	for _, o := range objects {
		if o.GetNamespace() == fixture.Namespace {
			o.SetNamespace(s.namespace)
		}
		stated := o.DeepCopyObject().(client.Object)
		s.Expect(s.Create(s.ctx, o)).To(Succeed())
		stated.SetResourceVersion(o.GetResourceVersion())
		stated.SetUID(o.GetUID())
		if err := s.Status().Update(s.ctx, stated); err != nil {
			s.Expect(client.IgnoreNotFound(err)).To(Succeed(), "the status of %s", o.GetName())
		}
	}
}

func (s *stage) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

func (s *stage) rollout(name string) *v1alpha1.Rollout {
	rollout := &v1alpha1.Rollout{}
	s.Expect(s.Get(s.ctx, s.key(name), rollout)).To(Succeed())
	return rollout
}

// reconcile runs one step and checks that the result obeys the law.
func (s *stage) reconcile(name string) ctrl.Result {
	result, err := s.try(name)
	s.Expect(err).NotTo(HaveOccurred())
	return result
}

// try runs one step that may fail.
func (s *stage) try(name string) (ctrl.Result, error) {
	result, err := s.reconciler.Reconcile(s.ctx, ctrl.Request{NamespacedName: s.key(name)})
	if !s.wire.Dead() && !s.lawless {
		s.obeysLaw(name)
	}
	return result, err
}

// obeysLaw checks that the conditions are what Flux and kstatus expect, with one
// documented exception: during a running promotion, and after a user has marked it as
// successful, Ready stays True while Reconciling is True.
func (s *stage) obeysLaw(name string) {
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
	reconciling := apimeta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.ReconcilingCondition)
	calm := rollout.Current().State().Running() || ready.Reason == v1alpha1.DeploymentMarkedSuccessfulReason
	if calm && reconciling && ready.Status == metav1.ConditionTrue {
		ready.Status = metav1.ConditionFalse
	}
	law := check.NewChecker(s, &check.Conditions{
		NegativePolarity: []string{v1alpha1.StalledCondition, v1alpha1.ReconcilingCondition},
	})
	law.DisableFetch = true
	fail, _ := law.Check(s.ctx, rollout)
	s.Expect(fail).NotTo(HaveOccurred(), "the conditions are %+v", rollout.Status.Conditions)
	s.Expect(s.kstatusOf(stored)).To(Equal(expectedKstatus(rollout)))
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

func (s *stage) kstatus(name string) status.Status {
	stored, err := s.stored(name)
	s.Expect(err).NotTo(HaveOccurred())
	return s.kstatusOf(stored)
}

func (s *stage) kstatusOf(stored *unstructured.Unstructured) status.Status {
	computed, err := status.Compute(stored)
	s.Expect(err).NotTo(HaveOccurred())
	return computed.Status
}

// stored returns a Rollout as clients without its type see it.
func (s *stage) stored(name string) (*unstructured.Unstructured, error) {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	return stored, s.Get(s.ctx, s.key(name), stored)
}

// rest reconciles until a step writes nothing and requests no other.
func (s *stage) rest(name string) {
	for range 20 {
		before := len(s.wire.Writes())
		result := s.reconcile(name)
		if len(s.wire.Writes()) == before && result.RequeueAfter != recheck.AfterConflict {
			return
		}
	}
	s.Expect(errors.New("20 steps brought no rest")).NotTo(HaveOccurred(), "writes: %v", s.wire.Writes())
}

// deploy lets Flux and the writers of the HealthChecks work until the Rollout rests.
func (s *stage) deploy(name string) {
	s.rest(name)
	s.fluxApplies()
	s.rest(name)
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest(name)
}

// pass moves the clock forward.
func (s *stage) pass(d time.Duration) { s.clock.Pass(d) }

// release makes the ImagePolicy name another release, which a scan has found.
func (s *stage) release(policy, tag string) {
	scan := &imagev1.ImageRepository{}
	if s.Get(s.ctx, s.key(policy), scan) == nil && scan.Status.LastScanResult != nil {
		if found := scan.Status.LastScanResult; !slices.Contains(found.LatestTags, tag) {
			found.LatestTags, found.TagCount = append([]string{tag}, found.LatestTags...), found.TagCount+1
			s.Expect(s.Status().Update(s.ctx, scan)).To(Succeed())
		}
	}
	s.changeStatus(fixture.MakePolicy(policy).Obj(), func(o client.Object) { setLatest(o, tag) })
}

// change edits an object as a user does.
func (s *stage) change(o client.Object, edit func(client.Object)) {
	s.Expect(s.Get(s.ctx, s.key(o.GetName()), o)).To(Succeed())
	edit(o)
	s.Expect(s.Update(s.ctx, o)).To(Succeed())
}

// changeStatus edits the status of an object as its controller does.
func (s *stage) changeStatus(o client.Object, edit func(client.Object)) {
	s.Expect(s.Get(s.ctx, s.key(o.GetName()), o)).To(Succeed())
	edit(o)
	s.Expect(s.Status().Update(s.ctx, o)).To(Succeed())
}

// pin sets spec.wantedVersion; nil removes it.
func (s *stage) pin(name string, tag *string) {
	s.change(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.WantedVersion = tag
	})
}

// condition is the part of a condition that tests compare.
type condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func (s *stage) condition(name, kind string) condition {
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
func (s *stage) candidates(name string) []v1alpha1.VersionInfo {
	var all []v1alpha1.VersionInfo
	for _, candidate := range s.rollout(name).Status.ReleaseCandidates {
		all = append(all, candidate.VersionInfo)
	}
	return all
}

func (s *stage) history(name string) []promoted {
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
