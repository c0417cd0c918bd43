// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/fluxrollouts/rollout-controller/internal/truncate"

// longestMessage is how many characters a message has at most: it may quote values.
const longestMessage = 400

// report is where a rule reports.
type report struct {
	*set
	rule   *Rule
	result *Result
}

// at is a field of an object.
type at struct {
	object *object
	path   []string
}

// find reports a mistake in a field, or in the object if there is no path.
func (r *report) find(where at, message, remedy string) {
	r.result.Findings = append(r.result.Findings, Finding{
		Rule: r.rule.ID, Severity: r.rule.Severity, File: where.object.file, Line: where.object.line(where.path...),
		Object: where.object.String(), Message: truncate.Text(message, longestMessage), Remedy: remedy,
	})
}

// skip reports that a field could not be checked.
func (r *report) skip(where at, reason string) {
	r.result.NotChecked = append(r.result.NotChecked, NotChecked{
		Rule: r.rule.ID, File: where.object.file, Line: where.object.line(where.path...),
		Object: where.object.String(), Reason: truncate.Text(reason, longestMessage),
	})
}
