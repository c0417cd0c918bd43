// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
)

// result is the result of one attempt.
type result string

const (
	accepted  result = "accepted"  // the endpoint accepted the event
	duplicate result = "duplicate" // the endpoint received the same event a moment ago
	rejected  result = "rejected"  // the endpoint will never accept this event
	failed    result = "failed"    // no answer, or a temporary error: worth another attempt
)

// post makes one attempt.
func (s *Sender) post(ctx context.Context, event eventv1.Event) (result, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return rejected, fmt.Errorf("write the event as JSON: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return rejected, fmt.Errorf("prepare the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return failed, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<12)) // allows the connection to be reused
	return judge(response.StatusCode), fmt.Errorf("the answer was %s", response.Status)
}

// judge evaluates a status code. notification-controller answers 429 to an event that it
// already received within its rate-limit interval.
func judge(code int) result {
	switch {
	case code < 300:
		return accepted
	case code == http.StatusTooManyRequests:
		return duplicate
	case code >= 500 || code == http.StatusRequestTimeout:
		return failed
	}
	return rejected
}
