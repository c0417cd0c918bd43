// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// formLabel is a label of a namespace. It defines which form of the rule is in effect
// there. Thus all forms can be tested with one API server.
const formLabel = "form"

// env is a namespace in which one form of the rule is in effect.
type env struct {
	*WithT
	ctx       context.Context
	form      string
	namespace string
}

func newEnv(t *testing.T, form string) *env {
	t.Helper()
	e := &env{WithT: NewWithT(t), ctx: t.Context(), form: form}
	e.namespace = e.makeNamespace()
	return e
}

func (e *env) makeNamespace() string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: e.form + "-", Labels: map[string]string{formLabel: e.form},
	}}
	e.Expect(testClient.Create(e.ctx, namespace)).To(Succeed())
	return namespace.Name
}

// coordinate creates coordinations with their status. It returns when the form of the
// rule knows them.
func (e *env) coordinate(coordinations ...*v1.DeploymentCoordination) {
	for _, c := range coordinations {
		c = c.DeepCopy()
		switch c.Namespace {
		case "":
			c.Namespace = e.namespace
		case Elsewhere:
			c.Namespace = e.makeNamespace()
		}
		wanted := c.DeepCopy()
		e.Expect(testClient.Create(e.ctx, c)).To(Succeed())
		for i, state := range wanted.Status.DeploymentStates {
			if state.UID == StoredUID {
				wanted.Status.DeploymentStates[i].UID = e.deployment().UID
			}
		}
		c.Status = wanted.Status
		e.Expect(testClient.Status().Update(e.ctx, c)).To(Succeed())
	}
	e.awaitSentinel()
}

// awaitSentinel waits until a coordination that it creates takes effect. All earlier
// writes are then known as well, because a watch keeps the order.
func (e *env) awaitSentinel() {
	sentinel := selecting("sentinel-", "sentinel", e.namespace)
	sentinel.Name, sentinel.GenerateName, sentinel.Namespace = "", "sentinel-", e.namespace
	e.Expect(testClient.Create(e.ctx, sentinel)).To(Succeed())
	e.Eventually(func(g Gomega) {
		probe := web(labels(map[string]string{"sentinel": e.namespace}))
		probe.Namespace, probe.Name = e.namespace, "probe"
		g.Expect(testClient.Create(e.ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Spec.Paused).To(BeTrue())
	}).Should(Succeed())
	e.Expect(testClient.Delete(e.ctx, sentinel)).To(Succeed())
}

// deployment reads the stored Deployment.
func (e *env) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	e.Expect(testClient.Get(e.ctx, client.ObjectKey{Namespace: e.namespace, Name: Name}, d)).To(Succeed())
	return d
}

// create creates a Deployment with a client.
func (e *env) create(as client.Client, d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Namespace = e.namespace
	e.Expect(as.Create(e.ctx, d)).To(Succeed())
	return d
}

// change updates the stored Deployment to the wanted one.
func (e *env) change(as client.Client, wanted *appsv1.Deployment) {
	d := e.deployment()
	wanted = wanted.DeepCopy()
	d.Labels, d.Annotations, d.Spec = wanted.Labels, wanted.Annotations, wanted.Spec
	e.Expect(as.Update(e.ctx, d)).To(Succeed())
}

// play runs a case.
func (e *env) play(c Case) {
	if c.Old != nil {
		e.create(testClient, c.Old)
	}
	e.coordinate(c.Coordinations...)
	as := testClient
	if c.ByController {
		as = controllerClient
	}
	if c.Old != nil {
		e.change(as, c.New)
	} else {
		e.create(as, c.New)
	}
}

// expectPaused expects that the Deployment was stored as requested. If by is not empty,
// it expects that one of these coordinations has paused it.
func (e *env) expectPaused(asked *appsv1.Deployment, by []string) {
	d := e.deployment()
	annotations := map[string]string{}
	for key, value := range asked.Annotations {
		annotations[key] = value
	}
	if len(by) > 0 {
		e.Expect(d.Spec.Paused).To(BeTrue(), "it has to wait")
		e.Expect(by).To(ContainElement(d.Annotations[v1.HeldByAnnotation]))
		annotations[v1.HeldByAnnotation] = d.Annotations[v1.HeldByAnnotation]
	} else {
		e.Expect(d.Spec.Paused).To(Equal(asked.Spec.Paused), "it is stored as asked")
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	e.Expect(d.Annotations).To(Equal(annotations))
	e.Expect(d.Labels).To(Equal(asked.Labels))
	e.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(asked.Spec.Template.Spec.Containers[0].Image))
	if asked.Spec.Replicas != nil {
		e.Expect(d.Spec.Replicas).To(Equal(asked.Spec.Replicas))
	}
}

// uninstall deletes an object if it still exists.
func uninstall(t *testing.T, o client.Object) {
	t.Helper()
	NewWithT(t).Expect(client.IgnoreNotFound(testClient.Delete(context.Background(), o))).To(Succeed())
}
