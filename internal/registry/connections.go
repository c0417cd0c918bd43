// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// silence is how long a connection may be idle before it is checked, and how long the
// answer to this check may take. Many requests share a connection.
const silence = 5 * time.Second

// connections are how registries are reached.
type connections struct {
	// guarded opens connections to what a tenant chooses: a registry, or a proxy. A guard
	// checks each address.
	guarded *http.Transport
	// public does the same, and opens connections to public addresses only.
	public *http.Transport
	// proxied opens connections to the proxy that the operator chooses for this process. It
	// may be where tenants must not reach, such as beside the controller in its Pod.
	proxied *http.Transport
	// proxy returns the operator's proxy for a request, if there is one.
	proxy func(*http.Request) (*url.URL, error)
}

// newConnections returns connections through the operator's proxy, where there is one.
func newConnections(guard destination.Guard, proxy func(*http.Request) (*url.URL, error)) *connections {
	c := &connections{guarded: newTransport(), public: newTransport(), proxied: newTransport(), proxy: proxy}
	c.guarded.DialContext = (&net.Dialer{Timeout: timeout, ControlContext: guard.Control}).DialContext
	guard.PublicOnly = true
	c.public.DialContext = (&net.Dialer{Timeout: timeout, ControlContext: guard.Control}).DialContext
	c.guarded.Proxy, c.public.Proxy, c.proxied.Proxy = nil, nil, proxy
	return c
}

// tenants returns connections with the certificates of a tenant, and through the proxy of
// a tenant if there is one.
func (r *Reader) tenants(proxy *url.URL, certificates *tls.Config) *connections {
	c := newConnections(r.guard, r.connections.proxy)
	for _, transport := range c.all() {
		transport.TLSClientConfig = certificates.Clone()
	}
	if proxy != nil {
		c.guarded.Proxy, c.public.Proxy, c.proxy = http.ProxyURL(proxy), http.ProxyURL(proxy), noProxy
	}
	return c
}

// noProxy is how requests are sent that the operator's proxy has no part in.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// send sends a request through the operator's proxy, or as given if there is none.
func (c *connections) send(request *http.Request, without *http.Transport) (*http.Response, error) {
	proxy, err := c.proxy(request)
	if err != nil || proxy != nil {
		return c.proxied.RoundTrip(request)
	}
	return without.RoundTrip(request)
}

func (c *connections) close() {
	for _, transport := range c.all() {
		transport.CloseIdleConnections()
	}
}

func (c *connections) all() []*http.Transport {
	return []*http.Transport{c.guarded, c.public, c.proxied}
}

// errElsewhere means that a registry wants something changed at a server that it names.
var errElsewhere = errors.New("the registry leads an upload or a login to another host, which is followed only to public addresses over https")

// sender sends requests to one registry, and to where it leads. To read, that may be any
// address that the guard lets through: blobs may be in a store of objects, and tokens at
// another host. What may change something, such as an upload, could otherwise be aimed by
// the registry at any server of this network.
type sender struct {
	*connections
	registry name.Registry
}

// RoundTrip sends a request.
func (s sender) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case request.Method == http.MethodGet, request.Method == http.MethodHead, s.isRegistry(request.URL):
		return s.send(request, s.guarded)
	case request.URL.Scheme == "https":
		return s.send(request, s.public)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, errElsewhere
}

// isRegistry reports whether a URL leads to the registry, and not in plain HTTP unless that
// is allowed.
func (s sender) isRegistry(of *url.URL) bool {
	if of.Scheme != "https" && s.registry.Scheme() == "https" {
		return false
	}
	registry := &url.URL{Scheme: of.Scheme, Host: s.registry.RegistryStr()}
	return strings.EqualFold(registry.Hostname(), of.Hostname()) && portOf(registry) == portOf(of)
}

func portOf(of *url.URL) string {
	return cmp.Or(of.Port(), map[string]string{"http": "80", "https": "443"}[of.Scheme])
}

func newTransport() *http.Transport {
	transport := remote.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = mostOfHeader
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence}
	return transport
}
