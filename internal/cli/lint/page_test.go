// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // to have the same zones on every machine

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// leftOut are the objects that the examples of the page leave out. Each is added, unless
// the example has it.
var leftOut = map[string]string{
	"kind: ImagePolicy\nmetadata:\n  name: shop\n": `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata:
  name: shop
  namespace: shop
spec: {digestReflectionPolicy: Always}
`,
	"kind: Rollout\nmetadata:\n  name: shop\n": `apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata:
  name: shop
  namespace: shop
spec:
  releasesImagePolicy: {name: shop}
  deployTimeout: 15m
`,
	"kind: Rollout\nmetadata:\n  name: staging\n": `apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata:
  name: staging
  namespace: shop
spec:
  releasesImagePolicy: {name: shop}
`,
	"kind: OCIRepository\nmetadata:\n  name: staging\n": `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: staging
  namespace: shop
  annotations: {rollout.kuberik.com/rollout: staging, kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}
spec: {ref: {tag: none-yet}}
`,
	"kind: Kustomization\nmetadata:\n  name: staging\n": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: staging
  namespace: shop
spec:
  sourceRef: {kind: OCIRepository, name: staging}
`,
	repositoryShop: `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: shop
  namespace: shop
  annotations: {rollout.kuberik.com/rollout: shop, kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}
spec: {ref: {tag: none-yet}}
`,
	"kind: Kustomization\nmetadata:\n  name: shop\n": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: shop
  namespace: shop
spec:
  wait: true
  sourceRef: {kind: OCIRepository, name: shop}
`,
}

// An example whose Kustomization shop applies a GitRepository has no OCIRepository shop.
const (
	fromGit        = "kind: GitRepository\n"
	repositoryShop = "kind: OCIRepository\nmetadata:\n  name: shop\n"
)

// section is the part of the page about one rule.
type section struct{ title, severity, bad, good string }

var (
	sectionOf  = regexp.MustCompile(`(?ms)^### (R\d{3})\n\n(.*?)\n\n(Error|Warning)\. .*?\n\nBad:\n\n` + "```yaml\n(.*?)^```\n\nGood:\n\n```yaml\n(.*?)^```\n")
	nameOfFile = regexp.MustCompile(`^# (\S+\.yaml)\n`)
)

func sections(t *testing.T) map[string]section {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli", "lint.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]section{}
	for _, m := range sectionOf.FindAllStringSubmatch(string(page), -1) {
		all[m[1]] = section{title: strings.Join(strings.Fields(m[2]), " "), severity: strings.ToLower(m[3]), bad: m[4], good: m[5]}
	}
	return all
}

// example returns the files of an example, and of what it leaves out.
func example(text string) []lint.File {
	var files []lint.File
	for i, document := range strings.Split(text, "\n---\n") {
		name := fmt.Sprintf("example-%d.yaml", i)
		if match := nameOfFile.FindStringSubmatch(document); match != nil {
			name = match[1]
		}
		files = append(files, lint.File{Name: name, Content: []byte(document)})
	}
	for head, content := range leftOut {
		if !strings.Contains(text, head) && !(strings.Contains(text, fromGit) && head == repositoryShop) {
			files = append(files, lint.File{Name: "left-out.yaml", Content: []byte(content)})
		}
	}
	return files
}

func TestEveryRuleHasASectionAndEverySectionARule(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	for _, rule := range lint.Rules() {
		want[rule.ID] = string(rule.Severity) + ": " + rule.Title
	}
	for id, s := range sections(t) {
		got[id] = s.severity + ": " + s.title
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-) and docs/cli/lint.md (+) differ:\n%s", diff)
	}
}

func TestEveryExampleOfThePage(t *testing.T) {
	for id, s := range sections(t) {
		t.Run(id+" bad", func(t *testing.T) {
			result := lint.Files(example(s.bad), lint.Options{Now: noon})
			if len(result.Findings) == 0 {
				t.Error("it has no finding")
			}
			for _, finding := range result.Findings {
				if finding.Rule != id || finding.Line == 0 || finding.Remedy == "" {
					t.Errorf("it has %+v", finding)
				}
			}
		})
		t.Run(id+" good", func(t *testing.T) {
			if diff := cmp.Diff([]lint.Finding{}, lint.Files(example(s.good), lint.Options{Now: noon}).Findings); diff != "" {
				t.Error(diff)
			}
		})
		t.Run(id+" disabled", func(t *testing.T) {
			if diff := cmp.Diff([]lint.Finding{}, lint.Files(example(s.bad), lint.Options{Now: noon, Disable: []string{id}}).Findings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
