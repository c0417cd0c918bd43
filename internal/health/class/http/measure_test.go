// SPDX-License-Identifier: Apache-2.0

package http_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	endpoint "github.com/fluxrollouts/rollout-controller/internal/health/class/http"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// marker is what servers write wherever they can. No outcome may contain it.
const marker = "s3cr3t-marker"

// asker is a test's client.
type asker struct {
	*testing.T
	guard   destination.Guard
	request endpoint.Request
	clock   *testingclock.FakePassiveClock
}

func nothingProtected(context.Context) ([]netip.Addr, error) { return nil, nil }

func newAsker(t *testing.T) *asker {
	t.Helper()
	return &asker{T: t,
		guard:   destination.Guard{AllowLoopback: true, Protected: nothingProtected},
		request: endpoint.Request{Timeout: 10 * time.Second},
		clock:   testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
	}
}

func (a *asker) ask(url string) (endpoint.Response, error) {
	a.Helper()
	list, err := destination.List{}.With(url)
	if err != nil {
		a.Fatal(err)
	}
	if a.request.Target, err = list.Allowed("spec.http.url", url); err != nil {
		a.Fatal(err)
	}
	return endpoint.Client{Guard: a.guard, Clock: a.clock}.Do(a.Context(), a.request)
}

// isSuccess is the default condition.
func isSuccess(response endpoint.Response) (bool, error) {
	return response.Status >= 200 && response.Status < 300, nil
}

func (a *asker) judge(url string, condition endpoint.Condition, policy v1alpha1.UnreachablePolicy) health.Outcome {
	a.Helper()
	response, err := a.ask(url)
	outcome := endpoint.Judge(response, err, condition, policy)
	if strings.Contains(fmt.Sprintf("%+v", outcome), marker) {
		a.Errorf("the outcome quotes the server: %+v", outcome)
	}
	return outcome
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestResponseIsJudged(t *testing.T) {
	const good, bad = v1alpha1.MeasurementGood, v1alpha1.MeasurementBad
	for name, test := range map[string]struct {
		status  int
		result  v1alpha1.MeasurementResult
		message string
	}{
		"success":                       {200, good, "status 200 OK"},
		"no content":                    {204, good, "status 204 No Content"},
		"a redirect, as it is":          {301, bad, "status 301 Moved Permanently"},
		"a redirect to another method":  {303, bad, "status 303 See Other"},
		"not found":                     {404, bad, "status 404 Not Found"},
		"an error":                      {500, bad, "status 500 Internal Server Error"},
		"a status that has no name":     {599, bad, "status 599"},
		"a redirect with the same body": {307, bad, "status 307 Temporary Redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, requests := newAsker(t), atomic.Int32{}
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				a.clock.SetTime(a.clock.Now().Add(42500 * time.Microsecond))
				w.Header().Set("Location", "http://169.254.169.254/"+marker)
				w.Header().Set("X-Marker", marker)
				w.Header().Set("Set-Cookie", "a="+marker)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(marker))
			})
			g.Expect(a.judge(url, isSuccess, "")).To(Equal(health.Outcome{Result: test.result, Message: test.message, Value: "42.5"}))
			g.Expect(requests.Load()).To(Equal(int32(1)))
		})
	}
}

// gone returns an address that nobody listens on.
func gone(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	return "http://" + listener.Addr().String()
}

// speaking returns the address of a server that writes a text for each connection, and
// closes it.
func speaking(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 4096))
			_, _ = connection.Write([]byte(text))
			_ = connection.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestUnreachableDestinationIsBadUnlessItCountsForNothing(t *testing.T) {
	release := make(chan struct{})
	hanging := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	slow := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(marker))
		w.(http.Flusher).Flush()
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the servers wait for their requests
	for name, test := range map[string]struct {
		url, message string
		timeout      time.Duration
	}{
		"refused":                 {url: gone(t), message: "the connection is refused"},
		"closed without a word":   {url: speaking(t, ""), message: "the connection is lost"},
		"closed in the middle":    {url: speaking(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+marker), message: "the connection is lost"},
		"silent":                  {url: hanging, timeout: 20 * time.Millisecond, message: "no answer within the timeout"},
		"silent after some bytes": {url: slow, timeout: 20 * time.Millisecond, message: "no answer within the timeout"},
		"a name without address":  {url: "http://no-such-host.invalid", message: "the name of the host does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := newAsker(t)
			if test.timeout > 0 {
				a.request.Timeout = test.timeout
			}
			g.Expect(a.judge(test.url, isSuccess, "")).To(Equal(health.Outcome{Result: v1alpha1.MeasurementBad, Message: test.message}))
			g.Expect(a.judge(test.url, isSuccess, v1alpha1.UnreachablePending)).To(Equal(health.Outcome{Result: v1alpha1.MeasurementError, Message: test.message}))
		})
	}
}

func TestWhatIsNotObservedIsAnError(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, test := range map[string]struct {
		url, message string
		change       func(*asker)
	}{
		"an unknown authority": {url: secure.URL, message: "the certificate is signed by an unknown authority: put ca.crt into the Secret of certSecretRef"},
		"no TLS":               {url: strings.Replace(plain, "http://", "https://", 1), message: "the server does not speak TLS: use the scheme http"},
		"no HTTP":              {url: speaking(t, marker+"\r\n\r\n"), message: "the request failed: see the log of the controller"},
		"too many headers":     {url: speaking(t, "HTTP/1.1 200 OK\r\nX-Marker: "+strings.Repeat(marker, 8<<10)+"\r\n\r\n"), message: "the request failed: see the log of the controller"},
		"an address that is never allowed": {url: plain, message: "the destination has an address that may never be used: a loopback address",
			change: func(a *asker) { a.guard.AllowLoopback = false }},
		"unknown addresses of the API server": {url: plain, message: "no request is sent, because this controller cannot read what it needs: see its log",
			change: func(a *asker) {
				a.guard.Protected = func(context.Context) ([]netip.Addr, error) {
					return nil, destination.NewReadError("get it", context.DeadlineExceeded)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t)
			if test.change != nil {
				test.change(a)
			}
			NewWithT(t).Expect(a.judge(test.url, isSuccess, "")).To(Equal(health.Outcome{Result: v1alpha1.MeasurementError, Message: test.message}))
		})
	}
}

func TestServiceWithoutReadyPodsIsUnreachable(t *testing.T) {
	g := NewWithT(t)
	err := fmt.Errorf("find it: %w", destination.ErrNoEndpoint)
	g.Expect(endpoint.Judge(endpoint.Response{}, err, isSuccess, "")).To(Equal(
		health.Outcome{Result: v1alpha1.MeasurementBad, Message: "no Pod of the Service is ready"}))
	err = destination.NewReadError("get Service team/shop", context.DeadlineExceeded)
	g.Expect(endpoint.Judge(endpoint.Response{}, err, isSuccess, "").Result).To(Equal(v1alpha1.MeasurementError))
}

func TestErrorOfAConditionIsShownOnlyInOurWords(t *testing.T) {
	g := NewWithT(t)
	a := newAsker(t)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(marker)) })
	quoting := func(r endpoint.Response) (bool, error) { return false, errors.New("no number: " + r.Body) }
	g.Expect(a.judge(url, quoting, "")).To(Equal(health.Outcome{Result: v1alpha1.MeasurementError,
		Message: "the condition cannot be evaluated for this response: use has() for fields that may be missing"}))
	ours := func(endpoint.Response) (bool, error) { return false, probe.Fault("it divides by zero") }
	g.Expect(a.judge(url, ours, "").Message).To(Equal("it divides by zero"))
}

func TestBodyIsCutAfterDecoding(t *testing.T) {
	const size = 64 << 10
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		length  int
	}{
		"a short one": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, 2},
		"one that just fits": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, size))
		}, size},
		"one without end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("x", 4096))); err != nil {
					return
				}
			}
		}, size},
		"a gzip bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			bomb, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			for range 1 << 10 {
				if _, err := bomb.Write(make([]byte, size)); err != nil {
					return
				}
			}
			_ = bomb.Close()
		}, size},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response, err := newAsker(t).ask(serve(t, test.handler))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(response.Body)).To(Equal(test.length))
		})
	}
}

func TestRequestIsWhatTheHealthCheckSays(t *testing.T) {
	g := NewWithT(t)
	a := newAsker(t)
	var got *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("X-Version", "1.4.0")
	})
	headers, err := probe.Headers("spec.http", []v1alpha1.Header{{Name: "x-scope-orgid", Value: "shop"}})
	g.Expect(err).NotTo(HaveOccurred())
	a.request.Headers, a.request.Method = headers, http.MethodHead
	t.Setenv("HTTP_PROXY", "http://"+marker+".invalid") // proxies are never used
	response, err := a.ask(url + "/healthz?v=1.4.0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Method + " " + got.RequestURI).To(Equal("HEAD /healthz?v=1.4.0"))
	g.Expect(got.Header).To(Equal(http.Header{"User-Agent": {"rollout-controller"}, "X-Scope-Orgid": {"shop"}}))
	g.Expect(response.Headers).To(HaveKeyWithValue("X-Version", []string{"1.4.0"}))
}
