// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// AwaitedApprovals is the answer of get --awaiting-approval.
type AwaitedApprovals struct {
	metav1.TypeMeta `json:",inline"`
	Items           []AwaitedApproval `json:"items"`
}

// AwaitedApproval is a release that waits for approvals.
type AwaitedApproval struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Digest    string `json:"digest,omitempty"`
	// Holds are what is missing, and what else holds it.
	Holds []explain.Hold `json:"holds"`
	// MayApprove is true if the user has not approved it yet and has a right that helps.
	MayApprove bool `json:"mayApprove"`
}

// listAwaiting lists the releases that wait for approvals, each decided here and now: the
// status names only the first of several holds.
func (g *getting) listAwaiting(ctx context.Context, names []string) error {
	where, err := g.where(names)
	if err != nil {
		return err
	}
	if g.watch || g.out.Is("wide") || g.out.Is("name") {
		return errors.New("--awaiting-approval does not go together with -w, -o wide and -o name")
	}
	facts, _, err := g.Facts(ctx, where.Namespace)
	if err != nil {
		return err
	}
	all := &v1alpha1.RolloutList{}
	if err := facts.List(ctx, all, &where); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	answer := AwaitedApprovals{TypeMeta: program.AnswerKind("AwaitedApprovals"), Items: []AwaitedApproval{}}
	for i := range all.Items {
		if !g.matches(&all.Items[i], names) {
			continue
		}
		v, err := g.ViewIn(ctx, facts, client.ObjectKeyFromObject(&all.Items[i]), g.Now())
		if err != nil {
			return err
		}
		if err := g.addAwaited(ctx, v, &answer); err != nil {
			return err
		}
	}
	return g.showAwaiting(answer)
}

// addAwaited adds the release of a Rollout that waits for approvals, if there is one.
func (g *getting) addAwaited(ctx context.Context, v program.View, answer *AwaitedApprovals) error {
	waits := awaited(v)
	if waits == nil {
		return nil
	}
	g.SayPartly(v)
	person, err := g.PersonOf(ctx, v)
	if err != nil {
		return err
	}
	v.Person = person
	item := AwaitedApproval{Namespace: v.Rollout.Namespace, Name: v.Rollout.Name}
	candidate := explain.CandidateOf(v.Input, *waits)
	item.Version, item.Digest, item.Holds = candidate.Version, candidate.Digest, candidate.Holds
	item.MayApprove = v.MayApprove(waits.Release)
	answer.Items = append(answer.Items, item)
	return nil
}

// awaited returns what waits for approvals: the release that is pinned, or else the newest
// one; nil if none does.
func awaited(v program.View) *promotion.Verdict {
	if pinned := v.Decision.Awaited; pinned != nil {
		return onlyAwaited(pinned)
	}
	for i := range v.Decision.Candidates {
		if waits := onlyAwaited(&v.Decision.Candidates[i]); waits != nil {
			return waits
		}
	}
	return nil
}

func onlyAwaited(v *promotion.Verdict) *promotion.Verdict {
	if v.HeldBy(v1alpha1.ApprovalRequiredReason) {
		return v
	}
	return nil
}

func (g *getting) showAwaiting(answer AwaitedApprovals) error {
	switch {
	case !g.out.IsText():
		return g.out.Print(g.Program, answer)
	case len(answer.Items) == 0:
		g.Err.Line("no release waits for approvals")
		return nil
	}
	table := show.Table{Header: []string{"NAMESPACE", "NAME", "VERSION", "YOU MAY", "WAITS FOR"}}
	for i := range answer.Items {
		item := &answer.Items[i]
		may := "no"
		if item.MayApprove {
			may = "yes"
		}
		table.Rows = append(table.Rows, []string{item.Namespace, item.Name, item.Version, may, missingIn(item.Holds)})
	}
	table.Write(g.Program.Out)
	return nil
}

// missingIn says which approvals are missing, and how many other holds there are.
func missingIn(holds []explain.Hold) string {
	text := ""
	for _, hold := range holds {
		if hold.Reason == v1alpha1.ApprovalRequiredReason {
			text = hold.Message
		}
	}
	if len(holds) > 1 {
		text += fmt.Sprintf(", and %d more", len(holds)-1)
	}
	return text
}
