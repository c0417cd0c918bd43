// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/internal/registry"
)

// managing is a manager that only has clients.
type managing struct {
	ctrl.Manager
	client client.Client
}

func (m managing) GetClient() client.Client { return m.client }

// TestRegistriesOfTenantsAreGuarded: for the metadata of images, their tags and reports.
func TestRegistriesOfTenantsAreGuarded(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	scheme := clientgoscheme.Scheme
	if err := imagev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	images := &imagev1.ImageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: imagev1.ImageRepositorySpec{Image: host + "/web"}}
	api := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"192.0.2.10"}}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(images, api).Build()
	w := wiring{Manager: managing{client: cluster}, options: &options{}, guard: newGuard(cluster)}
	reader, err := w.registryReader()
	if err != nil {
		t.Fatal(err)
	}
	reports := registry.NewReports(reader)
	ask := func(host string) map[string]error {
		image := registry.Image{Repository: client.ObjectKeyFromObject(images), Name: host + "/web", Tag: "1.0.0"}
		_, read := reader.Read(t.Context(), image)
		_, pulled := reports.Pull(t.Context(), registry.Place{Namespace: "shop", Repository: host + "/promotions", Tag: "web"}, "")
		_, pushed := reports.Push(t.Context(), registry.Place{Namespace: "shop", Repository: host + "/promotions", Tag: "web"}, []byte("x"), "")
		return map[string]error{"read": read, "pull": pulled, "push": pushed}
	}
	for host, want := range map[string]string{host: "a loopback address", "192.0.2.10:6443": "it belongs to the API server or to this controller"} {
		for what, err := range ask(host) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: %v, want %s", what, host, err, want)
			}
		}
	}
	if asked.Load() > 0 {
		t.Errorf("a forbidden address was asked %d times", asked.Load())
	}
}
