// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzFiles checks that no content stops lint, that lines are in the file, and that equal
// files have equal findings.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		gate, policy, rollout, repository + "spec: {ref: {tag: 1.0.0}}\n", kustomization, check, join(policy, rollout, gate),
		release(imageTag, "image: {tag: 1.0.0}"), release(imageTag+", "+imageOfTag, "image: [a]") + "  valuesFrom: [{targetPath: image}]\n",
		"kind: Rollout\nmetadata: 5\n", "apiVersion: kuberik.com/v1alpha1\nkind: RolloutSchedule\nspec: {rules: [{}, 1], timezone: 1}\n",
		"a: &a [*a]\n", "? [a, b]\n: c\n", "a: .inf\nb: 0x10\nc: 18446744073709551615\nd: 2026-01-01\n", "a: ${X:=${Y}}\n", "<<: 1\n",
		strings.Replace(rollout, "15m", "!!binary aGk=", 1), "apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization\nnamespace: a\npatches: [1, {path: a.yaml}]\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		result := lintText(text)
		lines := strings.Count(text, "\n") + 1
		for _, finding := range result.Findings {
			if finding.Line < 0 || finding.Line > lines {
				t.Errorf("line %d of %d: %+v", finding.Line, lines, finding)
			}
		}
		if diff := cmp.Diff(result, lintText(text)); diff != "" {
			t.Error(diff)
		}
	})
}
