// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// userAgent is how the controller names itself to servers.
const userAgent = "rollout-controller"

// errElsewhere means that a request would leave the target. No request does: this is the
// last line of defence for credentials.
var errElsewhere = errors.New("the request is for another host than the destination")

// Options are what requests to a target are sent with.
type Options struct {
	Target      destination.Target
	Credentials Credentials
	// Headers are sent with each request. Get them from Headers.
	Headers http.Header
	// MostOfBody is how many bytes of a body are read, after decoding.
	MostOfBody int64
}

// Session sends the requests of one measurement. It uses one connection of its own, no
// proxy and no cookies, follows no redirects, and speaks HTTP/1.1. Close it.
type Session struct {
	options   Options
	transport *http.Transport
	status    int
	date      time.Time
}

// Open returns a session. Nothing is sent yet.
func Open(ctx context.Context, guard destination.Guard, options Options) (*Session, error) {
	dialer, err := guard.Dialer(ctx, options.Target)
	if err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &Session{options: options, transport: &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        options.Credentials.certificates,
		Protocols:              protocols,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: health.MostOfHeaders,
	}}, nil
}

// Client returns a client that sends its requests through the session.
func (s *Session) Client() *http.Client {
	return &http.Client{
		Transport:     s,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Status returns the status code of the last response. It is 0 if there was none.
func (s *Session) Status() int { return s.status }

// Date returns when the last response was sent, by the clock of the server. It is zero if the
// response does not say so.
func (s *Session) Date() time.Time { return s.date }

// Close closes the connection.
func (s *Session) Close() { s.transport.CloseIdleConnections() }

// RoundTrip sends a request to the target, with headers and credentials. The body of the
// response ends with ErrTooLarge if it has too many bytes.
func (s *Session) RoundTrip(request *http.Request) (*http.Response, error) {
	s.status, s.date = 0, time.Time{}
	if !s.options.Target.Same(request.URL) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errElsewhere
	}
	response, err := s.transport.RoundTrip(s.complete(request))
	if err != nil {
		return nil, err
	}
	s.status = response.StatusCode
	s.date, _ = http.ParseTime(response.Header.Get("Date")) // zero if there is none
	response.Body = &bounded{ReadCloser: response.Body, left: s.options.MostOfBody}
	return response, nil
}

// complete returns a copy of a request that has everything that is sent with it.
func (s *Session) complete(request *http.Request) *http.Request {
	request = request.Clone(request.Context())
	for name, values := range s.options.Headers {
		request.Header[name] = values
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", userAgent)
	}
	s.options.Credentials.sign(request)
	return request
}
