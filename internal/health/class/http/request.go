// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Client sends requests.
type Client struct {
	Guard destination.Guard
	Clock clock.PassiveClock
}

// Request is one request.
type Request struct {
	// Options contain the URL. The size of a body that they contain has no meaning.
	probe.Options
	// Method is GET or HEAD. An empty text is GET.
	Method string
	// Timeout is the time until the response has been read.
	Timeout time.Duration
}

// Response is what a condition judges. Nothing of it may be shown, except Status and
// Latency.
type Response struct {
	// Status is the status code.
	Status int
	// Body has at most 64 KiB. Bytes that are not UTF-8 are question marks.
	Body string
	// Headers have names in the canonical form of Go, such as Content-Type.
	Headers map[string][]string
	// Latency is the time from the start of the request, including the connection, until
	// the response has been read.
	Latency time.Duration
}

// Do sends a request and reads the response. It does not follow redirects. The text of an
// error may contain what the server has written: probe.Cause says what may be shown.
func (c Client) Do(ctx context.Context, request Request) (Response, error) {
	request.MostOfBody = health.MostOfBody
	session, err := probe.Open(ctx, c.Guard, request.Options)
	if err != nil {
		return Response{}, err
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	prepared, err := http.NewRequestWithContext(ctx, request.method(), request.Target.URL().String(), nil)
	if err != nil {
		return Response{}, fmt.Errorf("prepare the request: %w", err)
	}
	return c.send(session.Client(), prepared)
}

func (r Request) method() string {
	if r.Method == http.MethodHead {
		return http.MethodHead
	}
	return http.MethodGet
}

func (c Client) send(client *http.Client, request *http.Request) (Response, error) {
	begun := c.Clock.Now()
	answer, err := client.Do(request)
	if err != nil {
		return Response{}, fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, probe.ErrTooLarge) {
		return Response{}, fmt.Errorf("read the response: %w", err)
	}
	return Response{
		Status: answer.StatusCode, Body: text(body), Headers: answer.Header, Latency: c.Clock.Since(begun),
	}, nil
}

// text returns a body as valid UTF-8, which is no longer than the body.
func text(body []byte) string { return strings.ToValidUTF8(string(body), "?") }
