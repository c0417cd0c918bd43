// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Without Node, this finds a page that is not made of its sources: those that `make web` has
// used are listed with their sums.
func TestPageIsMadeOfItsSources(t *testing.T) {
	list, err := assets.ReadFile("assets/SOURCES")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		sum, name, _ := strings.Cut(line, "  ./")
		made[name] = sum
	}
	found := map[string]string{}
	root := os.DirFS("../../../web")
	if err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && filepath.Base(name) == "node_modules" {
				return fs.SkipDir
			}
			return err
		}
		content, err := fs.ReadFile(root, name)
		sum := sha256.Sum256(content)
		found[name] = hex.EncodeToString(sum[:])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, found); diff != "" {
		t.Errorf("run `make web` and commit the result (-made of +found):\n%s", diff)
	}
}
