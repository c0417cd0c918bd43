// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is the kind of a fault.
type kind int

const (
	none   kind = iota // the request passes, and so does its response
	refuse             // the wire answers the request, the API server never sees it
	hold               // the request waits for a while, and is then refused
	drop               // the connection breaks before the API server has seen the request
	lost               // the API server processes it, and the connection breaks before the response
)

// Fault happens to one request. The zero Fault is no fault.
type Fault struct {
	kind kind
	code int
	wait time.Duration
	then func()
}

// Refuse answers with an error in the format of the API server. The client is asked to
// retry after a while, unless retryAfter is zero.
func Refuse(code int, retryAfter time.Duration) Fault {
	return Fault{kind: refuse, code: code, wait: retryAfter}
}

// Hold delays the request, and then answers that it took too long (504).
func Hold(wait time.Duration) Fault {
	return Fault{kind: hold, code: http.StatusGatewayTimeout, wait: wait}
}

// Drop breaks the connection before the API server has seen the request.
func Drop() Fault { return Fault{kind: drop} }

// Lose lets the API server process the request, and loses its response.
func Lose() Fault { return Fault{kind: lost} }

// Then calls a function just before the connection breaks.
func (f Fault) Then(do func()) Fault {
	f.then = do
	return f
}

// Serve lets the fault happen to a request that a handler would answer.
func (f Fault) Serve(out http.ResponseWriter, in *http.Request, handler http.Handler) {
	f.happen(out, in,
		func() { handler.ServeHTTP(out, in) },
		func() { handler.ServeHTTP(httptest.NewRecorder(), in.WithContext(context.WithoutCancel(in.Context()))) })
}

// happen lets the fault happen to a request that can pass, or pass without its response.
func (f Fault) happen(out http.ResponseWriter, in *http.Request, pass, lose func()) {
	switch f.kind {
	case none:
		pass()
		return
	case refuse:
		answer(out, f.code, f.wait)
		return
	case hold:
		pause(in.Context(), f.wait)
		answer(out, f.code, 0)
		return
	case drop:
	case lost:
		lose()
	}
	if f.then != nil {
		f.then()
	}
	panic(http.ErrAbortHandler)
}

// None reports whether nothing happens to the request.
func (f Fault) None() bool { return f.kind == none }

// String returns the name of the fault.
func (f Fault) String() string {
	switch f.kind {
	case none:
		return "no fault"
	case refuse:
		return strconv.Itoa(f.code)
	case hold:
		return fmt.Sprintf("held for %s, then %d", f.wait, f.code)
	case drop:
		return "dropped"
	case lost:
		return "answer lost"
	}
	return "unknown fault"
}

// reasons maps status codes to the reasons of the API server.
var reasons = map[int]metav1.StatusReason{
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

// status returns the object in the body of an error response.
func status(code int, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: message,
	}
}

// answer refuses a request.
func answer(w http.ResponseWriter, code int, retryAfter time.Duration) {
	said := status(code, "injected: "+http.StatusText(code))
	if retryAfter > 0 {
		seconds := max(int32(retryAfter.Seconds()), 1)
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
		said.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(said)
}
