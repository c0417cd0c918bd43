// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Anyone who runs a registry decides what it answers, and all tenants share the memory of
// the process: three bytes of an answer, {},, are 136 once they are decoded.
const (
	// mostOfImage is how many bytes a manifest or a config may have. The distribution
	// specification lets manifests have four megabytes; those of images have some
	// kilobytes, and promotions do not depend on what they say.
	mostOfImage = 512 << 10
	// partsOfImage is how many elements there may be in it.
	partsOfImage = 20_000
	// mostOfTags is how many bytes a page of tags may have.
	mostOfTags = 4 << 20
	// partsOfTags is how many elements there may be in it.
	partsOfTags = mostRead + 100
	// mostOfHeader is how many bytes come before an answer.
	mostOfHeader = 64 << 10
)

// errTooLarge means that an answer is larger than any that is read.
var errTooLarge = errors.New("the answer is larger than any that is read")

// bounded cuts off answers that are larger than any needs to be.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the transport's
	}
	body := &counted{ReadCloser: response.Body, bytes: mostOfImage, parts: partsOfImage}
	if strings.HasSuffix(request.URL.Path, "/tags/list") {
		body.bytes, body.parts = mostOfTags, partsOfTags
	}
	response.Body = body
	return response, nil
}

// counted reads a text of JSON up to so many bytes, and up to so many elements of its
// objects and lists.
type counted struct {
	io.ReadCloser
	bytes, parts    int
	quoted, escaped bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes -= n
	for _, b := range p[:n] {
		c.count(b)
	}
	switch {
	case c.bytes < 0:
		return 0, fmt.Errorf("%w: it has too many bytes", errTooLarge)
	case c.parts < 0:
		return 0, fmt.Errorf("%w: it has too many elements", errTooLarge)
	}
	return n, err //nolint:wrapcheck // as the reader has it
}

func (c *counted) count(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case b == '"':
		c.quoted = !c.quoted
	case c.quoted:
		c.escaped = b == '\\'
	case b == '{' || b == '[' || b == ',':
		c.parts--
	}
}
