// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// forms are the functions that put each form into effect.
var forms = map[string]func(*testing.T){
	policyForm:  installPolicy,
	webhookForm: func(t *testing.T) { t.Helper(); startWebhook(t, nil) },
}

func TestServerSideApplyLeavesWhatAdmissionHolds(t *testing.T) {
	for form, install := range forms {
		t.Run(form, func(t *testing.T) {
			install(t)
			s := newEnv(t, form)
			s.coordinate(a())
			for _, image := range []string{"web:1", "web:1", "web:2"} {
				s.apply(t, image)
				s.expectPaused(web(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }), []string{"a"})
			}
			for _, entry := range s.deployment().ManagedFields {
				s.Expect(entry.FieldsV1.GetRawString()).NotTo(ContainSubstring("f:paused"), "%s owns it", entry.Manager)
				s.Expect(entry.FieldsV1.GetRawString()).NotTo(ContainSubstring(v1.HeldByAnnotation), "%s owns it", entry.Manager)
			}
		})
	}
}

// apply applies the manifest of web as Flux does. The manifest does not set paused.
func (e *env) apply(t *testing.T, image string) {
	t.Helper()
	manifest := web(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	manifest.Namespace = e.namespace
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(manifest)
	e.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	e.Expect(testClient.Apply(e.ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner("kustomize-controller"), client.ForceOwnership)).To(Succeed())
}

func TestNobodyIsHeldWhereTheControllerLives(t *testing.T) {
	for form, install := range forms {
		t.Run(form, func(t *testing.T) {
			install(t)
			for _, name := range []string{metav1.NamespaceSystem, manifests.Namespace} {
				s := newEnv(t, form)
				s.enter(t, name)
				c := a()
				c.Namespace = name
				s.Expect(testClient.Create(s.ctx, c)).To(Succeed())
				t.Cleanup(func() { uninstall(t, c) })
				newEnv(t, form).awaitSentinel() // what is known in another namespace is known in this one
				d := s.create(testClient, web())
				t.Cleanup(func() { uninstall(t, d) })
				s.Expect(s.deployment().Spec.Paused).To(BeFalse(), name)
			}
		})
	}
}

// enter makes the test use an existing namespace.
func (e *env) enter(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := testClient.Create(e.ctx, namespace); !apierrors.IsAlreadyExists(err) {
		e.Expect(err).NotTo(HaveOccurred())
	}
	label := func(value any) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{formLabel: value}}})
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(testClient.Patch(context.Background(), namespace, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
	label(e.form)
	t.Cleanup(func() { label(nil) })
	e.namespace = name
}

func TestScaleAndStatusPass(t *testing.T) {
	for form, install := range forms {
		t.Run(form, func(t *testing.T) {
			install(t)
			s := newEnv(t, form)
			s.create(testClient, web())
			s.coordinate(a())
			asked := calls(t)
			d := s.deployment()
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
			s.Expect(testClient.SubResource("scale").Update(s.ctx, d, client.WithSubResourceBody(scale))).To(Succeed())
			d = s.deployment()
			d.Status.ObservedGeneration = d.Generation
			s.Expect(testClient.Status().Update(s.ctx, d)).To(Succeed())
			s.Expect(testClient.Create(s.ctx, s.replicaSet())).To(Succeed())
			d = s.deployment()
			s.Expect(*d.Spec.Replicas).To(Equal(int32(5)))
			s.Expect(d.Spec.Paused).To(BeFalse())
			s.Expect(calls(t)).To(Equal(asked), "none of these is asked about")
		})
	}
}

// replicaSet returns an object that is not a Deployment, though the coordination would
// select it.
func (e *env) replicaSet() *appsv1.ReplicaSet {
	d := web()
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: Name, Labels: d.Labels},
		Spec:       appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
}

// calls returns the number of requests to the webhooks of this process.
func calls(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, family := range families {
		if family.GetName() == "controller_runtime_webhook_requests_total" {
			for _, m := range family.GetMetric() {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func TestNobodyIsHinderedWhileTheControllerIsDown(t *testing.T) {
	for form, install := range map[string]func(*testing.T){
		policyForm: installPolicy,
		webhookForm: func(t *testing.T) {
			t.Helper()
			startWebhook(t, nil).stop()
		},
		"none": func(*testing.T) {},
	} {
		t.Run(form, func(t *testing.T) {
			install(t)
			s := newEnv(t, form)
			c := a()
			c.Namespace = s.namespace
			s.Expect(testClient.Create(s.ctx, c)).To(Succeed())
			s.create(testClient, web())
			s.change(testClient, web(image("web:2"), replicas(3)))
			d := s.deployment()
			s.Expect(*d.Spec.Replicas).To(Equal(int32(3)))
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
			s.Expect(testClient.SubResource("scale").Update(s.ctx, d, client.WithSubResourceBody(scale))).To(Succeed())
			s.Expect(testClient.Delete(s.ctx, d)).To(Succeed())
			err := testClient.Get(s.ctx, client.ObjectKeyFromObject(d), d)
			s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		})
	}
}

func TestWebhookIsAskedForLessThanTheAPIServerStores(t *testing.T) {
	g := NewWithT(t)
	startWebhook(t, nil)
	s := newEnv(t, webhookForm)
	s.coordinate(a())
	asked := calls(t)
	s.create(testClient, web(paused))
	s.change(controllerClient, web())
	g.Expect(calls(t)).To(Equal(asked), "what is paused already, and what the controller writes, is known not to be held")
	s.change(testClient, web(replicas(2)))
	g.Expect(calls(t)).To(BeNumerically(">", asked))
}
