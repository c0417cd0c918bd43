// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

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

// An API server that serves no Rollouts, and none at all.
func TestWrongClusterIsNamed(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, verb := range []string{
		"get", "get shop", "explain shop", "status shop", "history shop", "events shop", "simulate", "wait shop --for=idle", "watch", "watch shop",
		"pin shop 1.0.0 -y", "suspend shop", "freeze shop -m x", "freeze --all -m x", "reconcile shop",
	} {
		t.Run(verb, func(t *testing.T) {
			got := runAt(t.Context(), t, other.URL, until{}, strings.Fields(verb)...)
			const want = "context here serves no Rollouts: is this the right cluster? See: kubectl rollouts doctor"
			if got.Code != program.Failed || got.Out != "" || !strings.Contains(got.Err[strings.LastIndex(strings.TrimSpace(got.Err), "\n")+1:], want) {
				t.Errorf("want %q in the last line: %+v", want, got)
			}
		})
	}
}

func TestMissingKubeconfigIsSaidInOneLine(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, err bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &err})
	code := run(t.Context(), p, []string{"get"})
	oneLineWith(t, answer{out.String(), err.String(), code}, "there is no kubeconfig: set KUBECONFIG, or give --kubeconfig or --server")
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
