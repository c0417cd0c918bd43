// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
)

func TestNothingListensUnlessTheWebhookIsInstalled(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	r := startReplica(t, webhook.Options{})
	eventually(t, r.ready).Should(Succeed(), "there is nothing to be ready for")
	g.Expect(r.listens()).To(BeFalse())
	g.Expect(r.mode()).To(Equal(v1.ControllerOnlyReason))

	configuration := installWebhook(t, r.port)
	r.await(t)
	g.Expect(r.listens()).To(BeTrue())

	uninstall(t, configuration)
	eventually(t, r.listens).Should(BeFalse())
	eventually(t, r.mode).Should(Equal(v1.ControllerOnlyReason))
	g.Expect(r.ready()).To(Succeed())

	configuration.ResourceVersion = ""
	install(t, configuration)
	r.await(t)
	g.Expect(r.listens()).To(BeTrue(), "it may come back")
}

func TestReadyWaitsForACertificateThatIsTrusted(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	store := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: names.Certificate.Namespace, Name: names.Certificate.Name}}
	trust := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.Webhook}}
	for _, o := range []client.Object{store, trust} {
		g.Expect(testClient.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
		uninstall(t, o)
		o.SetResourceVersion("")
	}
	r := startReplica(t, webhook.Options{})
	installWebhook(t, r.port)
	eventually(t, r.ready).Should(MatchError(ContainSubstring("the webhook has no certificate")))
	g.Expect(r.mode()).To(Equal(v1.ControllerOnlyReason))

	g.Expect(testClient.Create(t.Context(), store)).To(Succeed())
	eventually(t, r.ready).Should(MatchError(ContainSubstring("does not trust the webhook's certificate")))
	_, message := r.admission.Mode("shop")
	g.Expect(message).To(ContainSubstring("trusts no certificate yet"))

	g.Expect(testClient.Create(t.Context(), trust)).To(Succeed())
	eventually(t, r.ready).Should(Succeed())
}

func TestCertificateOfCertManagerIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	pair, err := certificates.Make("rollout-controller-webhook.kuberik-system.svc", time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	byCertManager := func(c *admissionv1.MutatingWebhookConfiguration) {
		c.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "kuberik-system/webhook"}
		c.Webhooks[0].ClientConfig.CABundle = pair.Authority
	}
	without := startReplica(t, webhook.Options{})
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "cert.pem"), pair.Certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "key.pem"), pair.Key, 0o600)).To(Succeed())
	with := startReplica(t, webhook.Options{CertPath: folder, CertName: "cert.pem", KeyName: "key.pem"})
	installed := installWebhook(t, with.port, byCertManager)

	with.await(t)
	eventually(t, without.ready).Should(MatchError(ContainSubstring("the certificate must come from a file")))
	s := newEnv(t, webhookForm)
	s.coordinate(a())
	s.create(testClient, web())
	s.expectPaused(web(), []string{"a"})

	g.Expect(configuration(t).ResourceVersion).To(Equal(installed.ResourceVersion), "nobody writes it")
	err = testClient.Get(t.Context(), names.Certificate, &corev1.Secret{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "there is no Secret")
}

func TestFileIsServedInPlaceOfACertificateOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	pair, err := certificates.Make("rollout-controller-webhook.kuberik-system.svc", time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), pair.Certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), pair.Key, 0o600)).To(Succeed())
	r := startReplica(t, webhook.Options{CertPath: folder})
	installWebhook(t, r.port)
	eventually(t, r.ready).Should(MatchError(ContainSubstring("does not trust the webhook's certificate")))

	c := configuration(t)
	g.Expect(c.Webhooks[0].ClientConfig.CABundle).To(BeEmpty(), "that is for whoever provides the file")
	c.Webhooks[0].ClientConfig.CABundle = pair.Authority
	g.Expect(testClient.Update(t.Context(), c)).To(Succeed())
	r.await(t)
}

func TestAtRestTheWebhookAsksForNothing(t *testing.T) {
	g := NewWithT(t)
	startWebhook(t, nil)
	asked := func() int {
		requests, err := testPlane.Audited()
		g.Expect(err).NotTo(HaveOccurred())
		return len(requests)
	}
	s := newEnv(t, webhookForm)
	s.coordinate(a())
	before := asked()
	for range 20 { // requests of others are no reason to send requests either
		d := web()
		d.Name, d.GenerateName = "", "web-"
		s.create(testClient, d)
	}
	g.Consistently(asked).WithTimeout(2 * time.Second).Should(Equal(before))
}
