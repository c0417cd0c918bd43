// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// compressed makes answers smaller where the browser can read that. Streams stay as they
// are: a change is to be seen at once.
func compressed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		to := gzip.NewWriter(w)
		defer to.Close()
		next(small{w, to}, r)
	}
}

// small is an answer whose body is compressed.
type small struct {
	http.ResponseWriter
	to io.Writer
}

// Write implements http.ResponseWriter.
func (s small) Write(p []byte) (int, error) { return s.to.Write(p) }
