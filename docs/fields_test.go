// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// TestEveryFieldOfARolloutHasASection looks for the headings of the spec page. Some of them
// are about two fields.
func TestEveryFieldOfARolloutHasASection(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("spec", "v1alpha1", "rollouts.md"))
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "### ") {
			headings = append(headings, line)
		}
	}
	all := strings.Join(headings, "")
	for field := range reflect.TypeFor[v1alpha1.RolloutSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !strings.Contains(all, "`.spec."+name+"`") {
			t.Errorf("docs/spec/v1alpha1/rollouts.md has no section about .spec.%s", name)
		}
	}
}
