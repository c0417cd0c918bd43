// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// actions counts what reaches it.
type actions struct {
	mu              sync.Mutex
	predicted, sent int
	answers         func(a Action, seen string) error
	goesOn          chan struct{}
}

func (a *actions) Predict(_ context.Context, of types.NamespacedName, action Action) (Prediction, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.predicted++
	return Prediction{Effect: []string{of.String() + " " + action.Verb}}.As(action), nil
}

func (a *actions) Send(ctx context.Context, of types.NamespacedName, action Action, seen string) ([]string, error) {
	if a.goesOn != nil {
		<-a.goesOn
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.answers != nil {
		return nil, a.answers(action, seen)
	}
	return []string{of.String() + " is pinned"}, nil
}

const pinIt = `{"verb":"pin","args":["--version","1.1.0"],"reason":"INC-1","seen":"x"}`

// post returns a request to change a Rollout.
func (s *served) post(path, body string, headers ...string) string {
	headers = append([]string{"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
	return s.request("POST /api/v1/rollouts/shop/shop/"+path, s.address, headers...) + body
}

func keyed(name string) string { return keyHeader + ": " + name }

func TestPageThatOnlyShowsHasNoHandlerForActions(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"predict", "requests"} {
		if got := s.raw(t, s.post(path, pinIt, keyed("a"))); !strings.HasPrefix(got, "404") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Cases 14 and 18: what is no change of the page's own user reaches nothing.
func TestActionsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		want, body         string
		headers            []string
		stranger, noObject bool
	}{
		"no session":       {want: "401", body: pinIt, stranger: true},
		"another site":     {want: "403", body: pinIt, headers: []string{"Sec-Fetch-Site: cross-site"}},
		"sandboxed frame":  {want: "403", body: pinIt, headers: []string{"Origin: null"}},
		"another port":     {want: "403", body: pinIt, headers: []string{"Origin: http://127.0.0.1:1"}},
		"17 KiB":           {want: "413", body: `{"verb":"` + strings.Repeat("x", 17<<10) + `"}`},
		"no JSON":          {want: "400", body: `verb=pin`},
		"an unknown field": {want: "400", body: `{"verb":"pin","user":"admin"}`},
		"no Rollout":       {want: "404", body: pinIt, noObject: true},
	} {
		for _, path := range []string{"predict", "requests"} {
			a := &actions{}
			s := serve(t, a)
			if c.stranger {
				s.session = "x"
			}
			request := s.post(path, c.body, append(c.headers, keyed("k"))...)
			if c.noObject {
				request = strings.Replace(request, "/shop/"+path, "/B_/"+path, 1)
			}
			if got := s.raw(t, request); !strings.HasPrefix(got, c.want) || a.predicted+a.sent > 0 {
				t.Errorf("%s, %s: %s, %d and %d, want %s", name, path, got, a.predicted, a.sent, c.want)
			}
		}
	}
}

func TestFormsAndReadsChangeNothing(t *testing.T) {
	a := &actions{}
	s := serve(t, a)
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		request := strings.Replace(s.post("requests", pinIt, keyed("k")), "application/json", contentType, 1)
		if got := s.raw(t, request); !strings.HasPrefix(got, "415") {
			t.Errorf("%s: %s", contentType, got)
		}
	}
	if got := s.raw(t, s.request("GET /api/v1/rollouts/shop/shop/requests", s.address)); !strings.HasPrefix(got, "404") || a.sent > 0 {
		t.Errorf("%s, %d sent", got, a.sent)
	}
}

// Case 22: a double click, and the back button.
func TestChangeIsMadeOnce(t *testing.T) {
	a := &actions{goesOn: make(chan struct{})}
	s := serve(t, a)
	if got := s.raw(t, s.post("requests", pinIt)); !strings.HasPrefix(got, "400") {
		t.Errorf("without a key: %s", got)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if got := s.raw(t, s.post("requests", pinIt, keyed("one"))); !strings.HasPrefix(got, "200") || !strings.Contains(got, "shop/shop is pinned") {
				t.Errorf("a click: %s", got)
			}
		})
	}
	close(a.goesOn)
	all.Wait()
	if got := s.raw(t, s.post("requests", pinIt, keyed("one"))); !strings.HasPrefix(got, "200") || a.sent != 1 {
		t.Errorf("again: %s, %d sent", got, a.sent)
	}
	if got := s.raw(t, s.post("requests", strings.Replace(pinIt, "1.1.0", "1.2.0", 1), keyed("one"))); !strings.HasPrefix(got, "422") || a.sent != 1 {
		t.Errorf("another change: %s, %d sent", got, a.sent)
	}
	if s.raw(t, s.post("requests", pinIt, keyed("two"))); a.sent != 2 {
		t.Errorf("another key: %d sent", a.sent)
	}
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.known)
}

// newPost returns a change as a browser sends it.
func newPost(ctx context.Context, t *testing.T, s *served, body, key string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/api/v1/rollouts/shop/shop/requests", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(sessionHeader, s.session)
	r.Header.Set(keyHeader, key)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Case 22: an answer that was lost. A tab that is closed after the click does not leave a
// change half made.
func TestChangeGoesOnWithoutItsClient(t *testing.T) {
	a := &actions{goesOn: make(chan struct{})}
	s := serve(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		response, err := http.DefaultClient.Do(newPost(ctx, t, s, pinIt, "one"))
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		gone <- err
	}()
	gomega.NewWithT(t).Eventually(s.Keys.viewer.answers.count).Should(gomega.Equal(1))
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(a.goesOn)
	if got := s.raw(t, s.post("requests", pinIt, keyed("one"))); !strings.HasPrefix(got, "200") || a.sent != 1 {
		t.Errorf("%s, %d sent", got, a.sent)
	}
}

// A change whose outcome is not known is made again: what is done already is no change then.
func TestLostChangeIsMadeAgain(t *testing.T) {
	a := &actions{answers: func(Action, string) error { return &url.Error{Op: "Patch", Err: io.ErrUnexpectedEOF} }}
	s := serve(t, a)
	for range 2 {
		if got := s.raw(t, s.post("requests", pinIt, keyed("one"))); !strings.HasPrefix(got, "502") {
			t.Errorf("%s", got)
		}
	}
	if a.sent != 2 {
		t.Errorf("%d sent", a.sent)
	}
}

// Cases 21 and 23: what the API server or the engine says instead.
func TestAnswersToAChange(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{Resource: "rollouts"}, "shop", errors.New("not yours")), []string{"403", "not yours"}},
		"refused":   {errors.New("there is no newer release to promote"), []string{"422", "no newer release"}},
		"another":   {Another{Prediction{Effect: []string{"1.1.1 is the newest"}}.As(Action{})}, []string{"409", "1.1.1 is the newest", `"seen":"`}},
	} {
		s := serve(t, &actions{answers: func(Action, string) error { return c.err }})
		got := s.raw(t, s.post("requests", pinIt, keyed("one")))
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %s", name, got, part)
			}
		}
	}
}

func TestActionsAreCounted(t *testing.T) {
	a := &actions{}
	s := serve(t, a)
	for i := range mostChanges + 2 {
		want := "200"
		if i >= mostChanges {
			want = "429"
		}
		if got := s.raw(t, s.post("requests", pinIt, keyed(fmt.Sprint(i)))); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s", i, got)
		}
	}
	if a.sent != mostChanges {
		t.Errorf("%d sent", a.sent)
	}
}

// The reason is written after the effect was read, and everything else is what was seen.
func TestWhatWasSeen(t *testing.T) {
	a := Action{Verb: "pin", Args: []string{"--version", "1.1.0"}}
	seen := Prediction{Effect: []string{"1.1.0 goes out"}}.As(a).Seen
	with := a
	with.Reason = "INC-1"
	if again := (Prediction{Effect: []string{"1.1.0 goes out"}, Notes: []string{"x"}}).As(with).Seen; again != seen {
		t.Errorf("with a reason: %s, %s", again, seen)
	}
	for name, other := range map[string]string{
		"effect": Prediction{Effect: []string{"1.2.0 goes out"}}.As(a).Seen, "caution": Prediction{Effect: []string{"1.1.0 goes out"}, Cautions: []string{"it failed"}}.As(a).Seen,
		"action": Prediction{Effect: []string{"1.1.0 goes out"}}.As(Action{Verb: "promote", Args: a.Args}).Seen,
	} {
		if other == seen {
			t.Errorf("another %s is the same", name)
		}
	}
}
