// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// LogValues returns the plan as keys and values for a log line: the writes to
// Deployments, and the notes about the coordinations.
func (p Plan) LogValues() []any {
	action, reasons := "Nothing", []string{}
	if len(p.Writes) > 0 {
		action = truncate.List(actions(p.Writes))
	}
	for _, journal := range p.Journals {
		for _, note := range journal.Notes {
			reasons = append(reasons, journal.Coordination+": "+note.Reason)
		}
	}
	values := []any{"action", action, "reason", truncate.List(reasons), "coordinations", len(p.Journals)}
	if !p.RecheckAt.IsZero() {
		values = append(values, "recheckAt", p.RecheckAt.UTC().Format(time.RFC3339))
	}
	return values
}

func actions(writes []Write) []string {
	var all []string
	for _, w := range writes {
		all = append(all, string(w.Kind)+" "+w.Deployment)
	}
	return all
}
