// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/simulate"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
)

// pages reads what the page shows, with the rights of the user.
type pages struct {
	*program.Program
	cluster program.Cluster
	// shown returns the namespaces whose Rollouts are shown; an empty name for all of them.
	shown func(context.Context) ([]string, error)
	// actions offers changes; nil for a page that only shows.
	actions Actions
}

// me says who looks at what.
type me struct {
	User    string `json:"user,omitempty"`
	Cluster string `json:"cluster"`
	// Namespace is the only one that is shown; absent for several.
	Namespace string `json:"namespace,omitempty"`
	Version   string `json:"version"`
	// Command is what shows the same list in a terminal, and Pipeline the same pipelines.
	Command  string `json:"command"`
	Pipeline string `json:"pipeline"`
}

// Me implements web.Source.
func (p *pages) Me(ctx context.Context) (any, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := p.cluster.Client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask the API server who you are: %w", err)
	}
	shown, err := p.shown(ctx)
	if err != nil {
		return nil, err
	}
	return me{
		User: review.Status.UserInfo.Username, Cluster: p.ClusterName(), Namespace: only(shown), Version: p.Version,
		Command: p.command("get", shown), Pipeline: p.command("pipeline", shown),
	}, nil
}

// only returns the name if there is one.
func only(namespaces []string) string {
	if len(namespaces) == 1 {
		return namespaces[0]
	}
	return ""
}

// command returns a command for what is shown. For several namespaces, it is one for each of
// them.
func (p *pages) command(verb string, shown []string) string {
	switch {
	case len(shown) != 1:
		return p.CommandLine("NAMESPACE", verb)
	case shown[0] == "":
		return p.CommandLine("", verb, "-A")
	}
	return p.CommandLine(shown[0], verb)
}

// rolloutPage is what is shown of a Rollout.
type rolloutPage struct {
	Explanation explain.Explanation `json:"explanation"`
	Tree        tree.Tree           `json:"tree"`
	// History are the promotions, newest first.
	History []v1alpha1.DeploymentHistoryEntry `json:"history"`
	// Forecast says what happens if nobody does anything; absent if that is not known.
	Forecast string `json:"forecast,omitempty"`
	// Commands are the remedies as they are typed: those of the Rollout first, and then those
	// of each candidate.
	Commands [][]string `json:"commands"`
	// Offers are the actions that the page offers, in the order of the commands; absent if it
	// only shows. Requests are those that have had no effect so far.
	Offers   [][]web.Offer     `json:"offers,omitempty"`
	Requests []explain.Pending `json:"requests,omitempty"`
	// Explain is the command that says the same in a terminal.
	Explain string `json:"explain"`
}

// Rollout implements web.Source.
func (p *pages) Rollout(ctx context.Context, key types.NamespacedName) (any, error) {
	facts, below, err := p.Facts(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	v, err := p.ViewIn(ctx, facts, key, p.Now())
	if err != nil {
		return nil, err
	}
	v.Below = below
	if v.Person, err = p.PersonOf(ctx, v); err != nil {
		return nil, err
	}
	page := rolloutPage{
		Explanation: Explanation(v, Remedied), Tree: Tree(ctx, v), History: slices.Clone(v.Rollout.Status.History),
		Explain: p.CommandLine(key.Namespace, "explain", key.Name),
	}
	if !v.Unread.Any() {
		page.Forecast, _ = simulate.Forecast(p.Program, v) // without one, it is not said
	}
	page.Commands = append(page.Commands, p.typed(key, page.Explanation.Remedies))
	for _, candidate := range page.Explanation.Candidates {
		page.Commands = append(page.Commands, p.typed(key, candidate.Remedies))
	}
	page.Requests = explain.PendingOf(v.Rollout, func(annotation string) *metav1.Time { return sinceOf(v.Rollout, annotation) })
	if p.actions != nil {
		page.Offers, err = p.actions.Offers(ctx, v, page.Explanation)
	}
	return page, err
}

// sinceOf returns when an annotation was set; nil if that is not known.
func sinceOf(r *v1alpha1.Rollout, annotation string) *metav1.Time {
	var since *metav1.Time
	manager := program.ManagerOf(r, []string{"metadata", "annotations", annotation}, func(e metav1.ManagedFieldsEntry) bool {
		since = e.Time
		return true
	})
	if manager == "" {
		return nil
	}
	return since
}

// typed returns remedies as a user types them.
func (p *pages) typed(key types.NamespacedName, remedies []explain.Command) []string {
	all := []string{}
	for _, remedy := range remedies {
		all = append(all, remedyOf(p.Program, key, remedy))
	}
	return all
}

// Pipelines implements web.Source.
func (p *pages) Pipelines(ctx context.Context) (any, error) {
	shown, err := p.shown(ctx)
	if err != nil {
		return nil, err
	}
	return pipelines(ctx, p.cluster.Client, shown, "")
}
