// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// capabilities are the rows of README.md that this project answers with yes, each with what
// docs/comparison.md must say about it, and what it must not say any more.
var capabilities = map[string]struct{ says, denies []string }{
	"releases to wait for gates, office hours, freezes": {
		says: []string{"gates, time windows and a bake for each environment | this controller", "IANA zones, freezes"},
	},
	"proof that Flux applied a release, and health for a bake time": {says: []string{"proof that Flux has applied it", "bake time"}},
	"to know why a release is not out, and what happens when":       {says: []string{"what holds it", "guides/command-line.md"}},
	"Deployments one at a time, StatefulSets zone by zone":          {says: []string{"guides/workloads.md"}},
	"promotion from staging to production": {
		says: []string{"or between clusters that reach one OCI registry | this controller", "guides/environments.md#between-clusters"},
		denies: []string{"in one API server", "does not promote between clusters", "promotion between clusters | kuberik",
			"in one cluster or from a hub | this controller"},
	},
	"health from Prometheus and HTTP requests":                 {says: []string{"Prometheus, HTTP", "guides/health-measurements.md"}},
	"automatic rollback":                                       {says: []string{"opt-in", "guides/rollback.md"}},
	"a bad release held on all Rollouts after it fails on one": {says: []string{"guides/recall.md"}},
}

// answered finds the rows of the table in README.md: what a user wants, and the answer.
var answered = regexp.MustCompile(`(?m)^\| ([^|]+?) \| ([^|]+?) \|$`)

// The comparison must show what the README promises: users choose by it.
func TestComparisonSaysWhatTheReadmeDoes(t *testing.T) {
	page := words(t, "docs", "comparison.md")
	rows := map[string]bool{}
	for _, row := range answered.FindAllStringSubmatch(chapter(t, readFile(t, "README.md"), "## Is it for me?"), -1) {
		if answer := strings.TrimPrefix(row[2], "["); strings.HasPrefix(answer, "yes") {
			rows[row[1]] = true
		}
	}
	for row := range rows {
		if _, known := capabilities[row]; !known {
			t.Errorf("README.md says yes to %q: say so in docs/comparison.md, and list it here", row)
		}
	}
	for row, capability := range capabilities {
		if !rows[row] {
			t.Errorf("README.md does not say yes to %q any more: correct docs/comparison.md, and this list", row)
		}
		for _, text := range capability.says {
			if !strings.Contains(page, text) {
				t.Errorf("docs/comparison.md does not say %q, although README.md says yes to %q", text, row)
			}
		}
		for _, text := range capability.denies {
			if strings.Contains(page, text) {
				t.Errorf("docs/comparison.md says %q, although README.md says yes to %q", text, row)
			}
		}
	}
}

// words returns the text of a page with one space between its words.
func words(t *testing.T, path ...string) string {
	t.Helper()
	return strings.Join(strings.Fields(readFile(t, path...)), " ")
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// chapter returns the part of a page below a heading.
func chapter(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page, heading+"\n")
	if !found {
		t.Fatalf("there is no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}
