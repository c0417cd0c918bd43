// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestHookForPreCommitCallsAVerbThatExists(t *testing.T) {
	content, err := os.ReadFile("../../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct {
		ID    string   `json:"id"`
		Entry string   `json:"entry"`
		Args  []string `json:"args"`
	}
	if err := yaml.Unmarshal(content, &hooks); err != nil || len(hooks) != 1 {
		t.Fatalf("%v, %v", hooks, err)
	}
	words := slices.Concat(strings.Fields(hooks[0].Entry), hooks[0].Args)
	if words[0] != "flux-rollout" || words[1] != "lint" {
		t.Errorf("the hook %s runs %q", hooks[0].ID, words)
	}
	if err := parse(words[1:]); err != nil {
		t.Errorf("the hook %s runs %q: %v", hooks[0].ID, words, err)
	}
}
