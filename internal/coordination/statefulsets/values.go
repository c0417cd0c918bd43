// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// LogValues returns the plan as keys and values for a log line: the state of the group,
// its reason, and the pods to delete.
func (p Plan) LogValues() []any {
	const longest = 512
	values := []any{"action", string(p.State), "reason", p.Reason}
	if p.Message != "" {
		values = append(values, "message", truncate.Text(p.Message, longest))
	}
	if len(p.Delete) > 0 {
		values = append(values, "delete", truncate.List(pods(p.Delete)))
	}
	if len(p.Promote) > 0 {
		values = append(values, "finish", truncate.List(p.Promote))
	}
	if !p.RecheckAt.IsZero() {
		values = append(values, "recheckAt", p.RecheckAt.UTC().Format(time.RFC3339))
	}
	return values
}

func pods(deletions []Deletion) []string {
	var all []string
	for _, d := range deletions {
		all = append(all, d.Pod)
	}
	return all
}
