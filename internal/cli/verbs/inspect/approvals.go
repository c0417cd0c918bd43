// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// Approvals is the answer of the verb approvals.
type Approvals struct {
	metav1.TypeMeta `json:",inline"`
	Items           []ApprovedPromotion `json:"items"`
}

// ApprovedPromotion is a promotion, and who let it go.
type ApprovedPromotion struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Entry is the promotion as the history has it.
	Entry v1alpha1.DeploymentHistoryEntry `json:"entry"`
}

type listingApprovals struct {
	*getting
	out  *program.Output
	past bool
}

// NewApprovals returns the verb approvals.
func NewApprovals(p *program.Program) *cobra.Command {
	l := &listingApprovals{getting: &getting{Program: p}}
	cmd := &cobra.Command{
		Use: "approvals [NAME...]", Short: "List who approved what runs, since when and by which right",
		Long: `List who approved what runs, since when and by which right. With --past, list the
promotions that went out past approvals, and why: those that somebody has overridden, and
content that runs without having been approved. These are all that the histories keep.

The answer is what the controller recorded with each promotion. Deleting a RolloutApproval
does not change it.`,
		Example: fmt.Sprintf(`  # Who approved what runs in production?
  %[1]s approvals -A -l tier=prod
  # Which releases went out past approvals, and why?
  %[1]s approvals -A --past`, p.Called),
		ValidArgsFunction: p.CompleteRollouts,
		RunE:              func(cmd *cobra.Command, args []string) error { return l.list(cmd.Context(), args) },
	}
	l.out = program.NewOutput(cmd)
	l.getting.out = l.out
	cmd.Flags().BoolVarP(&l.everywhere, "all-namespaces", "A", false, "list the Rollouts of all namespaces")
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "list only Rollouts with these labels, as in kubectl")
	cmd.Flags().BoolVar(&l.past, "past", false, "list the promotions that went out past approvals")
	return cmd
}

func (l *listingApprovals) list(ctx context.Context, names []string) error {
	where, err := l.where(names)
	if err != nil {
		return err
	}
	c, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	answer := Approvals{TypeMeta: program.AnswerKind("Approvals"), Items: []ApprovedPromotion{}}
	found, err := l.pages(ctx, c, where, names, func(page []v1alpha1.Rollout) {
		for i := range page {
			answer.Items = append(answer.Items, l.of(&page[i])...)
		}
	})
	if err == nil {
		err = l.missing(ctx, c, found, names)
	}
	switch {
	case err != nil:
		return err
	case !l.out.IsText():
		return l.out.Print(l.Program, answer)
	case len(answer.Items) == 0 && l.past:
		l.Err.Line("no promotion of these histories went out past approvals")
	case len(answer.Items) == 0:
		l.Err.Line("nothing runs")
	default:
		l.show(answer.Items)
	}
	return nil
}

// of returns what runs, or the promotions that went out past approvals, the newest first.
func (l *listingApprovals) of(r *v1alpha1.Rollout) []ApprovedPromotion {
	var all []ApprovedPromotion
	for i := range r.Status.History {
		entry := &r.Status.History[i]
		if l.past && wentPast(entry) || !l.past && i == 0 {
			all = append(all, ApprovedPromotion{r.Namespace, r.Name, *entry})
		}
	}
	return all
}

// wentPast reports whether a promotion went out past approvals.
func wentPast(entry *v1alpha1.DeploymentHistoryEntry) bool {
	return entry.Approval != nil && slices.Contains([]v1alpha1.ApprovalOutcome{v1alpha1.OutcomeOverridden, v1alpha1.OutcomeMissing}, entry.Approval.Outcome)
}

func (l *listingApprovals) show(all []ApprovedPromotion) {
	table := show.Table{Header: []string{"NAME", "VERSION", "SINCE", "OUTCOME", "BY", "GATES", "WHY"}}
	if l.everywhere {
		table.Header = append([]string{"NAMESPACE"}, table.Header...)
	}
	for i := range all {
		entry := &all[i].Entry
		row := append([]string{all[i].Name, entry.Version.Tag, show.Moment(entry.Timestamp.Time, l.Now(), l.Zone)}, approvalColumns(entry)...)
		if l.everywhere {
			row = append([]string{all[i].Namespace}, row...)
		}
		table.Rows = append(table.Rows, row)
	}
	table.Write(l.Program.Out)
}

// approvalColumns returns the outcome, who decided by which right, which gates asked, and
// why.
func approvalColumns(entry *v1alpha1.DeploymentHistoryEntry) []string {
	record := entry.Approval
	if record == nil {
		return []string{"not asked", "-", "-", "-"}
	}
	var by, why []string
	for i := range record.By {
		by = append(by, fmt.Sprintf("%s (%s)", record.By[i].Username, rightOf(record, &record.By[i])))
		if reason := record.By[i].Reason; reason != "" {
			why = append(why, record.By[i].Username+": "+reason)
		}
	}
	row := []string{string(record.Outcome), strings.Join(by, ", "), strings.Join(record.Gates, ", "), strings.Join(why, "; ")}
	for i := range row {
		row[i] = program.OrDash(&row[i])
	}
	return row
}

// rightOf returns the verb on Rollouts that somebody needed to decide.
func rightOf(record *v1alpha1.ApprovalRecord, by *v1alpha1.RecordedApproval) string {
	if record.Outcome == v1alpha1.OutcomeOverridden && by.Role == "" {
		return request.Right(v1alpha1.DecisionOverride, "")
	}
	return request.Right(v1alpha1.DecisionApprove, by.Role)
}

// approvedBy returns the rows of one promotion that say who approved it; none if no gate
// asked.
func approvedBy(p *program.Program, entry *v1alpha1.DeploymentHistoryEntry) [][]string {
	record := entry.Approval
	if record == nil {
		return nil
	}
	rows := [][]string{{"Approval", strings.TrimSuffix(string(record.Outcome)+"; asked by "+strings.Join(record.Gates, ", "), "; asked by ")}}
	for i := range record.By {
		by := &record.By[i]
		text := fmt.Sprintf("%s (%s), %s", by.Username, rightOf(record, by), moment(p, &by.Time))
		rows = append(rows, []string{"", strings.TrimSuffix(text+": "+by.Reason, ": ")})
	}
	return rows
}
