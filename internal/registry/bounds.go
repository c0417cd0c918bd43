// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The owner of a registry decides what it answers, and all tenants share the memory of
// the process: three bytes of an answer, {},, need 136 bytes after decoding.
const (
	// mostOfImage is how many bytes a manifest or a config may have. The distribution
	// specification allows manifests of four megabytes. Those of images have some
	// kilobytes, and promotions do not depend on their content.
	mostOfImage = 512 << 10
	// partsOfImage is how many elements a manifest or a config may have.
	partsOfImage = 20_000
	// mostOfTags is how many bytes a page of tags may have.
	mostOfTags = 4 << 20
	// partsOfTags is how many elements a page of tags may have.
	partsOfTags = mostRead + 100
	// mostOfHeader is how many bytes the header of an answer may have.
	mostOfHeader = 64 << 10
)

// errTooLarge means that an answer is too large to be read.
var errTooLarge = errors.New("the answer is larger than any that is read")

// bounded limits the size of answers.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body := &counted{ReadCloser: response.Body, bytes: mostOfImage, parts: partsOfImage}
	if strings.HasSuffix(request.URL.Path, "/tags/list") {
		body.bytes, body.parts = mostOfTags, partsOfTags
	}
	response.Body = body
	return response, nil
}

// counted reads JSON up to a number of bytes, and up to a number of elements in its
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
	return n, err
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
