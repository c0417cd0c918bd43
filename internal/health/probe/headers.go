// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
)

// reserved contains the headers that a HealthCheck may not set, in lower case: those of
// credentials, those that change where a request goes, and those of the
// connection and its encoding.
var reserved = []string{
	"accept-encoding", "authorization", "connection", "content-length", "content-type", "cookie", "expect", "host", "keep-alive",
	"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// Headers returns the headers of a HealthCheck. A header that may not be set, or that
// cannot be sent, is a Problem. The API server checks the same, except for older CRDs.
func Headers(field string, from []v1alpha1.Header) (http.Header, error) {
	return headers(field+".headers", from)
}

func headers(where string, from []v1alpha1.Header) (http.Header, error) {
	made := http.Header{}
	for _, header := range from {
		switch {
		case slices.Contains(reserved, strings.ToLower(header.Name)):
			return nil, health.Problemf("%s: %s cannot be set; use secretRef for credentials", where, header.Name)
		case !isToken(header.Name) || !isPrintable(header.Value):
			return nil, health.Problemf("%s: a name or value contains characters that cannot be sent; use printable ASCII", where)
		}
		made.Set(header.Name, header.Value)
	}
	return made, nil
}

// isToken is stricter than RFC 9110, as the API is.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func isPrintable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
