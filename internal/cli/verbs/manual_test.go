// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// reference returns the pages in one form, as they are written on a machine.
func reference(t *testing.T, file string, env map[string]string, form ...string) map[string]string {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	folder := t.TempDir()
	args := append([]string{"__manual"}, form...)
	if printed := runWithoutCluster(t, file, append(args, folder)...); printed != "" {
		t.Errorf("it prints %q", printed)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[entry.Name()] = string(content)
	}
	return pages
}

func TestReferenceIsTheSameOnEachMachine(t *testing.T) {
	one := map[string]string{"HOME": "/home/alice", "TZ": "Asia/Kathmandu", "KUBECACHEDIR": "/cache", "KUBECONFIG": "/none", "LANG": "de_DE.UTF-8"}
	other := map[string]string{"HOME": "", "TZ": "", "KUBECACHEDIR": "", "KUBECONFIG": "", "LANG": "C"}
	for name, form := range map[string][]string{
		"pages":     {"markdown"},
		"man pages": {"man", "--made=2026-01-02T23:04:05-02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			want := reference(t, "kubectl-rollouts", one, form...)
			got := reference(t, "/home/alice/.fluxcd/plugins/flux-rollout", other, form...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-one +other):\n%s", diff)
			}
			if len(got) < 18 {
				t.Errorf("it has only %d pages", len(got))
			}
		})
	}
}

func TestNoUserSeesTheVerbThatWritesTheReference(t *testing.T) {
	if help := runWithoutCluster(t, "flux-rollout", "--help"); strings.Contains(help, "__manual") {
		t.Errorf("the help lists it:\n%s", help)
	}
	for page, text := range reference(t, "flux-rollout", nil, "markdown") {
		if strings.Contains(text, "__manual") {
			t.Errorf("%s mentions it", page)
		}
	}
}

func TestManPagesNeedAFormAndATime(t *testing.T) {
	for name, tt := range map[string]struct{ form, made, want string }{
		"no such form": {"html", "", `there is no form "html"; choose markdown or man`},
		"no time":      {"man", "", "say when the sources were made, with --made"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manualPages(&program.Program{}, tt.form, tt.made)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
