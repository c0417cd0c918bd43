// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

const webhookForm = "webhook"

// The components that install the coordinator with either form.
const (
	policyComponent  = "deployment-coordination"
	webhookComponent = "deployment-coordination-webhook"
)

// names are the names that the components set.
var names = admission.NamesOf(admission.Installation, manifests.Namespace)

// replica is the admission part of one replica of the controller. It has only the
// installed permissions.
type replica struct {
	admission *admission.Installed
	webhook   *webhook.Server
	port      int
	stop      func()
}

// startReplica starts a replica, which ends with the test.
func startReplica(t *testing.T, options webhook.Options) *replica {
	t.Helper()
	g := NewWithT(t)
	mgr := newManager(t)
	r := &replica{}
	var err error
	r.admission, err = admission.NewInstalled(mgr, names)
	g.Expect(err).NotTo(HaveOccurred())
	r.port = freePort(t)
	options.Host, options.Port = "127.0.0.1", r.port
	r.webhook, err = webhook.Add(t.Context(), mgr, r.admission, names, options)
	g.Expect(err).NotTo(HaveOccurred())
	r.stop = run(t, mgr)
	return r
}

// newManager returns a manager with the permissions of the controller.
func newManager(t *testing.T, change ...func(*ctrl.Options)) ctrl.Manager {
	t.Helper()
	user, err := testPlane.RESTConfigFor(controllerName, "system:serviceaccounts", "system:authenticated")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	options := ctrl.Options{
		Scheme: testScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
	}
	for _, c := range change {
		c(&options)
	}
	mgr, err := ctrl.NewManager(user, options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return mgr
}

// run starts a manager. It ends with the test if it is not stopped before.
func run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		NewWithT(t).Expect(<-done).To(Succeed())
	})
	t.Cleanup(stop)
	return stop
}

// await waits until the replica knows that the API server calls it, and is ready.
func (r *replica) await(t *testing.T) {
	t.Helper()
	eventually(t, r.mode).Should(Equal(v1.AdmissionWebhookReason))
	eventually(t, r.ready).Should(Succeed())
}

// ready checks the readiness as the kubelet would.
func (r *replica) ready() error {
	return r.webhook.Ready(&http.Request{})
}

// mode returns the reason of the condition HoldMode.
func (r *replica) mode() string {
	reason, _ := r.admission.Mode("shop")
	return reason
}

// served returns the certificate that the webhook serves.
func (r *replica) served() (*tls.Certificate, error) {
	connection, err := tls.Dial("tcp", r.address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	leaf := connection.ConnectionState().PeerCertificates[0]
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, Leaf: leaf}, nil
}

// listens reports whether a connection to the port of the webhook succeeds.
func (r *replica) listens() bool {
	connection, err := net.Dial("tcp", r.address())
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func (r *replica) address() string {
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: r.port}).String()
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := controlplane.FreePort()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return port
}

// installed returns the objects of config/default with a component.
func installed(t *testing.T, component string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.WithComponents(t.Context(), component)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return objects
}

// installRights gives the controller the permissions of the installation.
func installRights(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manifests.Namespace}}
	if err := testClient.Create(t.Context(), namespace); !apierrors.IsAlreadyExists(err) {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	for _, o := range installed(t, webhookComponent) {
		if o.GroupVersionKind().Group == rbacv1.GroupName {
			install(t, o)
		}
	}
	t.Cleanup(func() {
		uninstall(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.Certificate.Namespace, Name: names.Certificate.Name}})
	})
}

// installWebhook installs the webhook as config/default with the component does, but only
// for the namespaces of its form. No proxy routes a Service to this process. Therefore
// the webhook's Service is another name of this machine.
func installWebhook(t *testing.T, port int, change ...func(*admissionv1.MutatingWebhookConfiguration)) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	g := NewWithT(t)
	objects := installed(t, webhookComponent)
	services, err := manifests.As[corev1.Service](objects, "Service")
	g.Expect(err).NotTo(HaveOccurred())
	for i := range services {
		if services[i].Name == names.Webhook {
			services[i].Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
			install(t, &services[i])
		}
	}
	configurations, err := manifests.As[admissionv1.MutatingWebhookConfiguration](objects, "MutatingWebhookConfiguration")
	g.Expect(err).NotTo(HaveOccurred())
	configuration := &configurations[0]
	called := &configuration.Webhooks[0]
	listening := int32(port)
	called.ClientConfig.Service.Port = &listening
	called.NamespaceSelector.MatchExpressions = append(called.NamespaceSelector.MatchExpressions, onlyForm(webhookForm))
	for _, c := range change {
		c(configuration)
	}
	install(t, configuration)
	return configuration
}

// startWebhook installs the webhook and returns a replica that is ready.
func startWebhook(t *testing.T, time clock.Clock) *replica {
	t.Helper()
	installRights(t)
	r := startReplica(t, webhook.Options{Clock: time})
	installWebhook(t, r.port)
	r.await(t)
	return r
}

func eventually(t *testing.T, actual any) AsyncAssertion {
	t.Helper()
	return NewWithT(t).Eventually(actual)
}

// configuration reads the webhook's configuration.
func configuration(t *testing.T) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	c := &admissionv1.MutatingWebhookConfiguration{}
	NewWithT(t).Expect(testClient.Get(t.Context(), client.ObjectKey{Name: names.Webhook}, c)).To(Succeed())
	return c
}
