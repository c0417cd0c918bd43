// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// History is the answer of the verb history.
type History struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	// Entries are the promotions, oldest first.
	Entries []v1alpha1.DeploymentHistoryEntry `json:"entries"`
}

// NewHistory returns the verb history.
func NewHistory(p *program.Program) *cobra.Command {
	var out *program.Output
	cmd := &cobra.Command{
		Use: "history NAME [ID]", Short: "List the promotions of a Rollout, the newest last",
		Example: fmt.Sprintf(`  %[1]s history shop
  # One promotion, with its failed checks and digest
  %[1]s history shop 41`, p.Called),
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return history(cmd.Context(), p, out, args) },
	}
	out = program.NewOutput(cmd)
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func history(ctx context.Context, p *program.Program, out *program.Output, args []string) error {
	rollout, err := p.Rollout(ctx, args[0])
	if err != nil {
		return err
	}
	answer := History{program.AnswerKind("History"), rollout.Namespace, rollout.Name, slices.Clone(rollout.Status.History)}
	slices.Reverse(answer.Entries)
	if len(args) == 2 {
		if answer.Entries, err = entryOf(answer.Entries, args[1]); err != nil {
			return err
		}
	}
	switch {
	case !out.IsText():
		return out.Print(p, answer)
	case len(args) == 2:
		entry(p, &answer.Entries[0])
	default:
		entries(p, answer.Entries)
	}
	return nil
}

func entryOf(entries []v1alpha1.DeploymentHistoryEntry, id string) ([]v1alpha1.DeploymentHistoryEntry, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "#"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no number of a promotion; write it like 41", id)
	}
	for _, entry := range entries {
		if entry.ID != nil && *entry.ID == n {
			return []v1alpha1.DeploymentHistoryEntry{entry}, nil
		}
	}
	return nil, fmt.Errorf("the history has no promotion #%d: it keeps only the newest ones, see spec.versionHistoryLimit", n)
}

func entries(p *program.Program, entries []v1alpha1.DeploymentHistoryEntry) {
	if len(entries) == 0 {
		p.Err.Line("nothing was promoted yet")
		return
	}
	table := show.Table{Header: []string{"#", "VERSION", "WHEN", "BY", "OUTCOME", "APPLIED", "BAKED", "WHY"}}
	for i := range entries {
		entry := &entries[i]
		table.Rows = append(table.Rows, []string{
			number(entry), releases.NameAmong(entry.Version, entries), show.Moment(entry.Timestamp.Time, p.Now(), p.Zone), byWhom(entry),
			string(entry.State()), appliedIn(entry), bakedFor(entry), why(entry),
		})
	}
	table.Write(p.Out)
}

func number(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.ID == nil {
		return "-"
	}
	return strconv.FormatInt(*entry.ID, 10)
}

// why returns what failed the promotion, and what caused it.
func why(entry *v1alpha1.DeploymentHistoryEntry) string {
	text := program.OrDash(entry.Message)
	if entry.State() == v1alpha1.BakeFailed && entry.BakeStatusMessage != nil {
		return "failed: " + *entry.BakeStatusMessage + "; promoted: " + text
	}
	return text
}

// appliedIn returns how long it took until the release was applied and healthy.
func appliedIn(entry *v1alpha1.DeploymentHistoryEntry) string {
	return span(&entry.Timestamp, entry.BakeStartTime)
}

func bakedFor(entry *v1alpha1.DeploymentHistoryEntry) string {
	return span(entry.BakeStartTime, entry.BakeEndTime)
}

func span(from, to *metav1.Time) string {
	if from == nil || to == nil {
		return "-"
	}
	return show.Span(to.Sub(from.Time))
}

// entry shows one promotion with all that is recorded.
func entry(p *program.Program, entry *v1alpha1.DeploymentHistoryEntry) {
	cause := string(entry.Cause)
	rows := [][]string{
		{"Version", entry.Version.Tag}, {"Digest", program.OrDash(entry.Version.Digest)}, {"Revision", program.OrDash(entry.Version.Revision)},
		{"Promoted", moment(p, &entry.Timestamp)}, {"By", byWhom(entry)}, {"Why", program.OrDash(entry.Message)},
		{"Outcome", string(entry.State())}, {"", program.OrDash(entry.BakeStatusMessage)},
		{"Cause", program.OrDash(&cause)}, {"Rollback due", moment(p, entry.RollbackDue)}, {"Rollback", rollbackOf(entry)}, {"Reported to", reportedTo(entry)},
		{"Bake began", moment(p, entry.BakeStartTime)}, {"Not healthy since", moment(p, entry.UnprovenSince)}, {"Stood still for", stoodStill(entry)},
		{"Bake ended", moment(p, entry.BakeEndTime)}, {"Retried", moment(p, entry.LastRetryTimestamp)},
	}
	rows = append(rows, approvedBy(p, entry)...)
	for _, check := range entry.FailedHealthChecks {
		rows = append(rows, []string{"Failed check", fmt.Sprintf("%s/%s: %s", check.Namespace, check.Name, program.OrDash(check.Message))})
	}
	show.Table{Rows: slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "-" })}.Write(p.Out)
}

// stoodStill returns for how long the bake time stood still before it went on.
func stoodStill(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.UnprovenFor == nil {
		return "-"
	}
	return show.Span(entry.UnprovenFor.Duration)
}

// reportedTo names the quarantine to which a failure was reported.
func reportedTo(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.Quarantine == "" {
		return "-"
	}
	return v1alpha1.ReleaseQuarantineKind + " " + entry.Quarantine
}

// rollbackOf says from which entry a rollback went back, and to which.
func rollbackOf(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.Rollback == nil {
		return "-"
	}
	return fmt.Sprintf("from %s (#%d), as it was in #%d", entry.Rollback.From, entry.Rollback.FromID, entry.Rollback.ToID)
}

func moment(p *program.Program, t *metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return show.Exact(t.Time, p.Zone) + agoIn(t.Time, p.Now())
}

func agoIn(t, now time.Time) string {
	if t.After(now) {
		return " (in " + show.Span(t.Sub(now)) + ")"
	}
	return " (" + show.Ago(t, now) + " ago)"
}
