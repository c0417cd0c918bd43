// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namesOfCode finds what the pages for contributors call by a name of the code: files, and
// identifiers with an upper case letter in them, some with their package.
var namesOfCode = regexp.MustCompile("`([a-z_/]+\\.go|[a-z]+[A-Z][A-Za-z]*|[a-z]+\\.[A-Z][A-Za-z]+)`")

// notOurs are names of other projects.
var notOurs = map[string]bool{
	"tagCount": true, "lastAppliedRevision": true, // fields of Flux
}

func TestContributorsFindWhatThePagesName(t *testing.T) {
	known := namesIn(t, "api", "charts", "cmd", "config", "docs", "hack", "internal", "test")
	found := 0
	for page, text := range documents(t) {
		if page != "CONTRIBUTING.md" && !strings.HasPrefix(page, "docs/contributing/") {
			continue
		}
		for _, match := range namesOfCode.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			found++
			if !known[path.Base(match[1])] && !notOurs[match[1]] {
				t.Errorf("%s names `%s`, which does not exist", page, match[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d names", found)
	}
}

var (
	comment  = regexp.MustCompile(`(?m)//.*$`)
	word     = regexp.MustCompile(`[A-Za-z]+`)
	selector = regexp.MustCompile(`[A-Za-z]+\.[A-Za-z]+`)
	clause   = regexp.MustCompile(`(?m)^package (\w+?)(_test)?$`)
)

// namesIn returns the names of the Go files in the folders, and the words of their code,
// each also with its package.
func namesIn(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			names[filepath.Base(name)] = true
			code := comment.ReplaceAllString(string(content), "")
			in := clause.FindStringSubmatch(code)[1]
			for _, is := range selector.FindAllString(code, -1) {
				names[is] = true
			}
			for _, is := range word.FindAllString(code, -1) {
				names[is], names[in+"."+is] = true, true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
