// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
