// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func TestModeSaysWhichFormIsInForce(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	eventually(t, r.ready).Should(Succeed())
	_, message := r.admission.Mode("shop")
	g.Expect(message).To(Equal("the controller pauses Deployments once it has seen them: there is no MutatingAdmissionPolicy rollout-controller-hold, " +
		"and there is no MutatingWebhookConfiguration rollout-controller-webhook"))

	installWebhook(t, r.port)
	eventually(t, r.mode).Should(Equal(v1.AdmissionWebhookReason))

	policy, binding := policy(t)
	install(t, policy)
	unbound := func() string { _, message := r.admission.Mode("shop"); return message }
	configuration := configuration(t)
	uninstall(t, configuration)
	eventually(t, unbound).Should(ContainSubstring("MutatingAdmissionPolicy rollout-controller-hold is not bound"))
	install(t, binding)
	eventually(t, r.mode).Should(Equal(v1.AdmissionPolicyReason))
	uninstall(t, policy)
	eventually(t, r.mode).Should(Equal(v1.ControllerOnlyReason), "a binding alone does nothing")
}

func TestModeDoesNotClaimTheNamespacesThatAreLeftOut(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	said := func(namespace string) func() string {
		return func() string {
			reason, message := r.admission.Mode(namespace)
			return reason + ": " + message
		}
	}
	installWebhook(t, r.port)
	eventually(t, r.mode).Should(Equal(v1.AdmissionWebhookReason))
	for _, namespace := range []string{metav1.NamespaceSystem, manifests.Namespace} {
		g.Expect(said(namespace)()).To(Equal("ControllerOnly: the controller pauses Deployments once it has seen them: " +
			"there is no MutatingAdmissionPolicy rollout-controller-hold, " +
			"and MutatingWebhookConfiguration rollout-controller-webhook leaves out this namespace"))
	}
	policy, binding := policy(t)
	install(t, policy, binding)
	eventually(t, r.mode).Should(Equal(v1.AdmissionPolicyReason))
	for _, namespace := range []string{metav1.NamespaceSystem, manifests.Namespace} {
		eventually(t, said(namespace)).Should(ContainSubstring("MutatingAdmissionPolicy rollout-controller-hold leaves out this namespace, and"))
	}
	policy.Spec.MatchConstraints.NamespaceSelector = nil
	g.Expect(testClient.Update(t.Context(), policy)).To(Succeed())
	eventually(t, said(metav1.NamespaceSystem)).Should(HavePrefix(v1.AdmissionPolicyReason))
}

func TestForbiddenReadCountsAsNotInstalled(t *testing.T) {
	g := NewWithT(t)
	policy, binding := policy(t)
	install(t, policy, binding)
	r := startReplica(t, webhook.Options{})
	eventually(t, func() string { _, message := r.admission.Mode("shop"); return message }).Should(And(
		ContainSubstring("MutatingAdmissionPolicy rollout-controller-hold or its binding may not be read"),
		ContainSubstring("MutatingWebhookConfiguration rollout-controller-webhook may not be read"),
	))
	g.Expect(r.mode()).To(Equal(v1.ControllerOnlyReason))
	eventually(t, r.ready).Should(Succeed())

	installRights(t)
	eventually(t, r.mode).Should(Equal(v1.AdmissionPolicyReason), "it is found out by itself")
}

func TestWebhookThatIsTurnedOffIsNotInForce(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	mgr := newManager(t)
	installed, err := admission.NewInstalled(mgr, names)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, mgr)
	installWebhook(t, freePort(t), func(c *admissionv1.MutatingWebhookConfiguration) {
		c.Webhooks[0].ClientConfig.CABundle = authority(t)
	})
	eventually(t, func() string { _, message := installed.Mode("shop"); return message }).Should(Equal(
		"the controller pauses Deployments once it has seen them: there is no MutatingAdmissionPolicy rollout-controller-hold, " +
			"and the controller's webhook is turned off"))
	reason, _ := installed.Mode("shop")
	g.Expect(reason).To(Equal(v1.ControllerOnlyReason))
}

func TestOlderAPIServerHasNoPolicies(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	policy, binding := policy(t)
	install(t, policy, binding) // the controller must not know of them
	mgr := newManager(t, func(o *ctrl.Options) {
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper([]schema.GroupVersion{admissionv1.SchemeGroupVersion}), nil
		}
	})
	installed, err := admission.NewInstalled(mgr, names)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, mgr)
	eventually(t, installed.ServeWebhook().Known()).Should(BeClosed())
	reason, message := installed.Mode("shop")
	g.Expect(reason).To(Equal(v1.ControllerOnlyReason))
	g.Expect(message).To(ContainSubstring("the API server serves no MutatingAdmissionPolicies"))
}

// authority returns a certificate authority that the API server could trust.
func authority(t *testing.T) []byte {
	t.Helper()
	pair, err := certificates.Make("rollout-controller-webhook.kuberik-system.svc", time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pair.Authority
}

func TestAnotherCoordinatorIsNoticed(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	eventually(t, r.ready).Should(Succeed())
	g.Expect(r.admission.Other()).To(BeEmpty())

	other := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kube-deployment-coordinator-webhook"}}
	install(t, other)
	eventually(t, r.admission.Other).Should(ContainSubstring("MutatingWebhookConfiguration kube-deployment-coordinator-webhook is of another coordinator"))
	g.Expect(r.mode()).To(Equal(v1.ControllerOnlyReason))

	other.Labels = map[string]string{"app.kubernetes.io/part-of": "rollout-controller"}
	g.Expect(testClient.Update(t.Context(), other)).To(Succeed())
	eventually(t, r.admission.Other).Should(BeEmpty(), "it may be ours under that name")
}

func TestOtherCoordinatorIsNoticedAsItsKustomizationInstallsIt(t *testing.T) {
	installRights(t)
	r := startReplica(t, webhook.Options{})
	eventually(t, r.ready).Should(Succeed())
	other := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
		Name: "kube-deployment-coordinator-kube-deployment-coordinator-webhook",
	}}
	install(t, other)
	eventually(t, r.admission.Other).Should(ContainSubstring(
		"MutatingWebhookConfiguration kube-deployment-coordinator-kube-deployment-coordinator-webhook is of another coordinator"))
	uninstall(t, other)
	eventually(t, r.admission.Other).Should(BeEmpty())
}

func TestWebhookOfTheSameNameThatIsNotOursIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	foreign := installWebhook(t, r.port, func(c *admissionv1.MutatingWebhookConfiguration) { c.Labels = nil })
	eventually(t, r.ready).Should(Succeed())
	foreign.Labels = map[string]string{"app.kubernetes.io/part-of": "rollout-controller"}
	g.Expect(r.listens()).To(BeFalse())
	g.Expect(testClient.Update(t.Context(), foreign)).To(Succeed(), "nobody has written it since")
	r.await(t)
}

func TestChangeWakesTheNamespacesThatHaveCoordinations(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	s := newEnv(t, "none")
	c := a()
	c.Namespace = s.namespace
	s.Expect(testClient.Create(s.ctx, c)).To(Succeed())

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	changes := r.admission.Changes().(source.SyncingSource)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g.Expect(changes.Start(ctx, queue)).To(Succeed())
	g.Expect(changes.WaitForSync(ctx)).To(Succeed())
	woken := func() bool {
		found := false
		for queue.Len() > 0 {
			request, _ := queue.Get()
			g.Expect(request.Namespace).To(BeEmpty())
			found = found || request.Name == s.namespace
			queue.Forget(request)
			queue.Done(request)
		}
		return found
	}
	eventually(t, woken).Should(BeTrue(), "at the start")
	g.Consistently(woken).Should(BeFalse(), "nothing has changed")

	other := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kube-deployment-coordinator-webhook"}}
	install(t, other)
	eventually(t, woken).Should(BeTrue(), "another coordinator")
	metav1.SetMetaDataAnnotation(&other.ObjectMeta, "example.com/note", "nothing new")
	g.Expect(testClient.Update(t.Context(), other)).To(Succeed())
	g.Consistently(woken).Should(BeFalse(), "nothing that is said has changed")
	installWebhook(t, r.port)
	eventually(t, woken).Should(BeTrue(), "another form")
}
