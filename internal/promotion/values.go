// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// LogValues returns the decision as keys and values for a line of the log: what is done
// and why, or else what prevents it. Texts are cut to a size limit.
func (d Decision) LogValues() []any {
	reason, message := d.why()
	values := []any{"action", string(d.Action), "reason", reason}
	if message != "" {
		const longest = 512
		values = append(values, "message", truncate.Text(message, longest))
	}
	if d.Release.Tag != "" {
		values = append(values, "release", d.Release.Tag)
	}
	values = append(values, "candidates", len(d.Candidates))
	if len(d.Resets) > 0 {
		values = append(values, "resets", len(d.Resets))
	}
	if !d.RecheckAt.IsZero() {
		values = append(values, "recheckAt", d.RecheckAt.UTC().Format(time.RFC3339))
	}
	return values
}

// why returns the reason of the action. If nothing is done, it returns that of the
// Problem, or the first hold of the newest candidate.
func (d Decision) why() (reason, message string) {
	switch {
	case d.Reason != "":
		return d.Reason, d.Message
	case d.Problem != nil:
		return d.Problem.Reason, d.Problem.Message
	case len(d.Candidates) > 0 && !d.Candidates[0].Eligible():
		return d.Candidates[0].Holds[0].Reason, d.Candidates[0].Holds[0].Message
	case len(d.Candidates) == 0:
		return v1alpha1.NoReleaseCandidatesReason, ""
	}
	return "", d.Message
}
