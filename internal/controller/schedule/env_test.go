// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

// testEnv is an env in which schedules are followed. Rollouts in it are only selected.
type testEnv struct {
	*env.Env

	cached client.WithWatch
}

// open creates the objects, with their status if they have one.
func open(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := &testEnv{Env: env.Open(t, testClient, env.Kinds()...)}
	found := env.Indexes{}
	s.Expect(IndexGatesByOwner(s.Ctx, found)).To(Succeed())
	s.cached = s.Wire.Through(found.Cached(s.WithWatch))
	s.Add(objects...)
	return s
}

// play runs the controllers of both kinds as some user, with the caches and watches of
// production.
func (s *testEnv) play(t *testing.T, user *rest.Config, now func() time.Time) {
	t.Helper()
	mgr := s.NewManager(user, env.Scheme(), cache.Options(cache.Setting{}))
	s.Expect(IndexGatesByOwner(s.Ctx, mgr.GetFieldIndexer())).To(Succeed())
	for _, cluster := range []bool{false, true} {
		r := &Reconciler{Client: mgr.GetClient(), Events: s.Events, Now: now, Cluster: cluster}
		s.Expect(r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	}
	s.Run(t, mgr)
}

// followed is a schedule in an env, with a Reconciler of its kind that runs one step
// whenever the test requests it.
type followed struct {
	*testEnv
	reconciler *Reconciler
	object     client.Object
}

// follow adds a schedule.
func (s *testEnv) follow(t *testing.T, o client.Object) *followed {
	t.Helper()
	c := &followed{testEnv: s, object: s.AddSchedule(t, o)}
	c.restart()
	return c
}

// restart replaces the reconciler with one that remembers nothing.
func (c *followed) restart() {
	_, cluster := c.object.(*v1alpha1.ClusterRolloutSchedule)
	c.reconciler = &Reconciler{Client: c.cached, Events: c.Events, Now: c.Clock.Now, Cluster: cluster}
}

// tick runs one step and checks the conditions.
func (c *followed) tick() ctrl.Result {
	result, err := c.tryTick()
	c.Expect(err).NotTo(HaveOccurred())
	return result
}

func (c *followed) tryTick() (ctrl.Result, error) {
	result, err := c.reconciler.Reconcile(c.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.object)})
	if now := c.read(); now.GetDeletionTimestamp().IsZero() {
		c.CheckConditions(now.Object.(conditions.Setter))
	}
	return result, err
}

// read returns the schedule as it is now.
func (c *followed) read() gather.Schedule { return c.Schedule(c.object) }

// edit changes the schedule as a user does.
func (c *followed) edit(change func(gather.Schedule)) { c.EditSchedule(c.object, change) }

// condition is the part of a condition that tests compare.
type condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func (c *followed) ready() condition {
	found := apimeta.FindStatusCondition(c.read().Status.Conditions, v1alpha1.ReadyCondition)
	c.Expect(found).NotTo(BeNil())
	c.Expect(found.ObservedGeneration).To(Equal(c.read().GetGeneration()))
	return condition{found.Status, found.Reason, found.Message}
}

func (c *followed) kstatus() status.Status {
	stored, err := c.Stored(c.read().Kind, client.ObjectKeyFromObject(c.object))
	c.Expect(err).NotTo(HaveOccurred())
	return c.Kstatus(stored)
}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// withoutGates is a cache that has not seen any gate yet.
type withoutGates struct{ client.Client }

func (c withoutGates) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.RolloutGateList); ok {
		return nil
	}
	return c.Client.List(ctx, list, opts...)
}

func (c withoutGates) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*v1alpha1.RolloutGate); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "rolloutgates"}, key.Name)
	}
	return c.Client.Get(ctx, key, o, opts...)
}
