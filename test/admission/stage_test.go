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

// stage is a namespace in which one form of the rule is in effect.
type stage struct {
	*WithT
	ctx       context.Context
	form      string
	namespace string
}

func newStage(t *testing.T, form string) *stage {
	t.Helper()
	s := &stage{WithT: NewWithT(t), ctx: t.Context(), form: form}
	s.namespace = s.makeNamespace()
	return s
}

func (s *stage) makeNamespace() string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: s.form + "-", Labels: map[string]string{formLabel: s.form},
	}}
	s.Expect(testClient.Create(s.ctx, namespace)).To(Succeed())
	return namespace.Name
}

// coordinate creates coordinations with their status. It returns when the form of the
// rule knows them.
func (s *stage) coordinate(coordinations ...*v1.DeploymentCoordination) {
	for _, c := range coordinations {
		c = c.DeepCopy()
		switch c.Namespace {
		case "":
			c.Namespace = s.namespace
		case Elsewhere:
			c.Namespace = s.makeNamespace()
		}
		wanted := c.DeepCopy()
		s.Expect(testClient.Create(s.ctx, c)).To(Succeed())
		for i, state := range wanted.Status.DeploymentStates {
			if state.UID == StoredUID {
				wanted.Status.DeploymentStates[i].UID = s.deployment().UID
			}
		}
		c.Status = wanted.Status
		s.Expect(testClient.Status().Update(s.ctx, c)).To(Succeed())
	}
	s.awaitSentinel()
}

// awaitSentinel waits until a coordination that it creates takes effect. All earlier
// writes are then known as well, because a watch keeps the order.
func (s *stage) awaitSentinel() {
	sentinel := selecting("sentinel-", "sentinel", s.namespace)
	sentinel.Name, sentinel.GenerateName, sentinel.Namespace = "", "sentinel-", s.namespace
	s.Expect(testClient.Create(s.ctx, sentinel)).To(Succeed())
	s.Eventually(func(g Gomega) {
		probe := web(labels(map[string]string{"sentinel": s.namespace}))
		probe.Namespace, probe.Name = s.namespace, "probe"
		g.Expect(testClient.Create(s.ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Spec.Paused).To(BeTrue())
	}).Should(Succeed())
	s.Expect(testClient.Delete(s.ctx, sentinel)).To(Succeed())
}

// deployment reads the stored Deployment.
func (s *stage) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	s.Expect(testClient.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: Name}, d)).To(Succeed())
	return d
}

// create creates a Deployment with a client.
func (s *stage) create(as client.Client, d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Namespace = s.namespace
	s.Expect(as.Create(s.ctx, d)).To(Succeed())
	return d
}

// change updates the stored Deployment to the wanted one.
func (s *stage) change(as client.Client, wanted *appsv1.Deployment) {
	d := s.deployment()
	wanted = wanted.DeepCopy()
	d.Labels, d.Annotations, d.Spec = wanted.Labels, wanted.Annotations, wanted.Spec
	s.Expect(as.Update(s.ctx, d)).To(Succeed())
}

// play runs a case.
func (s *stage) play(c Case) {
	if c.Old != nil {
		s.create(testClient, c.Old)
	}
	s.coordinate(c.Coordinations...)
	as := testClient
	if c.ByController {
		as = controllerClient
	}
	if c.Old != nil {
		s.change(as, c.New)
	} else {
		s.create(as, c.New)
	}
}

// expectPaused expects that the Deployment was stored as requested. If by is not empty,
// it expects that one of these coordinations has paused it.
func (s *stage) expectPaused(asked *appsv1.Deployment, by []string) {
	d := s.deployment()
	annotations := map[string]string{}
	for key, value := range asked.Annotations {
		annotations[key] = value
	}
	if len(by) > 0 {
		s.Expect(d.Spec.Paused).To(BeTrue(), "it has to wait")
		s.Expect(by).To(ContainElement(d.Annotations[v1.HeldByAnnotation]))
		annotations[v1.HeldByAnnotation] = d.Annotations[v1.HeldByAnnotation]
	} else {
		s.Expect(d.Spec.Paused).To(Equal(asked.Spec.Paused), "it is stored as asked")
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	s.Expect(d.Annotations).To(Equal(annotations))
	s.Expect(d.Labels).To(Equal(asked.Labels))
	s.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(asked.Spec.Template.Spec.Containers[0].Image))
	if asked.Spec.Replicas != nil {
		s.Expect(d.Spec.Replicas).To(Equal(asked.Spec.Replicas))
	}
}

// uninstall deletes an object if it still exists.
func uninstall(t *testing.T, o client.Object) {
	t.Helper()
	NewWithT(t).Expect(client.IgnoreNotFound(testClient.Delete(context.Background(), o))).To(Succeed())
}
