// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
)

// ownLogin gives this process a login to a registry, as its Docker config does.
func ownLogin(t *testing.T, host string) {
	t.Helper()
	config := pull("any", "login", host, "secret").(*corev1.Secret).Data[corev1.DockerConfigJsonKey]
	folder := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, "config.json"), config, 0o600)).To(Succeed())
	t.Setenv("DOCKER_CONFIG", folder)
}

// thief is the proxy of a tenant, which answers in place of every registry: in TLS with a
// certificate of the tenant, or in plain HTTP. It asks for a login and keeps what it gets.
type thief struct {
	proxy, registry *httptest.Server

	mu     sync.Mutex
	asked  int
	stolen []string
}

// openThief returns a thief that answers in TLS, or refuses TLS so that the client tries
// plain HTTP.
func openThief(t *testing.T, inTLS bool) *thief {
	t.Helper()
	h := &thief{}
	h.registry = httptest.NewTLSServer(http.HandlerFunc(h.steal))
	h.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodConnect:
			h.steal(w, r)
		case inTLS:
			h.tunnel(w)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(h.registry.Close)
	t.Cleanup(h.proxy.Close)
	return h
}

func (h *thief) steal(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if login := r.Header.Get("Authorization"); login != "" {
		h.stolen = append(h.stolen, login)
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// tunnel leads a connection to the thief's own registry, whatever the client asked for.
func (h *thief) tunnel(w http.ResponseWriter) {
	there, err := net.Dial("tcp", h.registry.Listener.Addr().String())
	if err != nil {
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
}

// TestOwnLoginIsNotSentThroughWhatATenantChooses: a tenant that chooses a proxy, a
// certificate authority or plain HTTP could read it.
func TestOwnLoginIsNotSentThroughWhatATenantChooses(t *testing.T) {
	const private = "registry.example.com" // the certificate of httptest is for it
	for name, tt := range map[string]struct {
		inTLS bool
		spec  func(*site)
		place func(*ours.Place)
		field string
	}{
		"a proxy": {inTLS: true, field: "spec.proxySecretRef", spec: func(s *site) {
			s.spec.ProxySecretRef = &meta.LocalObjectReference{Name: "way"}
		}},
		"a proxy, in plain HTTP": {field: "spec.proxySecretRef", spec: func(s *site) {
			s.spec.ProxySecretRef, s.spec.Insecure = &meta.LocalObjectReference{Name: "way"}, true
		}, place: func(p *ours.Place) { p.Insecure = true }},
		"a proxy, with a certificate authority": {inTLS: true, field: "spec.proxySecretRef", spec: func(s *site) {
			s.spec.ProxySecretRef, s.spec.CertSecretRef = &meta.LocalObjectReference{Name: "way"}, &meta.LocalObjectReference{Name: "ca"}
		}},
		"a certificate authority": {field: "spec.certSecretRef", spec: func(s *site) {
			s.spec.CertSecretRef = &meta.LocalObjectReference{Name: "ca"}
		}},
		"plain HTTP": {field: "plain HTTP (insecure)", spec: func(s *site) { s.spec.Insecure = true },
			place: func(p *ours.Place) { p.Insecure, p.ImageRepository = true, "" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := openSite(t), openThief(t, tt.inTLS)
			ownLogin(t, private)
			s.objects = []client.Object{
				secretOf("way", map[string][]byte{"address": []byte(h.proxy.URL)}),
				secretOf("ca", map[string][]byte{"ca.crt": pemOf(h.registry.Certificate())}),
			}
			s.spec.Image, s.spec.Insecure = private+"/shop", false
			tt.spec(s)
			place := ours.Place{Repository: private + "/promotions", Tag: "shop.shop", Namespace: "registry", ImageRepository: "shop"}
			if tt.place != nil {
				tt.place(&place)
			}
			reader := s.reader()
			reports := ours.NewReports(reader)
			_, read := s.readBy(t.Context(), reader, ours.Image{Tag: "1.0.0"})
			_, listed := reader.List(t.Context(), client.ObjectKeyFromObject(s.repository()))
			_, pulled := reports.Pull(t.Context(), place, "")
			_, pushed := reports.Push(t.Context(), place, []byte("x"), "")
			h.mu.Lock()
			defer h.mu.Unlock()
			s.Expect(h.stolen).To(BeEmpty())
			for what, err := range map[string]error{"read": read, "list": listed, "pull": pulled, "push": pushed} {
				s.Expect(err).To(MatchError(And(ContainSubstring("not sent through "+tt.field), ContainSubstring("name a Secret in spec.secretRef"))), what)
				s.Expect(err).To(MatchError(ours.ErrInvalid), what)
			}
			s.Expect(h.asked).To(BeZero())
		})
	}
}

// TestTenantsWayIsUsedWithoutAnOwnLogin: a registry that everyone may read can be behind a
// proxy.
func TestTenantsWayIsUsedWithoutAnOwnLogin(t *testing.T) {
	for name, own := range map[string]string{"none": "", "one to another registry": "registry.example.com"} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			ownLogin(t, own)
			s.push("1.0.0", image(map[string]string{"revision": "main"}))
			s.objects = []client.Object{secretOf("way", map[string][]byte{"address": []byte(s.server.URL)})}
			s.spec.ProxySecretRef = &meta.LocalObjectReference{Name: "way"}
			s.spec.Image = "public.example/shop" // only the proxy knows it
			got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(got.Revision).To(Equal("main"))
		})
	}
}

// TestIdentityIsNotUsedThroughWhatATenantChooses: it would ask the provider through the
// proxy, and send the answer through it.
func TestIdentityIsNotUsedThroughWhatATenantChooses(t *testing.T) {
	for _, provider := range []string{"aws", "azure", "gcp"} {
		t.Run(provider, func(t *testing.T) {
			s, h := openSite(t), openThief(t, false)
			s.objects = []client.Object{secretOf("way", map[string][]byte{"address": []byte(h.proxy.URL)})}
			s.spec.Image, s.spec.Insecure, s.spec.Provider = "europe-docker.pkg.dev/team/shop", false, provider
			s.spec.ProxySecretRef = &meta.LocalObjectReference{Name: "way"}
			_, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
			s.Expect(err).To(MatchError(ours.ErrInvalid))
			s.Expect(err).To(MatchError(ContainSubstring("not sent through spec.proxySecretRef")))
		})
	}
}

func secretOf(name string, data map[string][]byte) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: name}, Data: data}
}
