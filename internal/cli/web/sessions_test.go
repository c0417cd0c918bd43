// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// inCluster is a page for several users: the token of each is his name. It sees the time of
// the test.
type inCluster struct {
	*Server
	*Sessions
	handler http.Handler
	source  *source
	granted *roles
	opened  []string
	away    error
	said    []string
}

func newInCluster(t *testing.T) *inCluster {
	t.Helper()
	c := &inCluster{source: &source{}, granted: &roles{may: map[string]bool{}}}
	c.Sessions = &Sessions{Open: func(_ context.Context, token string) (*Viewer, error) {
		c.opened = append(c.opened, token)
		name, _, _ := strings.Cut(token, ".")
		if !strings.HasPrefix(name, "user") || c.away != nil {
			return nil, errors.Join(c.away, apierrors.NewUnauthorized("secret reasons"))
		}
		rights := &Rights{May: c.granted.review, Board: c.Board, Now: time.Now}
		return &Viewer{Name: name, Source: c.source, Sight: rights.Sight}, nil
	}}
	c.Server = &Server{Authenticator: c.Sessions, Board: NewBoard(), Now: time.Now, Say: func(text string) { c.said = append(c.said, text) }}
	server, err := c.HTTPS(&url.URL{Scheme: "https", Host: "rollouts.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	c.handler = server.Handler
	return c
}

// ask sends a request as a browser does. Headers come as Name: value.
func (c *inCluster) ask(method, path, body, cookie string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://rollouts.example.com"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if cookie != "" {
		r.Header.Set("Cookie", sessionCookie+"="+cookie)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

func (c *inCluster) login(token string, headers ...string) *httptest.ResponseRecorder {
	return c.ask("POST", "/api/v1/session", `{"token":"`+token+`"}`, "", headers...)
}

// enter returns the cookie of a new session.
func (c *inCluster) enter(t *testing.T, token string) string {
	t.Helper()
	answer := c.login(token)
	cookies := answer.Result().Cookies()
	if answer.Code != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("%s cannot log in: %s", token, answer.Body)
	}
	return cookies[0].Value
}

// routes are those that have something of a cluster.
var routesOfCluster = []string{"me", "fleet", "fleet/stream", "rollouts/a/b", "pipelines", "incidents", "calendar", "other"}

// Case 5: whatever is wrong with a token, the answer is the same, and five in a minute are
// enough. What cannot be a token is not sent to the API server.
func TestTokenThatIsNotAcceptedLogsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInCluster(t)
		var answers []string
		for _, token := range []string{"", "of.another.cluster", "spaces in it", `x\r\nImpersonate-User: admin`, strings.Repeat("x", 1<<20)} {
			got := c.login(token)
			if answers = append(answers, got.Body.String()); got.Code != http.StatusUnauthorized || len(got.Result().Cookies()) > 0 {
				t.Errorf("%.30q: %d %s", token, got.Code, got.Body)
			}
			if answers[0] != got.Body.String() || strings.Contains(got.Body.String(), "secret") {
				t.Errorf("%.30q: %s", token, got.Body)
			}
		}
		if len(c.opened) != 1 {
			t.Errorf("the API server was asked for %.100q", c.opened)
		}
		if got := c.login("user1"); got.Code != http.StatusTooManyRequests {
			t.Errorf("the sixth: %d %s", got.Code, got.Body)
		}
		if got := c.login("user1", "X-Forwarded-For: 10.0.0.1"); got.Code != http.StatusTooManyRequests {
			t.Errorf("who names another address: %d %s", got.Code, got.Body)
		}
		time.Sleep(time.Minute)
		c.enter(t, "user1")
		for _, text := range c.said {
			if strings.Contains(text, "of.another.cluster") {
				t.Errorf("a token is logged: %s", text)
			}
		}
	})
}

// An API server that is away refuses nobody, and lets nobody in.
func TestAPIServerThatIsAwayIsNoRefusal(t *testing.T) {
	c := newInCluster(t)
	c.away = errors.New("no route to host")
	c.Open = func(context.Context, string) (*Viewer, error) { return nil, c.away }
	for range mostFailures + 1 {
		if got := c.login("user1"); got.Code != http.StatusBadGateway || len(got.Result().Cookies()) > 0 || strings.Contains(got.Body.String(), "route") {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
}

// Cases 6, 7 and 8: no header and no made-up cookie is an identity.
func TestWithoutALoginNothingIsRead(t *testing.T) {
	c := newInCluster(t)
	own := c.enter(t, "user1")
	c.opened = nil
	other := newInCluster(t).enter(t, "user1")
	for _, cookie := range []string{"", "fixed-in-advance", own[1:], own + "A", flipped(own), other} {
		for _, path := range routesOfCluster {
			got := c.ask("GET", "/api/v1/"+path, "", cookie, "X-Forwarded-User: admin", "Impersonate-User: admin", "X-Remote-User: admin",
				"X-Remote-Group: system:masters", "Rollouts-Session: "+own, "Authorization: Bearer user1")
			if got.Code != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d %s", path, cookie, got.Code, got.Body)
			}
		}
	}
	if c.source.asked > 0 || len(c.opened) > 0 || c.granted.asked.Load() > 0 {
		t.Errorf("%d reads, %d reviews, of %q", c.source.asked, c.granted.asked.Load(), c.opened)
	}
}

// Case 8.
func TestCookieIsForThisHostAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInCluster(t)
		got := c.ask("POST", "/api/v1/session", `{"token":" user1\n"}`, "fixed-in-advance")
		set := got.Header().Get("Set-Cookie")
		for _, part := range []string{"__Host-rollouts=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"} {
			if !strings.Contains(set, part) || strings.Contains(set, "Domain") || strings.Contains(set, "fixed") {
				t.Errorf("%s has no %s", set, part)
			}
		}
		if got.Header().Get("Strict-Transport-Security") == "" || !strings.Contains(got.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("headers: %v", got.Header())
		}
		me := func(cookie string) int { return c.ask("GET", "/api/v1/me", "", cookie).Code }
		first, second := got.Result().Cookies()[0].Value, c.enter(t, "user1")
		if first == second || me(first) != http.StatusOK || me(second) != http.StatusOK {
			t.Error("each browser has its own session")
		}
		if out := c.ask("POST", "/api/v1/logout", "", first); out.Code != http.StatusOK || !strings.Contains(out.Header().Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("logout: %d %v", out.Code, out.Header())
		}
		if me(first) != http.StatusUnauthorized || me(second) != http.StatusOK {
			t.Error("who logs out ends that session, and no other")
		}
		time.Sleep(sessionLasts - time.Second)
		if me(second) != http.StatusOK {
			t.Error("a session ends too early")
		}
		time.Sleep(time.Second)
		if me(second) != http.StatusUnauthorized {
			t.Error("a session lasts for ever")
		}
	})
}

// Case 3.
func TestOnlyThePublicHostIsAnswered(t *testing.T) {
	c := newInCluster(t)
	cookie := c.enter(t, "user1")
	for host, want := range map[string]int{
		"rollouts.example.com": 200, "rollouts.example.com:443": 421, "ROLLOUTS.example.com.": 421, "evil.example": 421, "10.0.0.1": 421, "127.0.0.1:8443": 421, "localhost": 421,
	} {
		got := c.ask("GET", "/api/v1/me", "", cookie, "Host: "+host)
		if got.Code != want || want == 421 && !strings.Contains(got.Body.String(), "the verb ui") {
			t.Errorf("%s: %d %s", host, got.Code, got.Body)
		}
	}
	for _, bad := range []string{"", "http://rollouts.example.com", "https://", "rollouts.example.com", "https://a/b", "https://user@a", "https://a?b"} {
		public, err := url.Parse(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.HTTPS(public); err == nil {
			t.Errorf("%q is public", bad)
		}
	}
}

// Cases 14 and 17: another site logs nobody in or out, and nothing but login and logout is
// sent.
func TestOtherSitesCannotLogInOrOut(t *testing.T) {
	c := newInCluster(t)
	cookie := c.enter(t, "user1")
	for _, path := range []string{"session", "logout"} {
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
			if got := c.ask("POST", "/api/v1/"+path, `{"token":"user2"}`, cookie, header); got.Code != http.StatusForbidden {
				t.Errorf("%s with %s: %d %s", path, header, got.Code, got.Body)
			}
		}
	}
	for _, path := range routesOfCluster {
		if got := c.ask("POST", "/api/v1/"+path, "{}", cookie); got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, got.Code)
		}
	}
	if got := c.ask("GET", "/api/v1/me", "", cookie); got.Code != http.StatusOK {
		t.Errorf("still logged in: %d", got.Code)
	}
}

// A token says when it ends; what cannot be read says nothing, and ends with the session.
func TestSessionEndsWithItsToken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	claims := func(text string) string { return "e." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".s" }
	for token, want := range map[string]time.Duration{
		"opaque": sessionLasts, claims(`{"exp":1800000600}`): 10 * time.Minute, claims(`{"exp":1900000000}`): sessionLasts, claims(`{"exp":"soon"}`): sessionLasts,
		claims(`{}`): sessionLasts, "a.b.c": sessionLasts, claims(`{"exp":1}`): time.Unix(1, 0).Sub(now),
	} {
		if got := endOf(token, now).Sub(now); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}

// Nobody can log others out by logging in often.
func TestSessionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInCluster(t)
		victim := c.enter(t, "user0")
		var own []string
		for range mostSessionsOf + 1 {
			own = append(own, c.enter(t, "user1"))
			time.Sleep(time.Second)
		}
		me := func(cookie string) int { return c.ask("GET", "/api/v1/me", "", cookie).Code }
		if me(own[0]) != http.StatusUnauthorized || me(own[1]) != http.StatusOK || me(victim) != http.StatusOK {
			t.Errorf("the oldest %d, the next %d, that of another %d", me(own[0]), me(own[1]), me(victim))
		}
		for i := len(c.all); i < mostSessions; i++ {
			c.enter(t, fmt.Sprint("user", i))
		}
		if got := c.login("userTooMany"); got.Code != http.StatusBadGateway || me(victim) != http.StatusOK {
			t.Errorf("one too many: %d %s", got.Code, got.Body)
		}
		time.Sleep(sessionLasts)
		c.enter(t, "userTooMany")
		if len(c.all) != 1 {
			t.Errorf("%d sessions are kept", len(c.all))
		}
	})
}

// flushed is a client of a stream that reads in the test.
type flushed struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (f *flushed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ResponseRecorder.Write(p)
}
func (f *flushed) SetWriteDeadline(time.Time) error { return nil }
func (f *flushed) SetReadDeadline(time.Time) error  { return nil }

func (f *flushed) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.Body.String()
	f.Body.Reset()
	return text
}

// listen opens a stream with what is seen now.
func (c *inCluster) listen(ctx context.Context, t *testing.T, cookie string) *flushed {
	t.Helper()
	_, revision, _ := strings.Cut(c.ask("GET", "/api/v1/fleet", "", cookie).Body.String(), `"rev":"`)
	revision, _, _ = strings.Cut(revision, `"`)
	r := httptest.NewRequest("GET", "https://rollouts.example.com/api/v1/fleet/stream", nil).WithContext(ctx)
	r.Header.Set("Cookie", sessionCookie+"="+cookie)
	r.Header.Set("Last-Event-ID", revision)
	f := &flushed{ResponseRecorder: httptest.NewRecorder()}
	go c.handler.ServeHTTP(f, r)
	synctest.Wait()
	return f
}

// Cases 5 and 10: what is not seen is never said; lost rights end within 65 seconds, and so
// does the stream of a session that has ended.
func TestStreamFollowsTheRightsOfItsViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInCluster(t)
		c.granted.may["mine"] = true
		c.Board.Put(Row{Namespace: "mine", Name: "shop"})
		c.Board.Put(Row{Namespace: "theirs", Name: "canary"})
		token := "user1." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(10*time.Minute).Unix())) + ".s"
		cookie := c.enter(t, token)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := c.listen(ctx, t, cookie)
		if got := f.text(); got != ": beat\n\n" {
			t.Errorf("at first: %q", got)
		}
		c.Board.Put(Row{Namespace: "theirs", Name: "canary", Version: "2"})
		time.Sleep(time.Second)
		if got := f.text(); got != "" {
			t.Errorf("a change that is not seen: %q", got)
		}
		c.Board.Put(Row{Namespace: "mine", Name: "shop", Version: "2"})
		c.Board.Remove(key("theirs", "canary"))
		time.Sleep(time.Second)
		if got := f.text(); !strings.Contains(got, `"shop"`) || strings.Contains(got, "canary") || strings.Contains(got, "theirs") {
			t.Errorf("a change: %q", got)
		}
		c.granted.change(func(r *roles) { delete(r.may, "mine") })
		time.Sleep(65 * time.Second)
		if got := f.text(); !strings.Contains(got, "event: reset") {
			t.Errorf("lost rights: %q", got)
		}
		if got := c.ask("GET", "/api/v1/fleet", "", cookie).Body.String(); strings.Contains(got, "shop") {
			t.Errorf("the list: %s", got)
		}
		f = c.listen(ctx, t, cookie)
		time.Sleep(10 * time.Minute)
		if got := f.text(); !strings.HasSuffix(got, "event: end\n\n") {
			t.Errorf("when the token ends: %q", got)
		}
		other := c.enter(t, "user1")
		f = c.listen(ctx, t, other)
		c.granted.change(func(r *roles) { r.err = apierrors.NewUnauthorized("revoked") })
		time.Sleep(65 * time.Second)
		if got := f.text(); !strings.HasSuffix(got, "event: end\n\n") {
			t.Errorf("when the token is revoked: %q", got)
		}
		if got := c.ask("GET", "/api/v1/fleet/stream", "", other); got.Code != http.StatusUnauthorized {
			t.Errorf("after that: %d %s", got.Code, got.Body)
		}
	})
}

// Case 18: those who have a stream keep it.
func TestStreamsOfAllAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var cookies []string
		for i := range mostStreamsOfAll/mostStreams + 1 {
			cookies = append(cookies, c.enter(t, fmt.Sprint("user", i)))
		}
		for i := range mostStreamsOfAll {
			c.listen(ctx, t, cookies[i/mostStreams])
		}
		last := cookies[len(cookies)-1]
		if got := c.ask("GET", "/api/v1/fleet/stream", "", last); got.Code != http.StatusServiceUnavailable {
			t.Errorf("the 501st: %d %s", got.Code, got.Body)
		}
		if got := c.ask("GET", "/api/v1/fleet", "", last); got.Code != http.StatusOK {
			t.Errorf("the list: %d", got.Code)
		}
		cancel()
		synctest.Wait()
		if open := c.following.Load(); open != 0 {
			t.Errorf("%d streams are left", open)
		}
	})
}
