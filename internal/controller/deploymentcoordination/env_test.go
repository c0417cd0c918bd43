// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// testEnv is an env on an API server without a Deployment controller. Its reconciler does
// one step whenever the test calls it. The test acts as the users and as Kubernetes.
type testEnv struct {
	*env.Env

	reconciler *Reconciler
	// alone is true if no other test runs at the same time.
	alone bool
}

// open opens an env in parallel with those of other tests. A test that changes what they
// share, such as a CRD, uses openAlone.
func open(t *testing.T) *testEnv {
	t.Helper()
	env.Parallel(t)
	s := openAlone(t)
	s.alone = false
	return s
}

func openAlone(t *testing.T) *testEnv {
	t.Helper()
	_, live := barePlane.open(t)
	s := &testEnv{Env: env.Open(t, live), alone: true}
	s.restart()
	return s
}

// restart replaces the reconciler by one without any memory.
func (s *testEnv) restart() {
	s.reconciler = s.another(s.Events)
}

// another returns a second reconciler next to the first.
func (s *testEnv) another(events *fixture.Events) *Reconciler {
	return &Reconciler{Client: s.Wire.Through(s.WithWatch), APIReader: s.WithWatch, Events: events, Now: s.Clock.Now}
}

// coordinate creates a coordination of the Deployments that have its name as a label.
func (s *testEnv) coordinate(name string, edits ...func(*coordinationv1.DeploymentCoordination)) {
	s.Expect(s.Create(s.Ctx, coordination(s.Namespace, name, edits...))).To(Succeed())
}

func coordination(namespace, name string, edits ...func(*coordinationv1.DeploymentCoordination)) *coordinationv1.DeploymentCoordination {
	c := &coordinationv1.DeploymentCoordination{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.LabelSelector.MatchLabels = map[string]string{name: "yes"}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func minReady(seconds int32) func(*coordinationv1.DeploymentCoordination) {
	return func(c *coordinationv1.DeploymentCoordination) { c.Spec.MinReadySeconds = seconds }
}

func resume(c *coordinationv1.DeploymentCoordination) { c.Spec.IdlePolicy = coordinationv1.IdleResume }

func atATime(most intstr.IntOrString) func(*coordinationv1.DeploymentCoordination) {
	return func(c *coordinationv1.DeploymentCoordination) { c.Spec.MaxConcurrent = &most }
}

// deployment returns a Deployment of the shop with one replica and an image of version 1.
func deployment(namespace, name string, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	one := int32(1)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"shop": "yes"}}}
	d.Spec.Replicas = &one
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = map[string]string{"app": name}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "shop", Image: image("1")}}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func image(version string) string { return "example.com/shop:" + version }

func version(to string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image(to) }
}

func replicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func paused(is bool) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Paused = is }
}

func labelled(labels ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Labels = map[string]string{}
		for _, label := range labels {
			d.Labels[label] = "yes"
		}
	}
}

func annotated(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
		if value == "" {
			delete(d.Annotations, key)
		}
	}
}

func userHeld(is bool) func(*appsv1.Deployment) {
	value := ""
	if is {
		value = coordinationv1.RolloutPausedValue
	}
	return annotated(coordinationv1.RolloutPausedAnnotation, value)
}

func deadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

// deploy creates a Deployment that is not rolled out.
func (s *testEnv) deploy(name string, edits ...func(*appsv1.Deployment)) {
	s.Expect(s.Create(s.Ctx, deployment(s.Namespace, name, edits...))).To(Succeed())
}

// deployed creates a Deployment that is rolled out and paused, as if the group had been
// idle for a long time.
func (s *testEnv) deployed(name string, edits ...func(*appsv1.Deployment)) {
	s.deploy(name, edits...)
	s.finishes(name)
	d := s.deployment(name)
	d.Spec.Paused = true
	s.Expect(s.Update(s.Ctx, d, client.FieldOwner(write.FieldManager))).To(Succeed())
	s.observes(name)
}

func (s *testEnv) deployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	s.Expect(s.Get(s.Ctx, s.Key(name), d)).To(Succeed())
	return d
}

// edit changes a Deployment as a user does.
func (s *testEnv) edit(name string, edits ...func(*appsv1.Deployment)) {
	d := s.deployment(name)
	for _, edit := range edits {
		edit(d)
	}
	s.Expect(s.Update(s.Ctx, d)).To(Succeed())
}

// change edits a coordination as a user does.
func (s *testEnv) change(name string, edits ...func(*coordinationv1.DeploymentCoordination)) {
	c := s.coordination(name)
	for _, edit := range edits {
		edit(c)
	}
	s.Expect(s.Update(s.Ctx, c)).To(Succeed())
}

func (s *testEnv) coordination(name string) *coordinationv1.DeploymentCoordination {
	c := &coordinationv1.DeploymentCoordination{}
	s.Expect(s.Get(s.Ctx, s.Key(name), c)).To(Succeed())
	return c
}

// reconcile does one step and verifies that the resulting status is consistent.
func (s *testEnv) reconcile() ctrl.Result {
	result, err := s.try(s.reconciler)
	s.Expect(err).NotTo(HaveOccurred())
	return result
}

// try does one step that may fail.
func (s *testEnv) try(r *Reconciler) (ctrl.Result, error) {
	result, err := r.Reconcile(s.Ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: s.Namespace}})
	if !s.Wire.Dead() {
		s.obeysLaw()
	}
	return result, err
}

// rest reconciles until a step writes nothing, and returns the delay until the next one;
// zero means never.
func (s *testEnv) rest() time.Duration {
	for range 30 {
		before := len(s.Wire.Writes())
		result := s.reconcile()
		if len(s.Wire.Writes()) == before {
			return result.RequeueAfter
		}
	}
	s.Expect(errors.New("30 steps brought no rest")).NotTo(HaveOccurred(), "writes: %v", s.Wire.Writes())
	return 0
}

// obeysLaw verifies that the conditions of every coordination are consistent, belong to
// its present generation, and agree with kstatus.
func (s *testEnv) obeysLaw() {
	list := &coordinationv1.DeploymentCoordinationList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range list.Items {
		if c := &list.Items[i]; c.Status.ObservedGeneration == c.Generation {
			s.Expect(unlawful(c)).To(BeEmpty(), "the status is %+v", c.Status)
		}
	}
}

// unlawful returns what is wrong with the conditions of a coordination.
func unlawful(c *coordinationv1.DeploymentCoordination) string {
	for _, kind := range []string{
		coordinationv1.ReadyCondition, coordinationv1.ProgressingCondition,
		coordinationv1.DegradedCondition, coordinationv1.HoldModeCondition,
	} {
		found := apimeta.FindStatusCondition(c.Status.Conditions, kind)
		if found == nil {
			return kind + " is missing"
		}
		if found.ObservedGeneration != c.Generation || found.Reason == "" || found.Message == "" {
			return fmt.Sprintf("%s is incomplete: %+v", kind, found)
		}
	}
	ready := apimeta.IsStatusConditionTrue(c.Status.Conditions, coordinationv1.ReadyCondition)
	progressing := apimeta.IsStatusConditionTrue(c.Status.Conditions, coordinationv1.ProgressingCondition)
	stalled := apimeta.IsStatusConditionTrue(c.Status.Conditions, coordinationv1.StalledCondition)
	if ready && (progressing || stalled) || progressing && stalled {
		return "the conditions contradict each other"
	}
	want := status.InProgressStatus
	switch {
	case stalled:
		want = status.FailedStatus
	case ready:
		want = status.CurrentStatus
	}
	if got := kstatusOf(c); got != want {
		return fmt.Sprintf("kstatus is %s, not %s", got, want)
	}
	return ""
}

func kstatusOf(o client.Object) status.Status {
	content, err := toUnstructured(o)
	if err != nil {
		return status.Status(err.Error())
	}
	computed, err := status.Compute(content)
	if err != nil {
		return status.Status(err.Error())
	}
	return computed.Status
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	gvk := coordinationv1.GroupVersion.WithKind(coordinationv1.DeploymentCoordinationKind)
	if _, ok := o.(*appsv1.Deployment); ok {
		gvk = appsv1.SchemeGroupVersion.WithKind("Deployment")
	}
	content, err := runtimeConverter.ToUnstructured(o)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, err
}

// active returns the name of the Deployment that has the turn, without the namespace.
func (s *testEnv) active(coordination string) string {
	_, name, _ := strings.Cut(s.coordination(coordination).Status.ActiveDeployment, "/")
	return name
}

// unpaused returns the Deployments that may roll out, sorted.
func (s *testEnv) unpaused() []string {
	list := &appsv1.DeploymentList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	names := []string{}
	for i := range list.Items {
		if !list.Items[i].Spec.Paused {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// pending returns the members whose template is not rolled out, according to the status
// of the coordination.
func (s *testEnv) pending(coordination string) []string {
	names := []string{}
	for _, state := range s.coordination(coordination).Status.DeploymentStates {
		if state.HasPendingChanges {
			names = append(names, strings.TrimPrefix(state.Name, s.Namespace+"/"))
		}
	}
	return names
}

// state returns the state of a Deployment in the status of a coordination.
func (s *testEnv) state(coordination, name string) coordinationv1.DeploymentState {
	for _, state := range s.coordination(coordination).Status.DeploymentStates {
		if state.Name == s.Namespace+"/"+name {
			return state
		}
	}
	s.Expect(name).To(BeEmpty(), "%s is no member of %s", name, coordination)
	return coordinationv1.DeploymentState{}
}

// condition returns a condition as "Status Reason: message"; empty if there is none.
func (s *testEnv) condition(coordination, kind string) string {
	return conditionText(s.coordination(coordination), kind)
}

func conditionText(c *coordinationv1.DeploymentCoordination, kind string) string {
	found := apimeta.FindStatusCondition(c.Status.Conditions, kind)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
}

// reported returns the events since the last call, as "Reason".
func (s *testEnv) reported() []string {
	reasons := []string{}
	for _, e := range s.Events.Take() {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// writes returns the writes since the last call.
func (s *testEnv) writes() []string {
	all := s.Wire.Writes()
	s.Wire.Forget()
	return all
}

var errRefused = apierrors.NewForbidden(appsv1.Resource("deployments"), "shop", errors.New("a quota says no"))
