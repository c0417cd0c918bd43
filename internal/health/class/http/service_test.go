// SPDX-License-Identifier: Apache-2.0

package http_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	endpoint "github.com/fluxrollouts/rollout-controller/internal/health/class/http"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// certificate returns a certificate for a name that signs itself, and its PEM.
func certificate(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
}

// TestServiceIsAskedByItsName checks that the address of a Service is dialled without
// resolving its name, and that the server still learns the name: by TLS and as the host.
func TestServiceIsAskedByItsName(t *testing.T) {
	g := NewWithT(t)
	var host, sni string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		host, sni = r.Host, r.TLS.ServerName
	}))
	own, authority := certificate(t, "shop.team.svc")
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	server.StartTLS()
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	reader := fake.NewFakeClient(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.20", Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: int32(at.Port())}},
		},
	}, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "team", Name: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(at.Port()))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "shop-0"}}},
	}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ca", Labels: map[string]string{v1alpha1.HealthCredentialsLabel: "true"}},
		Data:       map[string][]byte{"ca.crt": authority},
	})
	a := newAsker(t)
	var err error
	a.request.Target, err = destination.Services{Reader: reader}.Target(t.Context(), "spec.http.service", "team",
		v1alpha1.ServiceReference{Name: "shop", Scheme: "https"}, "/healthz")
	g.Expect(err).NotTo(HaveOccurred())
	a.request.Credentials, err = probe.ReadCredentials(t.Context(), reader, "spec.http", "team",
		v1alpha1.RequestSpec{CertSecretRef: &v1alpha1.ObjectName{Name: "ca"}})
	g.Expect(err).NotTo(HaveOccurred())

	response, err := endpoint.Client{Guard: a.guard, Clock: a.clock}.Do(t.Context(), a.request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Status).To(Equal(http.StatusOK))
	g.Expect([]string{host, sni, a.request.Target.Key()}).To(Equal(
		[]string{fmt.Sprintf("shop.team.svc:%d", at.Port()), "shop.team.svc", fmt.Sprintf("shop.team.svc:%d", at.Port())}))
}
