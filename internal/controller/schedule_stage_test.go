// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// clockwork is a schedule on a stage, with the reconciler of its kind.
type clockwork struct {
	*stage
	reconciler *ScheduleReconciler
	object     client.Object
}

// follow adds a schedule to the stage. A cluster-scoped one is named after the stage and
// removed in the end.
func (s *stage) follow(t *testing.T, o client.Object) *clockwork {
	t.Helper()
	if o.GetNamespace() == "" {
		o.SetName(o.GetName() + "-" + s.namespace)
		t.Cleanup(func() { _ = client.IgnoreNotFound(testClient.Delete(context.WithoutCancel(s.ctx), o)) })
	}
	s.add(o)
	c := &clockwork{stage: s, object: o}
	c.restart()
	return c
}

// restart replaces the reconciler with one that remembers nothing.
func (c *clockwork) restart() {
	_, cluster := c.object.(*v1alpha1.ClusterRolloutSchedule)
	c.reconciler = &ScheduleReconciler{Client: c.stage.reconciler.Client, Events: c.events, Now: c.clock.Now, Cluster: cluster}
}

// tick runs one step and checks that the conditions obey the law.
func (c *clockwork) tick() ctrl.Result {
	result, err := c.tryTick()
	c.Expect(err).NotTo(HaveOccurred())
	return result
}

func (c *clockwork) tryTick() (ctrl.Result, error) {
	result, err := c.reconciler.Reconcile(c.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.object)})
	now := c.read()
	if !now.GetDeletionTimestamp().IsZero() {
		return result, err
	}
	law := check.NewChecker(c, &check.Conditions{NegativePolarity: []string{v1alpha1.StalledCondition, v1alpha1.ReconcilingCondition}})
	law.DisableFetch = true
	fail, _ := law.Check(c.ctx, now.Object.(conditions.Setter))
	c.Expect(fail).NotTo(HaveOccurred(), "the conditions are %+v", now.status.Conditions)
	return result, err
}

// read returns the schedule as it is now.
func (c *clockwork) read() scheduleObject {
	o := c.object.DeepCopyObject().(client.Object)
	c.Expect(c.Get(c.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return scheduleObjectOf(o)
}

// edit changes the schedule as a user does.
func (c *clockwork) edit(change func(scheduleObject)) {
	t := c.read()
	change(t)
	c.Expect(c.Update(c.ctx, t.Object)).To(Succeed())
}

func (c *clockwork) ready() condition {
	found := apimeta.FindStatusCondition(c.read().status.Conditions, v1alpha1.ReadyCondition)
	c.Expect(found).NotTo(BeNil())
	c.Expect(found.ObservedGeneration).To(Equal(c.read().GetGeneration()))
	return condition{found.Status, found.Reason, found.Message}
}

func (c *clockwork) kstatus() status.Status {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(c.read().kind))
	c.Expect(c.Get(c.ctx, client.ObjectKeyFromObject(c.object), o)).To(Succeed())
	computed, err := status.Compute(o)
	c.Expect(err).NotTo(HaveOccurred())
	return computed.Status
}

// gates returns the gates of the stage's namespace, sorted by Rollout and name.
func (s *stage) gates() []v1alpha1.RolloutGate { return s.gatesIn(s.namespace) }

func (s *stage) gatesIn(namespace string) []v1alpha1.RolloutGate {
	list := &v1alpha1.RolloutGateList{}
	s.Expect(s.List(s.ctx, list, client.InNamespace(namespace))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b v1alpha1.RolloutGate) int {
		return strings.Compare(a.RolloutName()+" "+a.Name, b.RolloutName()+" "+b.Name)
	})
	return list.Items
}

// passing returns for each Rollout with a gate whether the gate passes, as in "shop
// open".
func (s *stage) passing() []string {
	var all []string
	for _, gate := range s.gates() {
		state := " closed"
		if gate.IsPassing() {
			state = " open"
		}
		all = append(all, gate.RolloutName()+state)
	}
	return all
}

// gate returns the only gate.
func (s *stage) gate() *v1alpha1.RolloutGate {
	gates := s.gates()
	s.Expect(gates).To(HaveLen(1))
	return &gates[0]
}

func (s *stage) relabel(rollout string, labels map[string]string) {
	s.change(fixture.MakeRollout(rollout).Obj(), func(o client.Object) { o.SetLabels(labels) })
}

// labelNamespace sets a label of the stage's namespace; empty removes it.
func (s *stage) labelNamespace(key, value string) {
	namespace := &corev1.Namespace{}
	s.Expect(s.Get(s.ctx, client.ObjectKey{Name: s.namespace}, namespace)).To(Succeed())
	namespace.Labels[key] = value
	if value == "" {
		delete(namespace.Labels, key)
	}
	s.Expect(s.Update(s.ctx, namespace)).To(Succeed())
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
