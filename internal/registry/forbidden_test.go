// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	ggcr "github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

const (
	loopbackRefused = "the destination has an address that may never be used: a loopback address"
	apiRefused      = "the destination has an address that may never be used: it belongs to the API server or to this controller"
)

// apiAddress is that of an API server.
const apiAddress = "192.0.2.10"

// guardOf returns a guard that protects the API server.
func guardOf(allowLoopback bool) destination.Guard {
	return destination.Guard{AllowLoopback: allowLoopback, Protected: func(context.Context) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(apiAddress)}, nil
	}}
}

// outsider is a cluster with an ImageRepository, and what it asks is counted.
type outsider struct {
	*WithT
	asked  atomic.Int32
	server *httptest.Server
	answer http.HandlerFunc
}

func openOutsider(t *testing.T) *outsider {
	t.Helper()
	o := &outsider{WithT: NewWithT(t), answer: func(http.ResponseWriter, *http.Request) {}}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		o.answer(w, r)
	}))
	t.Cleanup(o.server.Close)
	return o
}

func (o *outsider) host() string { return o.server.Listener.Addr().String() }

// reader returns a Reader that knows an ImageRepository of a registry, which is reached
// through a proxy unless that is empty.
func (o *outsider) reader(guard destination.Guard, registry, proxy string) *Reader {
	scheme := runtime.NewScheme()
	o.Expect(errors.Join(imagev1.AddToScheme(scheme), corev1.AddToScheme(scheme))).To(Succeed())
	images := &imagev1.ImageRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: imagev1.ImageRepositorySpec{Image: registry + "/web", Insecure: true},
	}
	if proxy != "" {
		images.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(images, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy"}, Data: map[string][]byte{"address": []byte(proxy)},
	}).Build()
	reader, err := NewReader(cluster, cluster, guard)
	o.Expect(err).NotTo(HaveOccurred())
	return reader
}

// causes asks for everything that tenants make a controller ask registries for, and
// returns why that failed.
func (o *outsider) causes(t *testing.T, reader *Reader, registry string) map[string]string {
	t.Helper()
	reports, place := NewReports(reader), Place{Namespace: "shop", ImageRepository: "web", Repository: registry + "/promotions", Tag: "shop.web", Insecure: true}
	_, read := reader.Read(t.Context(), Image{Repository: types.NamespacedName{Namespace: "shop", Name: "web"}, Name: registry + "/web", Tag: "1.0.0"})
	_, listed := reader.List(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"})
	_, pulled := reports.Pull(t.Context(), place, "")
	_, pushed := reports.Push(t.Context(), place, []byte("{}"), "")
	return map[string]string{"read": Cause(read), "list": Cause(listed), "pull": Cause(pulled), "push": Cause(pushed)}
}

func all(cause string) map[string]string {
	return map[string]string{"read": cause, "list": cause, "pull": cause, "push": cause}
}

// TestForbiddenAddressIsNotAsked: tenants choose the registries and proxies.
func TestForbiddenAddressIsNotAsked(t *testing.T) {
	o := openOutsider(t)
	unknown := destination.Guard{Protected: func(context.Context) ([]netip.Addr, error) {
		return nil, destination.NewReadError("get the Service of the API server", errors.New("forbidden"))
	}}
	for name, test := range map[string]struct {
		guard           destination.Guard
		registry, proxy string
		want            string
	}{
		"of this machine":              {guardOf(false), o.host(), "", loopbackRefused},
		"of the API server":            {guardOf(true), apiAddress + ":6443", "", apiRefused},
		"of a proxy":                   {guardOf(false), "registry.example.com", o.server.URL, loopbackRefused},
		"of a proxy at the API server": {guardOf(true), "registry.example.com", "http://" + apiAddress + ":6443", apiRefused},
		"if these are not known": {unknown, o.host(), "",
			"no request is sent, because this controller cannot read what it needs: see its log"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(o.causes(t, o.reader(test.guard, test.registry, test.proxy), test.registry)).To(Equal(all(test.want)))
			g.Expect(o.asked.Load()).To(BeZero())
		})
	}
}

// TestTokenIsNotRequestedFromAForbiddenAddress: a registry says where to log in.
func TestTokenIsNotRequestedFromAForbiddenAddress(t *testing.T) {
	o := openOutsider(t)
	o.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+apiAddress+`:6443/token",service="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	o.Expect(o.causes(t, o.reader(guardOf(true), o.host(), ""), o.host())).To(Equal(all(apiRefused)))
}

// TestProxyOfTheOperatorMayBeOnThisMachine, such as in the same Pod. A tenant reaches it
// neither as a proxy nor as a registry.
func TestProxyOfTheOperatorMayBeOnThisMachine(t *testing.T) {
	o := openOutsider(t)
	own, err := url.Parse(o.server.URL)
	o.Expect(err).NotTo(HaveOccurred())
	withOwn := func(reader *Reader) *Reader {
		reader.connections = newConnections(guardOf(false), func(r *http.Request) (*url.URL, error) {
			if strings.HasPrefix(r.URL.Host, "127.") { // as http.ProxyFromEnvironment does
				return nil, nil
			}
			return own, nil
		})
		return reader
	}
	o.Expect(o.causes(t, withOwn(o.reader(guardOf(false), o.host(), "")), o.host())).To(Equal(all(loopbackRefused)), "as a registry")
	o.Expect(o.causes(t, withOwn(o.reader(guardOf(false), "registry.example.com", o.server.URL)), "registry.example.com")).
		To(Equal(all(loopbackRefused)), "as a proxy")
	o.Expect(o.asked.Load()).To(BeZero())
	for what, cause := range o.causes(t, withOwn(o.reader(guardOf(false), "registry.example.com", "")), "registry.example.com") {
		o.Expect(cause).NotTo(ContainSubstring("address"), what)
	}
	o.Expect(o.asked.Load()).NotTo(BeZero())
}

// TestUploadIsNotLedElsewhere: a registry says where an upload goes on, and could name any
// server that the controller reaches, with any path.
func TestUploadIsNotLedElsewhere(t *testing.T) {
	victim := openOutsider(t)
	_, port, err := net.SplitHostPort(victim.host())
	victim.Expect(err).NotTo(HaveOccurred())
	const elsewhere = "the registry leads an upload or a login to another host, which is followed only to public addresses over https"
	for name, test := range map[string]struct{ to, want string }{
		"in plain HTTP":     {"http://localhost:" + port + "/admin/delete?everything=yes", elsewhere},
		"to the API server": {"https://" + apiAddress + ":6443/api", apiRefused},
		"to another port":   {"http://127.0.0.1:" + port + "/admin", elsewhere},
		"by a redirect":     {"307 http://localhost:" + port + "/admin", elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			o := openOutsider(t)
			status, to := http.StatusAccepted, test.to
			if redirected, ok := strings.CutPrefix(to, "307 "); ok {
				status, to = http.StatusTemporaryRedirect, redirected
			}
			o.answer = func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodPost:
					w.Header().Set("Location", to)
					w.WriteHeader(status)
				case http.MethodHead:
					w.WriteHeader(http.StatusNotFound)
				}
			}
			place := Place{Namespace: "shop", Repository: o.host() + "/promotions", Tag: "shop.web"}
			_, err := NewReports(o.reader(guardOf(true), o.host(), "")).Push(t.Context(), place, []byte("{}"), "")
			o.Expect(Cause(err)).To(Equal(test.want), "%v", err)
			o.Expect(victim.asked.Load()).To(BeZero())
		})
	}
}

// TestUploadElsewhereNeedsAPublicAddress: the registry names a host, which is resolved.
func TestUploadElsewhereNeedsAPublicAddress(t *testing.T) {
	g := NewWithT(t)
	registry, err := ggcr.NewRegistry("registry.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	to := sender{connections: newConnections(guardOf(true), noProxy), registry: registry}
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut} {
		request, err := http.NewRequestWithContext(t.Context(), method, "https://10.96.0.20/admin", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = to.RoundTrip(request) //nolint:bodyclose // there is none
		g.Expect(err).To(MatchError(ContainSubstring("a private address, and only public ones may be used here")), method)
	}
}

// TestUploadStaysWithTheRegistry, however it writes its own name.
func TestUploadStaysWithTheRegistry(t *testing.T) {
	for name, test := range map[string]struct {
		registry string
		insecure bool
		to       string
		want     bool
	}{
		"by its name":                    {"registry.example.com", false, "https://registry.example.com/v2/", true},
		"in other letters":               {"registry.example.com", false, "https://Registry.Example.com/v2/", true},
		"with the port of https":         {"registry.example.com", false, "https://registry.example.com:443/v2/", true},
		"without the port of https":      {"registry.example.com:443", false, "https://registry.example.com/v2/", true},
		"with its own port":              {"registry.example.com:5000", false, "https://registry.example.com:5000/v2/", true},
		"in plain HTTP, if that is fine": {"registry.example.com", true, "http://registry.example.com/v2/", true},
		"not in plain HTTP":              {"registry.example.com", false, "http://registry.example.com/v2/", false},
		"not at another port":            {"registry.example.com", false, "https://registry.example.com:8443/v2/", false},
		"not at another host":            {"registry.example.com", false, "https://registry.example.com.evil.test/v2/", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			registry, err := ggcr.NewRegistry(test.registry, scheme(test.insecure)...)
			g.Expect(err).NotTo(HaveOccurred())
			to, err := url.Parse(test.to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sender{registry: registry}.isRegistry(to)).To(Equal(test.want))
		})
	}
}

// TestLoginIsNotLedElsewhere: a login with an identity token is a POST.
func TestLoginIsNotLedElsewhere(t *testing.T) {
	victim := openOutsider(t)
	_, port, err := net.SplitHostPort(victim.host())
	victim.Expect(err).NotTo(HaveOccurred())
	o := openOutsider(t)
	o.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://localhost:`+port+`/admin",service="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	reader := o.reader(guardOf(true), o.host(), "")
	cluster := reader.secrets.(client.Client)
	o.Expect(cluster.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + o.host() + `":{"identitytoken":"a"}}}`)},
	})).To(Succeed())
	images := &imagev1.ImageRepository{}
	o.Expect(cluster.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, images)).To(Succeed())
	images.Spec.SecretRef = &meta.LocalObjectReference{Name: "login"}
	o.Expect(cluster.Update(t.Context(), images)).To(Succeed())
	o.Expect(o.causes(t, reader, o.host())).To(Equal(all("the registry leads an upload or a login to another host, which is followed only to public addresses over https")))
	o.Expect(victim.asked.Load()).To(BeZero())
}
