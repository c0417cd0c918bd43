// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// kind runs hack/kind.sh with programs that record their arguments. One of them fails. It
// returns what was called.
func kind(t *testing.T, failing string, args ...string) (calls []string, printed string, err error) {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"kind", "docker", "kubectl", "helm"} {
		script := "#!/bin/sh\necho " + name + " \"$@\" >> " + folder + "/calls\n"
		if name == failing {
			script += "exit 1\n"
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), filepath.Join(parts.Root(), "hack", "kind.sh"), args...)
	run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	output, err := run.CombinedOutput()
	recorded, _ := os.ReadFile(filepath.Join(folder, "calls"))
	return strings.FieldsFunc(string(recorded), func(r rune) bool { return r == '\n' }), string(output), err
}

func TestKindGoesAsTheQuickStart(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	calls, printed, err := kind(t, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	var changes int
	_, told, _ := strings.Cut(printed, "\n\n")
	for line := range strings.Lines(strings.Join(calls, "\n") + "\n" + told) {
		command := strings.ReplaceAll(strings.TrimSpace(line), "--context kind-rollouts ", "")
		if strings.HasPrefix(command, "kubectl -n podinfo patch ") {
			changes++
			if bare := strings.NewReplacer("'", "").Replace; !strings.Contains(bare(string(page)), "\n"+bare(command)+"\n") {
				t.Errorf("the quick start does not say: %s", command)
			}
		}
	}
	if changes != 2 { // one is called, and one printed for the reader
		t.Errorf("%d commands change podinfo:\n%s", changes, printed)
	}
}

func TestKindTouchesNoOtherCluster(t *testing.T) {
	t.Setenv("VERSION", "v0.1.0")
	calls, _, err := kind(t, "")
	if err != nil || len(calls) < 5 {
		t.Fatalf("%v: %q", err, calls)
	}
	for _, call := range calls {
		if !strings.HasPrefix(call, "kind ") && !strings.Contains(call, "--context kind-rollouts ") && !strings.Contains(call, "--kube-context kind-rollouts ") {
			t.Errorf("%s: in which cluster?", call)
		}
	}
}

func TestKindStopsAtTheFirstFailure(t *testing.T) {
	all, _, _ := kind(t, "")
	for i, failing := range []string{"kind", "kubectl", "docker"} {
		if calls, _, err := kind(t, failing); err == nil || !slices.Equal(calls, all[:i+1]) {
			t.Errorf("%s fails, %v, and this is called: %q", failing, err, calls)
		}
	}
	if calls, printed, err := kind(t, "", "--dry-run"); err != nil || len(calls) > 0 || strings.Count(printed, "\n+ ") != len(all)-1 {
		t.Errorf("a dry run, %v, calls %q and prints %s", err, calls, printed)
	}
}
