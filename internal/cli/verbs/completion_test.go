// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// runWithoutCluster runs the program as if it was called by a file, and returns what it
// prints.
func runWithoutCluster(t *testing.T, file string, args ...string) string {
	t.Helper()
	called, args := calledAs(append([]string{file}, args...), func(string) string { return "" })
	streams, _, out, printed := genericiooptions.NewTestIOStreams()
	p := program.New(called, streams)
	none := "/no/kubeconfig"
	p.Kubeconfig.KubeConfig = &none
	p.Connect = func(context.Context) (program.Cluster, error) {
		return program.Cluster{}, errors.New("there is no cluster")
	}
	if code := run(t.Context(), p, args); code != 0 {
		t.Fatalf("%s %q: exit code %d\n%s", file, args, code, printed)
	}
	return out.String()
}

// The shells and kubectl read the same answer: a candidate on each line, with its
// description after a tab, and at the end what the shell must not do (4: no files).
func TestCompletionAnswersWithoutACluster(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args []string
		want string
	}{
		"verbs":                   {"flux-rollout", []string{"__complete", "ex"}, "explain\tSay why a release is not out, and what would let it go\n:4\n"},
		"verbs, no descriptions":  {"flux-rollout", []string{"__completeNoDesc", "ex"}, "explain\n:4\n"},
		"flags":                   {"flux-rollout", []string{"__complete", "explain", "--vers"}, "--version\texplain only this release, which may be any tag\n:4\n"},
		"shells":                  {"flux-rollout", []string{"__complete", "completion", "z"}, "zsh\n:4\n"},
		"names, none can be read": {"flux-rollout", []string{"__complete", "explain", ""}, ":4\n"},
		"no applications either":  {"flux-rollout", []string{"__complete", "pipeline", ""}, ":4\n"},
		"what is not for users":   {"flux-rollout", []string{"__complete", "__"}, ":4\n"},
		"for kubectl":             {"kubectl_complete-rollouts", []string{"ex"}, "explain\tSay why a release is not out, and what would let it go\n:4\n"},
		"for kubectl, from krew":  {"kubectl_complete-flux_rollouts", []string{"ex"}, "explain\tSay why a release is not out, and what would let it go\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, runWithoutCluster(t, tt.file, tt.args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A script for the command kubectl or flux would replace the completion of all the rest
// of kubectl or flux.
func TestScriptCompletesTheFileOfTheProgram(t *testing.T) {
	registers := map[string]string{
		"bash":       "complete -o default -o nospace -F __start_FILE FILE",
		"zsh":        "#compdef FILE",
		"fish":       "complete -c FILE",
		"powershell": "Register-ArgumentCompleter -CommandName 'FILE'",
	}
	for shell, line := range registers {
		for _, file := range []string{"flux-rollout", "kubectl-rollouts", "kubectl-flux_rollouts"} {
			t.Run(shell+" for "+file, func(t *testing.T) {
				script := runWithoutCluster(t, file, "completion", shell)
				for _, want := range []string{strings.ReplaceAll(line, "FILE", file), "__complete"} {
					if !strings.Contains(script, want) {
						t.Errorf("the script has no %q", want)
					}
				}
			})
		}
	}
}

func TestScriptForKubectlCallsThePlugin(t *testing.T) {
	for file, want := range map[string][]string{
		"flux-rollout":          {"kubectl_complete-rollouts", `exec kubectl rollouts __complete "$@"`},
		"kubectl-rollouts":      {"kubectl_complete-rollouts", `exec kubectl rollouts __complete "$@"`},
		"kubectl-flux_rollouts": {"kubectl_complete-flux_rollouts", `exec kubectl flux-rollouts __complete "$@"`},
	} {
		lines := strings.Split(runWithoutCluster(t, file, "completion", "kubectl"), "\n")
		if !strings.Contains(lines[1], " "+want[0]+" ") || !slices.Contains(lines, want[1]) {
			t.Errorf("%s: got %q, want %q", file, lines, want)
		}
	}
}
