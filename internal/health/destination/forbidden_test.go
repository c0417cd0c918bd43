// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// TestWildcardNeedsAPublicAddress: whoever owns one name below it chooses the address. It
// cannot be resolved here.
func TestWildcardNeedsAPublicAddress(t *testing.T) {
	const private = "a private address, and only public ones may be used here"
	nothing := func(context.Context) ([]netip.Addr, error) { return nil, nil }
	for address, want := range map[string]string{
		"10.96.0.20": private, "172.16.0.1": private, "172.31.255.255": private, "192.168.1.1": private,
		"100.64.0.1": private, "100.127.255.255": private, "198.18.0.1": private, "240.0.0.1": private,
		"fc00::1": private, "fd12::1": private, "64:ff9b::a60:14": private, "::ffff:10.96.0.20": private,
		"172.32.0.1": "", "100.128.0.1": "", "192.0.2.1": "", "2001:db8::1": "",
		"127.0.0.1": "an address that may never be used: a loopback address",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			refusedBy := func(entries ...string) string {
				allowed, err := ParseList(entries)
				g.Expect(err).NotTo(HaveOccurred())
				target, err := allowed.Allowed("spec.http.url", "https://shop.example.com/")
				g.Expect(err).NotTo(HaveOccurred())
				dialer, err := Guard{Protected: nothing}.Dialer(t.Context(), target)
				g.Expect(err).NotTo(HaveOccurred())
				return dialer.refuses(netip.MustParseAddr(address))
			}
			g.Expect(refusedBy("https://*.example.com")).To(Equal(want))
			g.Expect(refusedBy("https://*.com", "https://*.example.com")).To(Equal(want))
			if want == private {
				want = ""
			}
			g.Expect(refusedBy("https://*.example.com", "https://shop.example.com")).To(Equal(want), "it is listed itself")
		})
	}
}
