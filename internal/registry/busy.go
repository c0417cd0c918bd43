// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// mostOfReport is how many bytes the manifest of a report may have: the envelope in it,
// where four bytes stand for three, and some descriptors.
const mostOfReport = 96 << 10

// Busy means that a registry asks its clients to wait.
type Busy struct {
	// Status is the status of its answer: 429 or 503.
	Status int
	// After is for how long to wait, at most an hour; 0 if the registry did not say.
	After time.Duration
}

// Error says for how long to wait.
func (b *Busy) Error() string {
	text := fmt.Sprintf("the registry asks to wait: %d %s", b.Status, http.StatusText(b.Status))
	if b.After > 0 {
		text += ", for " + b.After.String()
	}
	return text
}

// errLoggedOut means that a session has ended.
var errLoggedOut = errors.New("the registry does not accept the login of before")

// reportAnswers limits the number of requests and the size of answers, and finds those
// that ask to wait or to log in.
type reportAnswers struct {
	http.RoundTripper
	limits *limits
	// refused is set by an answer that asks to log in.
	refused atomic.Bool
	// kept is set once others use the session. Then it must not change any more: to renew
	// its token is not safe while others use it, and it would grow with each scope that the
	// registry asks for.
	kept atomic.Bool
}

func (a *reportAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := a.limits.wait(request.Context(), request.URL.Host); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := a.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := a.rejects(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	response.Body = &counted{ReadCloser: response.Body, bytes: mostOfReport, parts: partsOfImage}
	return response, nil
}

func (a *reportAnswers) rejects(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return &Busy{Status: response.StatusCode, After: retryAfter(response.Header)}
	case http.StatusUnauthorized:
		a.refused.Store(true)
		if a.kept.Load() {
			return errLoggedOut
		}
	}
	return nil
}

// retryAfter returns for how long a registry asks to wait. If it names a time, that is
// compared with its own clock.
func retryAfter(header http.Header) time.Duration {
	const longest = time.Hour
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(seconds, int(longest/time.Second)))) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, min(longest, until.Sub(now)))
}
