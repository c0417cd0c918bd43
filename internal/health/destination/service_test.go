// SPDX-License-Identifier: Apache-2.0

package destination_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// service returns a Service of the namespace team that selects Pods.
func service(name string, changes ...func(*corev1.Service)) *corev1.Service {
	made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.20", Selector: map[string]string{"app": name},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
	}}
	for _, change := range changes {
		change(made)
	}
	return made
}

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

func ports(more ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, more...) }
}

// slice returns an EndpointSlice of the Service shop.
func slice(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
		Endpoints:   endpoints,
	}
}

func endpoint(address, kind, namespace string, ready *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready},
		TargetRef: &corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: "shop-0"},
	}
}

func TestServiceIsNamedInItsURL(t *testing.T) {
	for name, test := range map[string]struct {
		service *corev1.Service
		ref     v1alpha1.ServiceReference
		path    string
		want    string
	}{
		"by its only port":  {service("shop"), v1alpha1.ServiceReference{}, "/healthz?v=1.4.0", "http://shop.team.svc/healthz?v=1.4.0"},
		"without a path":    {service("shop"), v1alpha1.ServiceReference{}, "", "http://shop.team.svc/"},
		"by a name":         {service("shop", ports(corev1.ServicePort{Name: "admin", Port: 9000})), v1alpha1.ServiceReference{Port: "admin"}, "/", "http://shop.team.svc:9000/"},
		"by a number":       {service("shop", ports(corev1.ServicePort{Name: "admin", Port: 9000})), v1alpha1.ServiceReference{Port: "9000"}, "/", "http://shop.team.svc:9000/"},
		"by TLS":            {service("shop"), v1alpha1.ServiceReference{Scheme: "https"}, "/", "https://shop.team.svc:80/"},
		"past a UDP port":   {service("shop", ports(corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP})), v1alpha1.ServiceReference{}, "/", "http://shop.team.svc/"},
		"with a wild path":  {service("shop"), v1alpha1.ServiceReference{}, "//evil.test/..", "http://shop.team.svc//evil.test/.."},
		"with an @ in path": {service("shop"), v1alpha1.ServiceReference{}, "/@evil.test:80", "http://shop.team.svc/@evil.test:80"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.ref.Name = "shop"
			pods := slice("a", endpoint("192.0.2.1", "Pod", "team", nil))
			pods.Ports = append(pods.Ports, discoveryv1.EndpointPort{Name: new("admin"), Port: new(int32(9000))})
			found := destination.Services{Reader: fake.NewFakeClient(test.service, pods)}
			target, err := found.Target(t.Context(), "spec.http.service", "team", test.ref, test.path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(target.URL().String()).To(Equal(test.want))
		})
	}
}

func TestServiceThatMayLeadElsewhereIsAProblem(t *testing.T) {
	external := func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "metadata.google.internal"
	}
	noSelector := func(s *corev1.Service) { s.Spec.Selector = nil }
	elsewhere := service("shop")
	elsewhere.Namespace = "other"
	for name, test := range map[string]struct {
		service *corev1.Service
		port    string
		path    string
		want    string
	}{
		"in another namespace": {elsewhere, "", "/", "Service shop does not exist in this namespace"},
		"an external name":     {service("shop", external), "", "/", "Service shop is of type ExternalName, which can point anywhere; use a Service with a Pod selector"},
		"without a selector":   {service("shop", noSelector), "", "/", "Service shop has no selector, so it can point anywhere; use a Service with a Pod selector"},
		"without that port":    {service("shop"), "admin", "/", `Service shop has no TCP port "admin"`},
		"with several ports":   {service("shop", ports(corev1.ServicePort{Name: "b", Port: 81})), "", "/", "Service shop has 2 TCP ports; set port to the name of one"},
		"with another path":    {service("shop"), "", "@evil.test/", "its path does not begin with /"},
		"with a fragment":      {service("shop"), "", "/#a", "the URL of the Service is not valid: it contains a #, which is never sent"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := destination.Services{Reader: fake.NewFakeClient(test.service)}
			_, err := found.Target(t.Context(), "spec.http.service", "team", v1alpha1.ServiceReference{Name: "shop", Port: test.port}, test.path)
			problem, ok := health.IsProblem(err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(problem.Text).To(Equal("spec.http.service: " + test.want))
		})
	}
}

func TestServiceThatMayNotBeReadNamesTheRole(t *testing.T) {
	g := NewWithT(t)
	denied := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "shop", nil)
		},
	})
	_, err := destination.Services{Reader: denied}.Target(t.Context(), "spec.http.service", "team", v1alpha1.ServiceReference{Name: "shop"}, "/")
	problem, ok := health.IsProblem(err)
	g.Expect(ok).To(BeTrue())
	g.Expect(problem.Text).To(ContainSubstring("bind the ClusterRole rollout-controller-health-services-role"))
}

func TestServiceLeadsToReadyPods(t *testing.T) {
	yes, no := new(true), new(false)
	for name, test := range map[string]struct {
		slices []runtime.Object
		refuse string // the address to which the dial leads, which the guard protects
		err    error
	}{
		"that are ready":              {slices: []runtime.Object{slice("a", endpoint("192.0.2.1", "Pod", "team", yes))}, refuse: "192.0.2.1"},
		"of an unknown state":         {slices: []runtime.Object{slice("a", endpoint("192.0.2.1", "Pod", "team", nil))}, refuse: "192.0.2.1"},
		"not to others":               {slices: []runtime.Object{slice("a", endpoint("192.0.2.1", "Pod", "team", no))}, err: destination.ErrNoEndpoint},
		"not of another namespace":    {slices: []runtime.Object{slice("a", endpoint("192.0.2.1", "Pod", "other", yes))}, err: destination.ErrNoEndpoint},
		"not to what is no Pod":       {slices: []runtime.Object{slice("a", endpoint("192.0.2.1", "Node", "", yes))}, err: destination.ErrNoEndpoint},
		"not to an address by itself": {slices: []runtime.Object{slice("a", discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}})}, err: destination.ErrNoEndpoint},
		"in any slice": {slices: []runtime.Object{
			slice("a", endpoint("192.0.2.2", "Pod", "team", no)), slice("b", endpoint("192.0.2.1", "Pod", "team", yes)),
		}, refuse: "192.0.2.1"},
		"not to the API server, whatever is in a slice": {slices: []runtime.Object{slice("a", endpoint("192.0.2.10", "Pod", "team", yes))}, refuse: "192.0.2.10"},
		"not without slices":                            {err: destination.ErrNoEndpoint},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, kind := range []*corev1.Service{service("shop"), service("shop", headless)} {
				found := destination.Services{Reader: fake.NewFakeClient(append(slices.Clone(test.slices), kind)...)}
				target, err := found.Target(t.Context(), "spec.http.service", "team", v1alpha1.ServiceReference{Name: "shop"}, "/")
				if test.err != nil {
					g.Expect(err).To(MatchError(test.err))
					continue
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(target.URL().Host).To(Equal("shop.team.svc"))
				dialer, err := destination.Guard{Protected: protecting(test.refuse)}.Dialer(t.Context(), target)
				g.Expect(err).NotTo(HaveOccurred())
				_, err = dialer.DialContext(t.Context(), "tcp", "")
				g.Expect(err).To(MatchError(And(ContainSubstring(test.refuse+":8080"), ContainSubstring("it belongs to the API server"))))
			}
		})
	}
}

// TestServiceLeadsToEachOfItsPods: one bad Pod must not be the only one that is asked, or
// the only one that is not.
func TestServiceLeadsToEachOfItsPods(t *testing.T) {
	for affinity, want := range map[corev1.ServiceAffinity]int{corev1.ServiceAffinityNone: 2, corev1.ServiceAffinityClientIP: 1} {
		t.Run(string(affinity), func(t *testing.T) {
			g := NewWithT(t)
			pods := slice("a", endpoint("192.0.2.1", "Pod", "team", nil), endpoint("192.0.2.2", "Pod", "team", nil))
			found := destination.Services{Reader: fake.NewFakeClient(pods, service("shop", func(s *corev1.Service) { s.Spec.SessionAffinity = affinity }))}
			last := map[string]bool{}
			for range 100 {
				target, err := found.Target(t.Context(), "spec.http.service", "team", v1alpha1.ServiceReference{Name: "shop"}, "/")
				g.Expect(err).NotTo(HaveOccurred())
				dialer, err := destination.Guard{Protected: protecting("192.0.2.1", "192.0.2.2")}.Dialer(t.Context(), target)
				g.Expect(err).NotTo(HaveOccurred())
				_, err = dialer.DialContext(t.Context(), "tcp", "")
				last[err.Error()] = true
			}
			g.Expect(last).To(HaveLen(want))
		})
	}
}

func TestProtectedAreTheAPIServerAndOurselves(t *testing.T) {
	g := NewWithT(t)
	server := service("kubernetes", func(s *corev1.Service) {
		s.Namespace, s.Spec.ClusterIP, s.Spec.ClusterIPs = "default", "10.96.0.1", []string{"10.96.0.1", "fd00:96::1"}
	})
	endpoints := slice("kubernetes", discoveryv1.Endpoint{Addresses: []string{"192.0.2.7"}})
	endpoints.Namespace, endpoints.Labels = "default", map[string]string{discoveryv1.LabelServiceName: "kubernetes"}
	addresses, err := destination.ProtectedIn(fake.NewFakeClient(server, endpoints, slice("other", endpoint("192.0.2.8", "Pod", "", nil))))(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for _, want := range []string{"127.0.0.1", "10.96.0.1", "fd00:96::1", "192.0.2.7"} {
		g.Expect(addresses).To(ContainElement(netip.MustParseAddr(want)))
	}
	g.Expect(addresses).NotTo(ContainElement(netip.MustParseAddr("192.0.2.8")))

	_, err = destination.ProtectedIn(fake.NewFakeClient())(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("get the Service of the API server: ")))
}
