// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var exception = regexp.MustCompile(`//nolint:([a-z,]+)`)

// An exception from a linter that is switched off hides those that matter: nolintlint looks
// only at exceptions from linters that are enabled.
func TestExceptionsAreFromLintersThatAreEnabled(t *testing.T) {
	var config struct{ Linters struct{ Enable []string } }
	if err := yaml.Unmarshal([]byte(readFile(t, ".golangci.yml")), &config); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"api", "cmd", "docs", "hack", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" {
				return err
			}
			source, err := os.ReadFile(name)
			for _, found := range exception.FindAllStringSubmatch(string(source), -1) {
				for linter := range strings.SplitSeq(found[1], ",") {
					if !slices.Contains(config.Linters.Enable, linter) {
						t.Errorf("%s: an exception from %s, which .golangci.yml does not enable", name, linter)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
