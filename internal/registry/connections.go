// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

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
	// proxied opens connections to the proxy that the operator chooses for this process. It
	// may be where tenants must not reach, such as beside the controller in its Pod.
	proxied *http.Transport
	// proxy returns the operator's proxy for a request, if there is one.
	proxy func(*http.Request) (*url.URL, error)
}

// newConnections returns connections through the operator's proxy, where there is one.
func newConnections(guard destination.Guard, proxy func(*http.Request) (*url.URL, error)) *connections {
	c := &connections{guarded: newTransport(), proxied: newTransport(), proxy: proxy}
	c.guarded.DialContext = (&net.Dialer{Timeout: timeout, ControlContext: guard.Control}).DialContext
	c.guarded.Proxy, c.proxied.Proxy = nil, proxy
	return c
}

// tenants returns connections with the certificates of a tenant, and through the proxy of
// a tenant if there is one.
func (r *Reader) tenants(proxy *url.URL, certificates *tls.Config) *connections {
	c := newConnections(r.guard, r.connections.proxy)
	c.guarded.TLSClientConfig, c.proxied.TLSClientConfig = certificates, certificates
	if proxy != nil {
		c.guarded.Proxy, c.proxy = http.ProxyURL(proxy), noProxy
	}
	return c
}

// noProxy is how requests are sent that the operator's proxy has no part in.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// RoundTrip sends a request.
func (c *connections) RoundTrip(request *http.Request) (*http.Response, error) {
	proxy, err := c.proxy(request)
	if err != nil || proxy != nil {
		return c.proxied.RoundTrip(request) //nolint:wrapcheck // it is the transport's
	}
	return c.guarded.RoundTrip(request) //nolint:wrapcheck // it is the transport's
}

func (c *connections) close() {
	c.guarded.CloseIdleConnections()
	c.proxied.CloseIdleConnections()
}

func newTransport() *http.Transport {
	transport := remote.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = mostOfHeader
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence}
	return transport
}
