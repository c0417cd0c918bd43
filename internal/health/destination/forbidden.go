// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"net/netip"
	"slices"
)

// network is a range of addresses that nobody may ask.
type network struct {
	prefix netip.Prefix
	what   string
}

// forbidden contains the addresses of the machine itself and of cloud metadata services,
// from which credentials could be read. It also contains the forms of IPv6 in which an
// IPv4 address hides. No list can allow them.
var forbidden = []network{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata service"}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata service"},   // Azure's WireServer
	{netip.MustParsePrefix("192.0.0.0/24"), "a metadata service"},       // Oracle Cloud; RFC 6890 otherwise

	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"}, // RFC 3879
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a metadata service"},     // AWS: instances and Pod identities
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata service"},  // Google Cloud
	{netip.MustParsePrefix("fd00:42::42/128"), "a metadata service"},   // Scaleway
	{netip.MustParsePrefix("::/96"), "an embedded IPv4 address"},       // RFC 4291, 2.5.5.1
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translated address"},  // RFC 8215
	{netip.MustParsePrefix("2001::/32"), "a tunnel's address"},         // Teredo, RFC 4380
	{netip.MustParsePrefix("2002::/16"), "a tunnel's address"},         // 6to4, RFC 3056
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "a translated address"}, // SIIT, RFC 2765
}

// private contains the addresses of networks inside of an organisation, such as those of
// Pods and Services.
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), // RFC 1918
	netip.MustParsePrefix("100.64.0.0/10"), // shared, RFC 6598
	netip.MustParsePrefix("198.18.0.0/15"), // for benchmarks, RFC 2544
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and used for Pods
	netip.MustParsePrefix("fc00::/7"),      // unique local, RFC 4193
}

// isPrivate reports whether an address is inside of an organisation.
func isPrivate(address netip.Addr) bool {
	address = embedded(address)
	return slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(address) })
}

// nat64 is the prefix behind which IPv6-only clusters reach IPv4 addresses: RFC 6052, 2.1.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// forbiddenAs returns what kind of forbidden address it is. It returns an empty text if
// the address is not forbidden.
func forbiddenAs(address netip.Addr) string {
	if address.Zone() != "" {
		return "a link-local address"
	}
	address = embedded(address)
	found := slices.IndexFunc(forbidden, func(n network) bool { return n.prefix.Contains(address) })
	if found < 0 {
		return ""
	}
	return forbidden[found].what
}

// embedded returns the IPv4 address that packets for an IPv6 address arrive at, where a
// machine or a cluster translates it. It returns any other address as it is.
func embedded(address netip.Addr) netip.Addr {
	address = address.Unmap()
	if !nat64.Contains(address) {
		return address
	}
	bytes := address.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}
