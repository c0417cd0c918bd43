// SPDX-License-Identifier: Apache-2.0

package destination_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// A Service may have thousands of Pods.
func TestOnlyReadyPodsOfASliceAreKept(t *testing.T) {
	g, yes, no := NewWithT(t), new(true), new(false)
	ready := endpoint("192.0.2.1", "Pod", "team", yes)
	ready.Addresses, ready.NodeName, ready.Zone, ready.Hostname = append(ready.Addresses, "192.0.2.9"), new("node"), new("zone"), new("shop-0")
	whole := slice("a", ready, endpoint("192.0.2.2", "Pod", "team", no), endpoint("192.0.2.3", "Pod", "other", yes))
	whole.Annotations = map[string]string{"note": "of somebody"}
	for kind, by := range destination.Kept() {
		g.Expect(kind).To(BeAssignableToTypeOf(whole))
		kept, err := by.Transform(whole)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept).To(Equal(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, AddressType: whole.AddressType, Ports: whole.Ports,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod"}}},
		}))
	}
}
