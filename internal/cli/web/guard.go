// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of a request.
const (
	largestBody    = 16 << 10
	largestHeaders = 16 << 10
	longestPath    = 2 << 10
)

// policy lets the page load what this server has, and nothing else. Text of objects cannot
// become a script even if a mistake puts it into the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded checks each request before a handler sees it. A name that leads to this address
// without being ours is that of a web site that tries to read the page through the
// browser of the user. Who asks for another host is told where the page is.
func guarded(hosts []string, where string, next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "this request comes from another site")
	}))
	next = origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		switch {
		case !slices.Contains(hosts, r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this server answers for %s", where)
		case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
			refuse(w, http.StatusBadRequest, "only GET, HEAD and POST are known")
		case !isPlain(r.URL.EscapedPath()):
			refuse(w, http.StatusNotFound, "there is no such page")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, largestBody)
			next.ServeHTTP(w, r)
		}
	})
}

// isPlain reports whether a path is written in the only way that is answered. Another one
// would be redirected, or could leave the page's own files.
func isPlain(escaped string) bool {
	return len(escaped) <= longestPath && strings.HasPrefix(escaped, "/") && path.Clean(escaped) == escaped && !strings.ContainsAny(escaped, "%\\\x00")
}

func protect(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
}

// refuse answers with an error, as an API server does.
func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	answer(w, code, failure(code, format, args...))
}

func failure(code int, format string, args ...any) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: fmt.Sprintf(format, args...),
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // who does not read the answer gets none
}
