// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

const root = "../../.."

// sampleFolders are the folders with samples. The files of each are checked together.
var sampleFolders = map[string]struct {
	external []lint.External
	// wrong are the findings about what a sample shows on purpose, with the reason.
	wrong map[string]string
}{
	"config/samples":              {},
	"config/samples/quickstart":   {},
	"config/samples/calendar":     {},
	"config/samples/health":       {},
	"config/samples/helm":         {},
	"config/samples/rollback":     {},
	"config/samples/quarantine":   {},
	"config/samples/approvals":    {external: []lint.External{{Kind: "Rollout", Namespace: "podinfo", Name: "podinfo"}}},
	"config/samples/digests":      {},
	"config/samples/git":          {},
	"config/samples/monorepo":     {},
	"config/samples/environments": {},
	"config/samples/error-rate":   {},
	// Each is a cluster of its own. night has what is different in production.
	"config/samples/environments-oci/staging":    {},
	"config/samples/environments-oci/production": {},
	"config/samples/environments-oci/night":      {external: []lint.External{{Kind: "Rollout", Namespace: "shop", Name: "shop"}}},
	"config/samples/running": {wrong: map[string]string{
		"config/samples/running/shop-payments.yaml R203": "it is a step of a migration: its comment says to take the field out of Git later",
	}},
	"config/coordination/samples":        {},
	"config/statefulset-rollout/samples": {},
}

func TestEverySampleHasNoFindings(t *testing.T) {
	for folder, tt := range sampleFolders {
		t.Run(folder, func(t *testing.T) {
			names, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
			if err != nil || len(names) == 0 {
				t.Fatalf("files: %v, %v", names, err)
			}
			var files []lint.File
			for _, name := range names {
				content, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, lint.File{Name: strings.TrimPrefix(name, root+"/"), Content: content})
			}
			compare(t, lint.Files(files, lint.Options{Now: noon, External: tt.external}), tt.wrong)
		})
	}
}

// compare checks that there are exactly the findings that are wrong on purpose.
func compare(t *testing.T, result lint.Result, wrong map[string]string) {
	t.Helper()
	found := map[string]bool{}
	for _, finding := range result.Findings {
		key := finding.File + " " + finding.Rule
		found[key] = true
		if wrong[key] == "" {
			t.Errorf("%+v", finding)
		}
	}
	for key, reason := range wrong {
		if !found[key] {
			t.Errorf("%s has no finding any more, although %s", key, reason)
		}
	}
}

func TestEveryFolderWithSamplesIsChecked(t *testing.T) {
	got, want := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "config"), func(name string, entry fs.DirEntry, err error) error {
		if folder := strings.TrimPrefix(filepath.Dir(name), root+"/"); err == nil && strings.Contains(folder, "samples") && filepath.Ext(name) == ".yaml" {
			want[folder] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range sampleFolders {
		got[folder] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// onPages are the rules that a block of a page cannot pass, because it shows a part: what
// it refers to is in another block, or is left out.
var onPages = []string{"R201", "R202", "R207", "R301", "R303", "R402", "R404", "R601", "R602", "R603"}

// wrongOnPages are the findings about what pages show on purpose, with the reason.
var wrongOnPages = map[string]string{
	"docs/guides/image-automation.md R217": "it is a step of a migration: the next one adds the tag",
}

var block = regexp.MustCompile("(?ms)^([ ]*)```yaml\n(.*?)^[ ]*```$")

func TestEveryManifestOfTheDocumentsHasNoFindings(t *testing.T) {
	var files []lint.File
	blocks := 0
	for name, text := range pages(t) {
		for _, match := range block.FindAllStringSubmatch(text, -1) {
			blocks++
			content := regexp.MustCompile("(?m)^"+match[1]).ReplaceAllString(match[2], "")
			files = append(files, lint.File{Name: name, Content: []byte(content)})
		}
	}
	if blocks < 30 {
		t.Errorf("found only %d blocks", blocks)
	}
	var all lint.Result
	for _, file := range files {
		all.Findings = append(all.Findings, lint.Files([]lint.File{file}, lint.Options{Now: noon, Disable: onPages}).Findings...)
	}
	compare(t, all, wrongOnPages)
}

// pages returns README.md and the pages below docs, without the page of the rules.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(name string) {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	add("README.md")
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if name = strings.TrimPrefix(name, root+"/"); err == nil && filepath.Ext(name) == ".md" && name != "docs/cli/lint.md" {
			add(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
