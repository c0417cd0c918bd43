// SPDX-License-Identifier: Apache-2.0

package prometheus

import "net/http"

// complete is a transport that asks for a complete answer or none. Thanos would leave out
// what it cannot reach; other servers do not know the parameter.
type complete struct{ http.RoundTripper }

// RoundTrip sends a copy of a request that has the parameter.
func (c complete) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	query := request.URL.Query()
	query.Set("partial_response", "false")
	request.URL.RawQuery = query.Encode()
	return c.RoundTripper.RoundTrip(request)
}
