// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
)

// ErrTooLarge means that a response has more bytes than are read.
var ErrTooLarge = errors.New("the response is too large")

// bounded is a body of which only so many bytes are read, after decoding. It returns
// ErrTooLarge if there are more.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read never reads more than one byte beyond the limit.
func (b *bounded) Read(into []byte) (int, error) {
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if int64(n) > b.left {
		n, b.left = int(b.left), 0
		return n, ErrTooLarge
	}
	b.left -= int64(n)
	return n, err
}
