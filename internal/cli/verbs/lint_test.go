// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

func TestLintFollowsLinksToFilesAndNamesOthers(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"apps", "elsewhere"} {
		mustSucceed(t, os.Mkdir(filepath.Join(folder, name), 0o700))
	}
	mustSucceed(t, os.WriteFile(filepath.Join(folder, "elsewhere", "rollout.yaml"), []byte("apiVersion: kuberik.com/v1alpha1\nkind: Rollout\nmetadata: {name: shop, namespace: shop}\n"), 0o600))
	mustSucceed(t, os.Symlink("../elsewhere/rollout.yaml", filepath.Join(folder, "apps", "linked.yaml")))
	mustSucceed(t, os.Symlink("../elsewhere", filepath.Join(folder, "apps", "more")))
	mustSucceed(t, os.Symlink("nothing", filepath.Join(folder, "apps", "lost.yaml")))
	got := newInMemory(t).run(t, "lint", "-v", filepath.Join(folder, "apps"))
	for _, text := range []string{"apps/linked.yaml:", "/apps/more  it is a link", "/apps/lost.yaml  it is a link"} {
		if !strings.Contains(got.Out, text) {
			t.Errorf("it does not say %q: %+v", text, got)
		}
	}
}

// A terminal would break a line inside of a word.
func TestLintBreaksLinesBetweenWords(t *testing.T) {
	t.Chdir(t.TempDir())
	mustSucceed(t, os.WriteFile("rollout.yaml", []byte("apiVersion: kuberik.com/v1alpha1\nkind: Rollout\nmetadata: {name: shop, namespace: shop}\nspec: {releasesImagePolicy: {name: shop}}\n"), 0o600))
	linted := func(columns int) string {
		out := &strings.Builder{}
		p := program.New("kubectl rollouts", genericiooptions.IOStreams{Out: out, ErrOut: io.Discard})
		p.Out.Style = show.Style{Unicode: true, Width: columns}
		run(t.Context(), p, []string{"lint", "rollout.yaml"})
		return out.String()
	}
	narrow := linted(60)
	for line := range strings.Lines(narrow) {
		if runewidth.StringWidth(strings.TrimSpace(line)) > 60 {
			t.Errorf("a line is too wide: %s", line)
		}
	}
	if diff := cmp.Diff(strings.Fields(linted(0)), strings.Fields(narrow)); diff != "" {
		t.Errorf("other words (-wide +narrow):\n%s", diff)
	}
}
