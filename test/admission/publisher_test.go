// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// published is the Secret from which Prometheus reads the authorities to trust.
var published = types.NamespacedName{Namespace: manifests.Namespace, Name: "rollout-controller-metrics-certificate"}

const publishedHost = "rollout-controller-metrics-certificate.kuberik-system.svc"

func TestAuthorityOfTheMetricsIsReadFromTheSecret(t *testing.T) {
	g := NewWithT(t)
	installRights(t)
	now := clocktesting.NewFakeClock(time.Now())
	rotator := publish(t, now)
	g.Consistently(func() error { _, err := rotator.Certificate(); return err }).ShouldNot(Succeed(), "it creates no Secret")

	install(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: published.Namespace, Name: published.Name}})
	eventually(t, func() error { return trusted(t, rotator, now) }).Should(Succeed())
	first, err := rotator.Certificate()
	g.Expect(err).NotTo(HaveOccurred())

	eventually(t, now.Waiters).Should(Equal(1), "it sleeps until something is due")
	now.Step(certificates.RenewAfter)
	eventually(t, func() int { return bytes.Count(bundle(t), certificatePEM) }).Should(Equal(2), "the next one is trusted before it is met")
	eventually(t, func() error { return trusted(t, rotator, now) }).Should(Succeed())
	g.Expect(rotator.Certificate()).To(HaveField("Certificate", Equal(first.Certificate)), "Prometheus has not read the new one yet")

	eventually(t, now.Waiters).Should(Equal(1), "it sleeps until something is due")
	now.Step(certificates.Overlap)
	eventually(t, func() [][]byte { c, _ := rotator.Certificate(); return c.Certificate }).ShouldNot(Equal(first.Certificate))
	g.Expect(trusted(t, rotator, now)).To(Succeed())
}

// The rotator's own write triggers its last read of the Secret. That read lasts until the
// next certificate is due. After it only time wakes the rotator.
func TestTimeThatPassesDuringALookIsNotLost(t *testing.T) {
	installRights(t)
	install(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: published.Namespace, Name: published.Name}})
	now := clocktesting.NewFakeClock(time.Now())
	look := &longLook{lasts: func() { now.Step(certificates.RenewAfter) }}
	publishOver(t, now, func(rt http.RoundTripper) http.RoundTripper { look.RoundTripper = rt; return look })
	eventually(t, func() int { return bytes.Count(bundle(t), certificatePEM) }).Should(Equal(2))
}

// longLook makes time pass during the first read of the Secret after it was written.
type longLook struct {
	http.RoundTripper
	lasts func()

	mu            sync.Mutex
	written, long bool
}

func (l *longLook) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if !strings.HasSuffix(request.URL.Path, "/secrets/"+published.Name) {
		return response, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written && !l.long {
		l.long = true
		l.lasts()
	}
	l.written = l.written || request.Method == http.MethodPut
	return response, err
}

// publish runs a rotator with the installed permissions.
func publish(t *testing.T, now clock.Clock) *certificates.Rotator {
	t.Helper()
	return publishOver(t, now, func(rt http.RoundTripper) http.RoundTripper { return rt })
}

// publishOver runs a rotator like publish, with a wrapper around its transport.
func publishOver(t *testing.T, now clock.Clock, around transport.WrapperFunc) *certificates.Rotator {
	t.Helper()
	g := NewWithT(t)
	config, err := testPlane.RESTConfigFor(controllerName, "system:serviceaccounts", "system:authenticated")
	g.Expect(err).NotTo(HaveOccurred())
	config.Wrap(around)
	requests, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	rotator, err := certificates.NewPublisher(config, requests, publishedHost, published, now, logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	mgr := newManager(t)
	g.Expect(mgr.Add(rotator)).To(Succeed())
	run(t, mgr)
	return rotator
}

// trusted checks the served certificate as Prometheus would.
func trusted(t *testing.T, rotator *certificates.Rotator, now clock.Clock) error {
	t.Helper()
	served, err := rotator.Certificate()
	if err != nil {
		return err
	}
	return certificates.Trusted(served, bundle(t), publishedHost, now.Now())
}

func bundle(t *testing.T) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := testClient.Get(t.Context(), published, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data[certificates.AuthoritiesKey]
}
