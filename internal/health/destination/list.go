// SPDX-License-Identifier: Apache-2.0

// Package destination decides where HealthChecks may send requests: to Services of their
// own namespace, and to what the operator lists. The address is checked again when a
// connection is opened. Therefore a name cannot lead to an address that is never allowed.
//
//   - list.go: what the operator lists
//   - url.go: what a URL must look like
//   - service.go: Services, and where their Pods are
//   - forbidden.go: addresses that are never allowed
//   - protected.go: the addresses of the API server and of the controller
//   - dial.go: opens connections
package destination

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// List contains the destinations outside of a HealthCheck's own namespace. The zero value
// allows none.
type List struct{ entries []origin }

// ParseList parses entries of the form scheme://host or scheme://host:port. The scheme is
// http or https, and the default port is that of the scheme. A host that begins with *.
// stands for all hosts with that ending, of any depth, but not for the ending itself, as
// in a Gateway's hostname. It allows only public addresses: whoever owns one name with that
// ending could aim at the Pods of others. An IP address is only allowed if an entry contains it
// literally. The error says which entry is wrong, and how to write it.
func ParseList(entries []string) (List, error) {
	var list List
	for _, text := range entries {
		entry, err := parseEntry(text)
		if err != nil {
			return List{}, fmt.Errorf("%q is not a destination: %w; write scheme://host or scheme://host:port, for example https://*.example.com", text, err)
		}
		list.entries = append(list.entries, entry)
	}
	return list, nil
}

func parseEntry(text string) (origin, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, wildcard := strings.CutPrefix(rest, "*.")
	of, err := parseOrigin(scheme + "://" + rest)
	if err != nil {
		return origin{}, err
	}
	if strings.ContainsAny(rest, "/?") {
		return origin{}, fmt.Errorf("it has a path")
	}
	if wildcard && of.address.IsValid() {
		return origin{}, fmt.Errorf("*. is before an IP address")
	}
	of.wildcard = wildcard
	return of, nil
}

// With returns the list with the destination of one more URL, which may have a path. It
// is for --prometheus-address.
func (l List) With(address string) (List, error) {
	of, err := parseOrigin(address)
	if err != nil {
		return List{}, fmt.Errorf("%q is not an address: %w", address, err)
	}
	return List{append(l.entries[:len(l.entries):len(l.entries)], of)}, nil
}

// Allowed returns the target of a URL that the list allows. Otherwise the error is a
// Problem that names the field and says what to do. Allowed does not use the network.
func (l List) Allowed(field, address string) (Target, error) {
	of, err := parseOrigin(address)
	if err != nil {
		return Target{}, health.Problemf("%s: %s", field, err)
	}
	if slices.ContainsFunc(l.entries, func(entry origin) bool { return !entry.wildcard && entry.allows(of) }) {
		return of.target(address)
	}
	if slices.ContainsFunc(l.entries, func(entry origin) bool { return entry.allows(of) }) {
		target, err := of.target(address)
		target.public = true
		return target, err
	}
	return Target{}, health.Problemf("%s: %s is not a destination that HealthChecks may use; "+
		"ask the operator to add it to --health-destinations, or use a Service of this namespace",
		field, truncate.Text(of.String(), longestQuote))
}

// longestQuote is how many characters of a URL are quoted.
const longestQuote = 200

// Target is one place that may be asked.
type Target struct {
	url *url.URL
	// addresses are dialled in place of the host, in this order until one answers.
	addresses []string
	// public means that private addresses are refused.
	public bool
}

// URL returns a copy of the URL.
func (t Target) URL() *url.URL {
	duplicate := *t.url
	return &duplicate
}

// Key identifies the host and port. Measurements with the same key share a limit.
func (t Target) Key() string { return t.url.Hostname() + ":" + port(t.url) }

// Same reports whether a URL has the scheme, host and port of the target.
func (t Target) Same(other *url.URL) bool {
	return t.url.Scheme == other.Scheme && t.url.Host == other.Host
}
