// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind of a fault.
type kind int

const (
	none   kind = iota // the request goes through, and so does its answer
	refuse             // the request is answered here, the API server never sees it
	hold               // the request waits for a while, and is then refused
	drop               // the connection breaks before the API server has seen the request
	lose               // the API server does it, and the connection breaks before the answer
)

// Fault is what happens to one request. The zero Fault is none.
type Fault struct {
	kind kind
	code int
	wait time.Duration
	then func()
}

// Refuse answers with an error as the API server words it. The client is asked
// to come back after a while, unless that is zero.
func Refuse(code int, retryAfter time.Duration) Fault {
	return Fault{kind: refuse, code: code, wait: retryAfter}
}

// Hold lets the request wait, and then answers that it took too long (504).
func Hold(wait time.Duration) Fault {
	return Fault{kind: hold, code: http.StatusGatewayTimeout, wait: wait}
}

// Drop breaks off before the API server has seen the request.
func Drop() Fault { return Fault{kind: drop} }

// Lose lets the API server carry the request out, and loses its answer.
func Lose() Fault { return Fault{kind: lose} }

// Then does something just before the connection breaks.
func (f Fault) Then(do func()) Fault {
	f.then = do
	return f
}

// None says whether nothing happens to the request.
func (f Fault) None() bool { return f.kind == none }

// String names the fault.
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
	case lose:
		return "answer lost"
	}
	return "unknown fault"
}

// reasons are those with which the API server explains a code.
var reasons = map[int]metav1.StatusReason{
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

// status is the object that an error consists of.
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
