// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer is a stand-in that records its requests, and answers watches with events
// until the client ends them.
type apiServer struct {
	*httptest.Server
	events chan string

	mu    sync.Mutex
	asked []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.WriteString(w, "done")
		return
	}
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event := <-s.events:
			_, _ = io.WriteString(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) wasAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.asked...)
}

// openTo opens a wire to a stand-in, and returns a client that connects through it.
func openTo(t *testing.T) (*Wire, *apiServer, *client) {
	t.Helper()
	server := &apiServer{events: make(chan string)}
	server.Server = httptest.NewServer(server)
	t.Cleanup(server.Close)
	direct := clientcmdapi.NewConfig()
	direct.Clusters["real"] = &clientcmdapi.Cluster{Server: server.URL}
	direct.Contexts["real"] = &clientcmdapi.Context{Cluster: "real"}
	direct.CurrentContext = "real"
	straight, faulty := filepath.Join(t.TempDir(), "straight"), filepath.Join(t.TempDir(), "faulty")
	if err := clientcmd.WriteToFile(*direct, straight); err != nil {
		t.Fatal(err)
	}
	wire, err := Open(straight)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	if err := wire.WriteKubeconfig(faulty); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", faulty)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return wire, server, &client{t, asks, config.Host}
}

type client struct {
	t    *testing.T
	http *http.Client
	host string
}

func (c *client) open(method, path, body string) (*http.Response, error) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.http.Do(request)
}

// ask returns the response as text: its code and its body, or that there was none.
func (c *client) ask(method, path, body string) string {
	c.t.Helper()
	response, err := c.open(method, path, body)
	if err != nil {
		return "no answer"
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "no whole answer"
	}
	reported := fmt.Sprint(response.StatusCode)
	if after := response.Header.Get("Retry-After"); after != "" {
		reported += " after " + after + "s"
	}
	var said metav1.Status
	if json.Unmarshal(text, &said) == nil {
		return reported + " " + string(said.Reason)
	}
	return reported + " " + string(text)
}

// TestRequestIsJudgedWhenItHasComeWhole lets a client send half of a request, and make
// another request meanwhile.
func TestRequestIsJudgedWhenItHasComeWhole(t *testing.T) {
	wire, server, client := openTo(t)
	judged := make(chan string, 2)
	wire.Inject(func(r Request) Fault {
		judged <- r.Name
		return Fault{}
	})
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, client.host+rollout, body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		response, err := client.http.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	_, _ = io.WriteString(rest, "half ")
	client.ask(http.MethodGet, "/apis/kuberik.com/v1alpha1/namespaces/shop/rollouts/other", "")
	_, _ = io.WriteString(rest, "and half")
	_ = rest.Close()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if first, second := <-judged, <-judged; first != "other" || second != "web" {
		t.Errorf("judged %s before %s", first, second)
	}
	if asked := server.wasAsked(); asked[1] != "PATCH "+rollout+" half and half" {
		t.Errorf("the API server was asked %q", asked)
	}
}

const rollout = "/apis/kuberik.com/v1alpha1/namespaces/shop/rollouts/web"

func TestEachFaultIsWhatItSays(t *testing.T) {
	for name, tt := range map[string]struct {
		fault  Fault
		answer string
		seen   bool // by the API server
		code   int
	}{
		"none":                   {Fault{}, "200 done", true, 200},
		"a conflict":             {Refuse(http.StatusConflict, 0), "409 Conflict", false, 0},
		"too many requests":      {Refuse(http.StatusTooManyRequests, time.Second), "429 after 1s TooManyRequests", false, 0},
		"an internal error":      {Refuse(http.StatusInternalServerError, 0), "500 InternalError", false, 0},
		"not available":          {Refuse(http.StatusServiceUnavailable, 0), "503 ServiceUnavailable", false, 0},
		"a time-out":             {Hold(time.Millisecond), "504 Timeout", false, 0},
		"lost on the way":        {Drop(), "no answer", false, 0},
		"lost with what it said": {Lose(), "no answer", true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			wire, server, client := openTo(t)
			wire.Inject(func(Request) Fault { return tt.fault })
			if got := client.ask(http.MethodPatch, rollout, "{}"); got != tt.answer {
				t.Errorf("the client got %q, want %q", got, tt.answer)
			}
			if got := len(server.wasAsked()) == 1; got != tt.seen {
				t.Errorf("the API server was asked %q", server.wasAsked())
			}
			log := wire.Log()
			if len(log) != 1 || log[0].Code != tt.code || log[0].Fault.String() != tt.fault.String() {
				t.Errorf("the log is %+v", log)
			}
			if faults := wire.Faults(); (faults == 1) == tt.fault.None() {
				t.Errorf("%d faults are counted", faults)
			}
		})
	}
}

// A watch answers for minutes. A client whose answer was lost in that way would only hang.
func TestLostWatchBreaksAtOnce(t *testing.T) {
	wire, server, client := openTo(t)
	wire.Inject(func(Request) Fault { return Lose() })
	if got := client.ask(http.MethodGet, "/apis/kuberik.com/v1alpha1/rollouts?watch=true", ""); got != "no answer" {
		t.Errorf("the client got %q", got)
	}
	if asked := server.wasAsked(); len(asked) != 0 {
		t.Errorf("the API server was asked %q", asked)
	}
}

func TestFaultIsFollowedUpBeforeTheClientLearnsOfIt(t *testing.T) {
	for name, tt := range map[string]struct {
		fault Fault
		asked int // requests that the API server has received at that time
	}{
		"before the API server has seen the request": {Drop(), 0},
		"after it has carried it out":                {Lose(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			wire, server, client := openTo(t)
			asked := -1
			wire.Inject(func(Request) Fault { return tt.fault.Then(func() { asked = len(server.wasAsked()) }) })
			client.ask(http.MethodPatch, rollout, "{}")
			if asked != tt.asked {
				t.Errorf("the API server had been asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}

func TestRequestsAreDistinguishedAndWritesAreNumbered(t *testing.T) {
	wire, _, client := openTo(t)
	for _, r := range [][2]string{
		{"GET", "/api"},
		{"GET", "/apis/kuberik.com/v1alpha1"},
		{"GET", "/apis/kuberik.com/v1alpha1/rollouts?limit=500"},
		{"POST", "/api/v1/namespaces/shop/events"},
		{"GET", "/api/v1/namespaces/shop"},
		{"PATCH", rollout + "/status"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/one"},
		{"DELETE", rollout},
		{"DELETE", "/apis/kuberik.com/v1alpha1/namespaces/shop/rollouts"},
		{"GET", rollout},
	} {
		client.ask(r[0], r[1], "")
	}
	var got []string
	for _, entry := range wire.Log() {
		got = append(got, fmt.Sprintf("%d %s", entry.Write, entry))
	}
	want := []string{
		"0 get /api",
		"0 get /apis/kuberik.com/v1alpha1",
		"0 list kuberik.com/rollouts",
		"1 create /events shop",
		"0 get /namespaces shop",
		"2 patch kuberik.com/rollouts/status shop/web",
		"0 create authorization.k8s.io/selfsubjectaccessreviews",
		"3 update coordination.k8s.io/leases shop/one",
		"4 delete kuberik.com/rollouts shop/web",
		"5 deletecollection kuberik.com/rollouts shop",
		"0 get kuberik.com/rollouts shop/web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if writes := wire.Writes(); len(writes) != 5 || !writes[0].IsEvent() || writes[1].IsEvent() {
		t.Errorf("the writes are %v", writes)
	}
}

// follow opens a watch and waits for the first event.
func follow(t *testing.T, wire *Wire, server *apiServer, client *client) *bufio.Reader {
	t.Helper()
	response, err := client.open(http.MethodGet, "/apis/kuberik.com/v1alpha1/rollouts?watch=true", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	server.events <- "first\n"
	events := bufio.NewReader(response.Body)
	if line, err := events.ReadString('\n'); line != "first\n" || err != nil {
		t.Fatalf("the watch begins with %q, %v", line, err)
	}
	if open := wire.OpenWatches(); open != 1 {
		t.Fatalf("%d watches are open", open)
	}
	return events
}

func TestWatchIsCutOffOrExpires(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*Wire) int
		last string // part of the last event
	}{
		"cut":                       {end: (*Wire).CutWatches},
		"refused from now on":       {end: (*Wire).RefuseWatches},
		"held from now on":          {end: (*Wire).HoldWatches},
		"its version is too old":    {end: (*Wire).ExpireWatches, last: `"code":410`},
		"with the whole connection": {end: func(w *Wire) int { w.BreakConnections(); return 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			wire, server, client := openTo(t)
			events := follow(t, wire, server, client)
			if n := tt.end(wire); n != 1 {
				t.Errorf("%d watches were ended", n)
			}
			rest, err := io.ReadAll(events)
			if err == nil {
				t.Error("the watch ended as if it were over")
			}
			if (len(rest) > 0) != (tt.last != "") || !strings.Contains(string(rest), tt.last) {
				t.Errorf("the watch ended with %q", rest)
			}
		})
	}
}

func TestWatchesAreRefusedUntilTheyAreAllowed(t *testing.T) {
	wire, server, client := openTo(t)
	wire.RefuseWatches()
	if got := client.ask(http.MethodGet, "/api/v1/namespaces?watch=true", ""); got != "no answer" {
		t.Errorf("a watch was answered: %s", got)
	}
	if got := client.ask(http.MethodGet, "/api/v1/namespaces", ""); got != "200 done" {
		t.Errorf("a list was answered: %s", got)
	}
	wire.AllowWatches()
	follow(t, wire, server, client)
}

func TestWatchesAreHeldUntilTheyAreAllowed(t *testing.T) {
	wire, server, client := openTo(t)
	wire.HoldWatches()
	go func() {
		for asked := func() bool { return len(wire.Log()) > 0 }; !asked(); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // otherwise it would be open by now
		if open := wire.OpenWatches(); open != 0 {
			t.Errorf("%d watches are open", open)
		}
		wire.AllowWatches()
	}()
	follow(t, wire, server, client)
}

func TestWatchThatIsAmidAnEventIsOnlyCut(t *testing.T) {
	wire, server, client := openTo(t)
	events := follow(t, wire, server, client)
	server.events <- "half"
	half := make([]byte, 4)
	if _, err := io.ReadFull(events, half); err != nil {
		t.Fatal(err)
	}
	wire.ExpireWatches()
	if rest, _ := io.ReadAll(events); len(rest) > 0 {
		t.Errorf("half an event goes on with %q", rest)
	}
}
