// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"io"
	"net/http"

	"github.com/fluxrollouts/rollout-controller/internal/health/limit"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

const (
	// mostObjects is how many JSON objects an answer may have. Each series has two, and
	// some more if it has native histograms.
	mostObjects = 10 * limit.Series
	// mostElements is how many commas outside of strings an answer may have: two for each
	// number, and one for each label.
	mostElements = 3*limit.Series*limit.Points + 100*limit.Series
)

// sparse is a transport whose bodies end with probe.ErrTooLarge if they have more parts
// than any answer needs. Decoded, an empty object takes twenty times as many bytes as in
// JSON: a body that is small enough could still use up the memory of the controller.
type sparse struct{ http.RoundTripper }

// RoundTrip returns a response whose body is counted while it is read.
func (s sparse) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the transport's
	}
	response.Body = &countedBody{ReadCloser: response.Body}
	return response, nil
}

type countedBody struct {
	io.ReadCloser
	objects, elements int
	inString, escaped bool
}

func (b *countedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	for _, char := range into[:n] {
		b.count(char)
	}
	if b.objects > mostObjects || b.elements > mostElements {
		return 0, probe.ErrTooLarge
	}
	return n, err //nolint:wrapcheck // it is the body's, and io.EOF has a meaning
}

func (b *countedBody) count(char byte) {
	switch {
	case b.escaped:
		b.escaped = false
	case b.inString && char == '\\':
		b.escaped = true
	case char == '"':
		b.inString = !b.inString
	case b.inString:
	case char == '{':
		b.objects++
	case char == ',':
		b.elements++
	}
}
