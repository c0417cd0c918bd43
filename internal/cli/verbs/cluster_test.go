// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// oneLineWith checks that a command failed and has said why in one line, with these parts.
func oneLineWith(t *testing.T, got answer, parts ...string) {
	t.Helper()
	if got.Code != program.Failed || got.Out != "" || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("want exit code %d and one line on stderr; got %+v", program.Failed, got)
	}
	for _, part := range parts {
		if !strings.Contains(got.Err, part) {
			t.Errorf("it does not say %q: %+v", part, got)
		}
	}
}

func TestConnectionThatFailsIsSaidInOneLineThatNamesTheContext(t *testing.T) {
	expired := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fail(out, http.StatusUnauthorized) }))
	defer expired.Close()
	ended := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		select {
		case <-in.Context().Done():
		case <-ended:
		}
	}))
	defer hanging.Close()
	defer close(ended)
	for _, verb := range []string{"get", "explain shop", "wait shop --for=idle", "watch", "doctor", "pin shop 1.0.0 -y"} {
		run := func(server string, flags ...string) answer {
			return runAt(t.Context(), t, server, until{}, append(strings.Fields(verb), flags...)...)
		}
		t.Run(verb, func(t *testing.T) {
			oneLineWith(t, run(expired.URL), "context here: the API server does not accept your credentials: log in again, or choose another context with --context")
			oneLineWith(t, run(expired.URL, "--context=there"), "context there: ", "connection refused")
			oneLineWith(t, run(hanging.URL, "--request-timeout=100ms"), "context here: ", "exceeded")
			oneLineWith(t, run(hanging.URL, "--context=nowhere"), "kubeconfig: ", "nowhere")
		})
	}
}

func TestVersionOfTheProgramIsSaidWithoutAConnection(t *testing.T) {
	const refused = "http://127.0.0.1:1"
	if got := runAt(t.Context(), t, refused, until{}, "version", "--client"); got.Code != 0 || got.Out != "flux-rollout dev\n" || got.Err != "" {
		t.Errorf("with --client: %+v", got)
	}
	if got := runAt(t.Context(), t, refused, until{}, "version"); got.Code != program.Failed || got.Out != "flux-rollout dev\n" || !strings.Contains(got.Err, "context here: ") {
		t.Errorf("without --client: %+v", got)
	}
}
