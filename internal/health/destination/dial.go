// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Refused means that an address must not be asked. No byte was sent to it.
type Refused struct{ what string }

// Error says what kind of address it is, but not which: the name that led to it may have
// been chosen to find that out.
func (r *Refused) Error() string {
	return "the destination has " + r.what
}

// Guard checks addresses. It must have Protected.
type Guard struct {
	// Protected returns the addresses that are refused besides those that are forbidden
	// everywhere.
	Protected Protected
	// AllowLoopback allows loopback addresses, also protected ones. It exists for tests,
	// whose servers have no other addresses. No flag may set it.
	AllowLoopback bool
	// PublicOnly refuses private addresses, too.
	PublicOnly bool
}

// Dialer returns what opens connections for one measurement.
func (g Guard) Dialer(ctx context.Context, target Target) (*Dialer, error) {
	protected, err := g.Protected(ctx)
	if err != nil {
		return nil, err
	}
	g.PublicOnly = g.PublicOnly || target.public
	return &Dialer{guard: g, protected: protected, target: target}, nil
}

// Dialer opens connections to one target.
type Dialer struct {
	guard     Guard
	protected []netip.Addr
	target    Target
}

// DialContext opens a connection to the target, whatever address is given. If the target
// is a Service, it does not resolve a name. It returns a Refused error if the address may
// not be asked: that is checked after the name was resolved, on the very address to which
// the connection is opened.
func (d *Dialer) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	addresses := d.target.addresses
	if len(addresses) == 0 {
		addresses = []string{net.JoinHostPort(d.target.url.Hostname(), port(d.target.url))}
	}
	dialer := net.Dialer{ControlContext: d.control}
	var err error
	for _, address := range addresses {
		var connection net.Conn
		if connection, err = dialer.DialContext(ctx, network, address); err == nil {
			return connection, nil
		}
	}
	return nil, err
}

// control runs after an address was resolved and before anything is sent to it.
func (d *Dialer) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return &Refused{never + "it is not reached by TCP"}
	}
	if what := d.refuses(resolved.Addr()); what != "" {
		return &Refused{what}
	}
	return nil
}

// Control is a net.Dialer's ControlContext that checks an address after a name was resolved
// and before anything is sent. Use it for connections that stay open longer than one
// measurement.
func (g Guard) Control(ctx context.Context, network, address string, c syscall.RawConn) error {
	dialer, err := g.Dialer(ctx, Target{})
	if err != nil {
		return err
	}
	return dialer.control(ctx, network, address, c)
}

// never is before what kind of address it is, if nothing can allow that.
const never = "an address that may never be used: "

func (d *Dialer) refuses(address netip.Addr) string {
	if d.guard.AllowLoopback && address.IsLoopback() {
		return ""
	}
	if what := forbiddenAs(address); what != "" {
		return never + what
	}
	if slices.Contains(d.protected, embedded(address)) {
		return never + "it belongs to the API server or to this controller"
	}
	if d.guard.PublicOnly && isPrivate(address) {
		return "a private address, and only public ones may be used here"
	}
	return ""
}
