// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

func TestGitHubAnnotations(t *testing.T) {
	for name, tt := range map[string]struct {
		finding lint.Finding
		want    string
	}{
		"an error in a line": {
			finding: lint.Finding{Rule: "R201", Severity: lint.SeverityError, File: "apps/shop.yaml", Line: 3, Message: "it does not exist", Remedy: "create it"},
			want:    "::error file=apps/shop.yaml,line=3,title=R201::it does not exist%0Acreate it",
		},
		"a warning about a file": {
			finding: lint.Finding{Rule: "R305", Severity: lint.SeverityWarning, File: "a.yaml", Message: "no"},
			want:    "::warning file=a.yaml,title=R305::no",
		},
		"an object of a cluster": {
			finding: lint.Finding{Rule: "R305", Severity: lint.SeverityWarning, Message: "no"},
			want:    "::warning title=R305::no",
		},
		"a message that would end the command": {
			finding: lint.Finding{Rule: "R101", Severity: lint.SeverityError, File: "a.yaml", Line: 1, Message: "100%\r\n::error::b, c"},
			want:    "::error file=a.yaml,line=1,title=R101::100%25%0D%0A::error::b, c",
		},
		"a name that would add properties": {
			finding: lint.Finding{Rule: "R101", Severity: lint.SeverityError, File: "a,line=9::b%\n.yaml", Line: 1, Message: "no"},
			want:    "::error file=a%2Cline=9%3A%3Ab%25%0A.yaml,line=1,title=R101::no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.finding.GitHub(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
