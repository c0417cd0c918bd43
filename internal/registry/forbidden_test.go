// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
			"nothing is asked, because this controller cannot read what it needs: its log says what"},
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
