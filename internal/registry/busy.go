// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/http"
	"strconv"
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

// reportAnswers limits the size of answers, and finds those that ask to wait.
type reportAnswers struct{ http.RoundTripper }

func (a reportAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the transport's
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		_ = response.Body.Close()
		return nil, &Busy{Status: response.StatusCode, After: retryAfter(response.Header)}
	}
	response.Body = &counted{ReadCloser: response.Body, bytes: mostOfReport, parts: partsOfImage}
	return response, nil
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
