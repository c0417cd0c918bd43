// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// source counts what reaches it.
type source struct{ asked int }

func (s *source) Me(context.Context) (any, error) { s.asked++; return "me", nil }
func (s *source) Rollout(_ context.Context, key types.NamespacedName) (any, error) {
	s.asked++
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "rollouts"}, key.Name, errors.New("not yours"))
}
func (s *source) Pipelines(context.Context) (any, error) { s.asked++; return []string{}, nil }
func (s *source) Incidents(context.Context) (any, error) { s.asked++; return []string{}, nil }
func (s *source) Calendar(context.Context) (any, error)  { s.asked++; return []string{}, nil }

type served struct {
	*Server
	Keys    *Keys
	source  *source
	address string
	session string
	said    []string
}

// serve serves a page to which somebody has logged in. Without actions it only shows.
func serve(t *testing.T, actions ...Actions) *served {
	t.Helper()
	at := time.Now()
	started := at
	s := &served{source: &source{}}
	s.Keys = NewKeys(at, s.source)
	s.Server = &Server{Authenticator: s.Keys, Board: NewBoard(),
		Now: func() time.Time { return started.Add(time.Minute / 2) }, Say: func(text string) { s.said = append(s.said, text) }}
	for _, a := range actions {
		s.Acts, s.Keys = true, s.Keys.Acting(a)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.HTTP(listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	s.address = listener.Addr().String()
	if s.session, err = s.Keys.Exchange(strings.TrimPrefix(s.Keys.Fragment(), "#k="), at); err != nil {
		t.Fatal(err)
	}
	return s
}

// raw sends the bytes of a request and returns the status line with the headers.
func (s *served) raw(t *testing.T, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s %s", response.StatusCode, response.Header, body)
}

// request returns a request with the session; headers replace or follow.
func (s *served) request(line, host string, headers ...string) string {
	if host != "" {
		headers = append(headers, "Host: "+host)
	}
	return line + " HTTP/1.1\r\nConnection: close\r\n" + sessionHeader + ": " + s.session + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

// Case 3.
func TestOnlyItsOwnHostIsAnswered(t *testing.T) {
	s := serve(t)
	_, port, _ := net.SplitHostPort(s.address)
	for host, want := range map[string]string{
		s.address: "200", "localhost:" + port: "200", "evil.example:" + port: "421", "127.0.0.1.nip.io": "421", "127.0.0.1:1": "421",
		"127.0.0.1": "421", "": "400", s.address + "\r\nHost: " + s.address: "400",
	} {
		s.source.asked = 0
		got := s.raw(t, s.request("GET /api/v1/me", host))
		if !strings.HasPrefix(got, want) || (want != "200") != (s.source.asked == 0) {
			t.Errorf("Host %q: %s, %d reads, want %s", host, got, s.source.asked, want)
		}
	}
	if got := s.raw(t, s.request("GET http://evil.example/api/v1/me", s.address)); !strings.HasPrefix(got, "421") {
		t.Errorf("absolute address: %s", got)
	}
}

// Cases 2 and 7.
func TestWithoutTheSessionNothingIsRead(t *testing.T) {
	s := serve(t)
	own := s.session
	for _, session := range []string{"", own[1:], own + "A", flipped(own), strings.Repeat("x", 4000)} {
		for _, path := range []string{"me", "fleet", "fleet/stream", "rollouts/a/b", "pipelines", "incidents", "calendar", "other"} {
			s.session = session
			if got := s.raw(t, s.request("GET /api/v1/"+path, s.address, "X-Forwarded-User: admin", "Impersonate-User: admin")); !strings.HasPrefix(got, "401") {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	if s.source.asked > 0 {
		t.Errorf("%d reads", s.source.asked)
	}
}

// Case 2.
func TestKeyIsGoodOnceAndSoon(t *testing.T) {
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	k := NewKeys(now, nil)
	key := strings.TrimPrefix(k.Fragment(), "#k=")
	if _, err := k.Exchange("", now); !errors.Is(err, errWrongKey) || k.Admits("") {
		t.Errorf("no key: %v", err)
	}
	if _, err := k.Exchange(key, now.Add(61*time.Second)); !errors.Is(err, errKeyLate) {
		t.Errorf("late: %v", err)
	}
	session, err := k.Exchange(key, now.Add(time.Minute))
	if err != nil || !k.Admits(session) || k.Admits(key) || len(session) != 43 {
		t.Errorf("in time: %q %v", session, err)
	}
	if _, err := k.Exchange(key, now); !errors.Is(err, errKeyUsed) {
		t.Errorf("twice: %v", err)
	}
}

// Cases 2, 14 and 18: a login that is refused, and is said in the terminal if the key was wrong.
func TestLoginRefuses(t *testing.T) {
	s := serve(t)
	used := `{"key":"` + strings.TrimPrefix(s.Keys.Fragment(), "#k=") + `"}`
	for name, c := range map[string]struct {
		body, want string
		headers    []string
	}{
		"used":         {used, "401", []string{"Content-Type: application/json"}},
		"plain text":   {used, "415", []string{"Content-Type: text/plain"}},
		"another site": {used, "403", []string{"Content-Type: application/json", "Sec-Fetch-Site: cross-site"}},
		"other port":   {used, "403", []string{"Content-Type: application/json", "Origin: http://127.0.0.1:1"}},
		"sandbox":      {used, "403", []string{"Content-Type: application/json", "Origin: null"}},
		"17 KiB":       {`{"key":"` + strings.Repeat("x", 17<<10) + `"}`, "401", []string{"Content-Type: application/json"}},
	} {
		headers := append(c.headers, fmt.Sprintf("Content-Length: %d", len(c.body)))
		if got := s.raw(t, s.request("POST /api/v1/session", s.address, headers...)+c.body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if len(s.said) != 2 || !strings.Contains(strings.Join(s.said, "\n"), "used before") {
		t.Errorf("the terminal says %q", s.said)
	}
}

// Cases 2 and 5: wrong keys are limited, and the right one is refused meanwhile: it could be
// found by trying otherwise.
func TestWrongLoginsAreLimited(t *testing.T) {
	s := serve(t)
	s.Keys.session = ""
	login := func(key string) string {
		body := `{"key":"` + key + `"}`
		return s.raw(t, s.request("POST /api/v1/session", s.address, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))+body)
	}
	for i := range mostFailures {
		if got := login("wrong"); !strings.HasPrefix(got, "401") {
			t.Errorf("%d: %s", i, got)
		}
	}
	right := strings.TrimPrefix(s.Keys.Fragment(), "#k=")
	if got := login(right); !strings.HasPrefix(got, "429") {
		t.Errorf("the right one: %s", got)
	}
	s.attempts.since = s.attempts.since.Add(-time.Minute)
	if got := login(right); !strings.HasPrefix(got, "200") {
		t.Errorf("after a minute: %s", got)
	}
}

// Case 17.
func TestOddPathsAndMethodsLeadNowhere(t *testing.T) {
	s := serve(t)
	for _, line := range []string{
		"GET /../x", "GET /%2e%2e%2fx", "GET //evil.example/", "GET /a\\b", "GET /a%00", "GET /" + strings.Repeat("x", 8<<10), "GET /api/v1/rollouts/a/B_",
		"get /api/v1/me", "PUT /api/v1/me", "TRACE /api/v1/me",
	} {
		got := s.raw(t, s.request(line, s.address))
		if !strings.HasPrefix(got, "400") && !strings.HasPrefix(got, "404") || strings.Contains(got, "Location") {
			t.Errorf("%.40s: %s", line, got)
		}
	}
	if s.source.asked > 0 {
		t.Errorf("%d reads", s.source.asked)
	}
}

func TestEachAnswerHasTheHeaders(t *testing.T) {
	s := serve(t)
	for path, want := range map[string]string{"me": "200", "rollouts/a/b": "403", "other": "404"} {
		got := s.raw(t, s.request("GET /api/v1/"+path, s.address))
		for _, part := range []string{"require-trusted-types-for 'script'", "frame-ancestors 'none'", "nosniff", "no-referrer", "no-store", "same-origin"} {
			if !strings.HasPrefix(got, want) || !strings.Contains(got, part) || strings.Contains(got, "Access-Control") || strings.Contains(got, "Cookie") {
				t.Errorf("%s: %s, want %s and %s", path, got, want, part)
			}
		}
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, ip := range []string{"0.0.0.0", "::", "192.0.2.1"} {
		if _, err := (&Server{}).HTTP(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}); err == nil {
			t.Errorf("%s is served", ip)
		}
	}
}

// Case 18: the fifth stream ends the first one, and each gets what changed.
func TestStreamsAreCounted(t *testing.T) {
	s := serve(t)
	s.Board.epoch = "e"
	_, _, revision := s.Board.All(Everything())
	var all []io.Reader
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	for range mostStreams + 1 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/fleet/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(sessionHeader, s.session)
		r.Header.Set("Last-Event-ID", revision)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		all = append(all, response.Body)
	}
	if rest, err := io.ReadAll(all[0]); err != nil || string(rest) != ": beat\n\n" {
		t.Errorf("the first one: %q %v", rest, err)
	}
	s.Board.Put(Row{Namespace: "a", Name: "<img onerror>"})
	for _, body := range all[1:] {
		text := make([]byte, 400)
		n, err := io.ReadAtLeast(body, text, 100)
		if err != nil || !strings.Contains(string(text[:n]), "id: e:1\nevent: rows\n") || strings.Contains(string(text[:n]), "<img") {
			t.Errorf("%s %v", text[:n], err)
		}
	}
}

// The files are for everybody on this machine, and have nothing of a cluster.
func TestEachAddressOfThePageIsAnswered(t *testing.T) {
	s := serve(t)
	s.session = ""
	for path, want := range map[string]string{
		"/": "text/html", "/pipelines": "text/html", "/incidents": "text/html", "/calendar": "text/html", "/rollouts/shop/shop": "text/html", "/app.js": "text/javascript", "/app.css": "text/css",
	} {
		got := s.raw(t, s.request("GET "+path, s.address))
		if !strings.HasPrefix(got, "200") || !strings.Contains(got, want) || !strings.Contains(got, "default-src 'none'") {
			t.Errorf("%s: %.200s, want %s", path, got, want)
		}
	}
	if got := s.raw(t, s.request("GET /app.js", s.address, "Accept-Encoding: gzip")); !strings.Contains(got, "Content-Encoding:[gzip]") || len(got) > 40<<10 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

// What is served loads nothing from elsewhere, and makes no text a part of the page.
func TestAssetsAskNobodyElse(t *testing.T) {
	for name := range files {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"eval(", "new Function", "document.write", "https://", "@import", "<style", "style="} {
			if strings.Contains(string(content), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}

func TestSourcesMakeNoTextAPartOfThePage(t *testing.T) {
	names, err := filepath.Glob("../../../web/src/*")
	if err != nil || len(names) < 10 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"nnerHTML", "outerHTML", "insertAdjacent", "createContextualFragment", "style=", "javascript:"} {
			if strings.Contains(string(content), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}

// flipped returns a session with one bit changed.
func flipped(session string) string { return string(session[0]^1) + session[1:] }
