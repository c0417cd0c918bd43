// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// apiServer answers a list of Rollouts with one that bakes, and keeps watches open. It has
// nothing else.
type apiServer struct {
	*httptest.Server

	mu sync.Mutex
	// refuse are the codes with which the next requests of a verb are refused. The last one
	// counts for all requests after it, unless it is 200.
	refuse map[string][]int
	// asked are the requests for Rollouts, by their verb.
	asked []string
	// open sends each watch that was opened.
	open chan struct{}
	// until is what the program has to say on stderr before something happens.
	until until
}

func newAPIServer(t *testing.T, refuse map[string][]int) *apiServer {
	t.Helper()
	s := &apiServer{refuse: refuse, open: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(out http.ResponseWriter, in *http.Request) {
	out.Header().Set("Content-Type", "application/json")
	query := in.URL.Query()
	switch {
	case !strings.Contains(in.URL.Path, "rollouts"):
		fail(out, http.StatusNotFound)
	case query.Get("sendInitialEvents") == "true":
		fail(out, http.StatusUnprocessableEntity) // as an API server that cannot stream lists
	case query.Get("watch") == "true":
		if s.accepts(out, "watch") {
			out.(http.Flusher).Flush()
			s.open <- struct{}{}
			<-in.Context().Done()
		}
	case s.accepts(out, "list"):
		list := v1alpha1.RolloutList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutList"}}
		list.ResourceVersion = "7"
		list.Items = []v1alpha1.Rollout{*fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").ID(42).Baking(fixture.Noon)).Obj()}
		_ = json.NewEncoder(out).Encode(list)
	}
}

// accepts answers with an error if a request is to be refused.
func (s *apiServer) accepts(out http.ResponseWriter, verb string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, verb)
	codes := s.refuse[verb]
	if len(codes) == 0 {
		return true
	}
	if len(codes) > 1 {
		s.refuse[verb] = codes[1:]
	}
	if codes[0] == http.StatusOK {
		return true
	}
	fail(out, codes[0])
	return false
}

func fail(out http.ResponseWriter, code int) {
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusNotFound: metav1.StatusReasonNotFound,
	}[code]
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: strings.ToLower(http.StatusText(code)),
	})
}

// run runs the program with a kubeconfig that names the API server.
func (s *apiServer) run(ctx context.Context, t *testing.T, args ...string) answer {
	t.Helper()
	return runAt(ctx, t, s.URL, s.until, args...)
}

// runAt runs the program with a kubeconfig whose context "here" has an API server, and
// whose context "there" has one that does not exist.
func runAt(ctx context.Context, t *testing.T, server string, hears until, args ...string) answer {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for name, server := range map[string]string{"here": server, "there": "http://127.0.0.1:1"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, Namespace: fixture.Namespace}
	}
	config.CurrentContext = "here"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := &listener{until: hears}
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: err})
	code := run(ctx, p, append(args, "--kubeconfig", file))
	return answer{out.String(), err.String(), code}
}

// listener keeps what is written, and calls a function once that has a text.
type listener struct {
	bytes.Buffer
	until
}

type until struct {
	text string
	then func()
}

// Write implements io.Writer.
func (l *listener) Write(text []byte) (int, error) {
	n, err := l.Buffer.Write(text)
	if l.then != nil && strings.Contains(l.String(), l.text) {
		l.then()
	}
	return n, err
}

func (s *apiServer) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.asked), func(v string) bool { return v != verb }))
}

func TestWaitKeepsItsWatchForLongerThanARequestMayTake(t *testing.T) {
	s := newAPIServer(t, nil)
	got := s.run(t.Context(), t, "wait", "shop", "--for=version=1.5.0", "--request-timeout=1s", "--timeout=3s")
	if got.Code != program.TimeRanOut || !strings.Contains(got.Err, "time ran out: 1.5.0 is InProgress (#42)") {
		t.Errorf("got %+v", got)
	}
	if lists, watches := s.count("list"), s.count("watch"); lists != 1 || watches != 1 {
		t.Errorf("there were %d lists and %d watches, want one of each", lists, watches)
	}
}

func TestWaitEndsForAUserWhoMayNotRead(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		s := newAPIServer(t, map[string][]int{verb: {http.StatusForbidden}})
		got := s.run(t.Context(), t, "wait", "shop", "--for=version=1.5.0")
		if got.Code != program.Failed || !strings.HasSuffix(got.Err, verb+" Rollouts: forbidden\n") {
			t.Errorf("who may not %s gets %+v", verb, got)
		}
	}
}

func TestWatchEndsForAUserWhoMayNotRead(t *testing.T) {
	s := newAPIServer(t, map[string][]int{"list": {http.StatusForbidden}})
	if got := s.run(t.Context(), t, "watch"); got.Code != program.Failed || !strings.Contains(got.Err, "list Rollouts: forbidden") {
		t.Errorf("got %+v", got)
	}
}

// An API server that has just started knows no rights for a moment.
func TestWatchGoesOnAfterTheAPIServerWasAway(t *testing.T) {
	s := newAPIServer(t, map[string][]int{"watch": {http.StatusOK, http.StatusForbidden, http.StatusOK}})
	ctx, stop := context.WithTimeout(t.Context(), fixture.Patience)
	defer stop()
	s.until = until{"Rollouts can be read again", stop}
	go func() {
		<-s.open
		s.CloseClientConnections()
	}()
	got := s.run(ctx, t, "watch", "--plain")
	got.Out = regexp.MustCompile(`\b\d+[dy]\d*d?`).ReplaceAllString(got.Out, "long")
	want := answer{
		Out: "NAME  VERSION  STATE       SINCE  NEXT  WAITS FOR\nshop  1.5.0    InProgress  long   -     -\n",
		Err: "! Rollouts cannot be read for now, and the API server is asked again: forbidden\nok Rollouts can be read again\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
