// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// TestForbiddenAddressIsNotAsked: tenants choose where reports are read and stored.
func TestForbiddenAddressIsNotAsked(t *testing.T) {
	g := NewWithT(t)
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	empty := fake.NewClientBuilder().Build()
	reader, err := NewReader(empty, empty)
	g.Expect(err).NotTo(HaveOccurred())
	reader.Guard(destination.RefuseForbidden)
	reports, place := NewReports(reader), Place{Repository: server.Listener.Addr().String() + "/promotions", Tag: "shop.web", Insecure: true}
	_, err = reports.Pull(t.Context(), place, "")
	g.Expect(Cause(err)).To(Equal("the destination has an address that may never be used: a loopback address"))
	_, err = reports.Push(t.Context(), place, []byte("{}"), "")
	g.Expect(Cause(err)).To(Equal("the destination has an address that may never be used: a loopback address"))
	g.Expect(asked).To(BeFalse())
}
