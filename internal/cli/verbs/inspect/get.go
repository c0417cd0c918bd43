// SPDX-License-Identifier: Apache-2.0

// Package inspect has the verbs that say what is so: what runs, what waits and why, and what
// was.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

type getting struct {
	*program.Program
	out                            *program.Output
	everywhere                     bool
	selector                       string
	held, failed, moving, suspends bool
	ready                          string
	noHeader, watch, plain         bool
	awaiting                       bool
}

// NewGet returns the verb get.
func NewGet(p *program.Program) *cobra.Command {
	g := &getting{Program: p}
	cmd := &cobra.Command{
		Use: "get [NAME...]", Aliases: []string{"list", "watch"}, Short: "List Rollouts: what runs, and what the next release waits for",
		Long: `List Rollouts: what runs, and what the next release waits for. In JSON and YAML, one name
is one object, and anything else is a list.

With -w, or as the verb watch, go on and show changes until you press Ctrl-C. On a
terminal the lines are drawn again in place; elsewhere, and with --plain, each change is a
new line.`,
		Example: fmt.Sprintf(`  # What is held, anywhere?
  %[1]s get -A --held
  # What waits for approvals, and which of it may you approve?
  %[1]s get -A --awaiting-approval
  # For a script
  %[1]s get shop -o jsonpath='{.status.history[0].version.tag}'`, p.Called),
		RunE: func(cmd *cobra.Command, args []string) error {
			if g.awaiting {
				return g.listAwaiting(cmd.Context(), args)
			}
			if g.watch || cmd.CalledAs() == "watch" {
				return g.follow(cmd.Context(), args)
			}
			return g.run(cmd.Context(), args)
		},
		ValidArgsFunction: p.CompleteRollouts,
	}
	g.out = program.NewOutput(cmd, "wide", "name")
	flags := cmd.Flags()
	flags.BoolVarP(&g.everywhere, "all-namespaces", "A", false, "list the Rollouts of all namespaces")
	flags.StringVarP(&g.selector, "selector", "l", "", "list only Rollouts with these labels, as in kubectl")
	flags.BoolVar(&g.held, "held", false, "only those with a candidate that is held")
	flags.BoolVar(&g.awaiting, "awaiting-approval", false, "only releases that wait for approvals, pinned ones too, and whether you may approve them")
	flags.BoolVar(&g.failed, "failed", false, "only those whose current release failed")
	flags.BoolVar(&g.moving, "moving", false, "only those that deploy or bake")
	flags.BoolVar(&g.suspends, "suspended", false, "only those that are suspended")
	flags.StringVar(&g.ready, "status-selector", "", "only those with this status of the condition Ready, as in flux: ready=false")
	flags.BoolVarP(&g.watch, "watch", "w", false, "go on and show changes")
	flags.BoolVar(&g.plain, "plain", false, "with -w, a line for each change, also on a terminal")
	flags.BoolVar(&g.noHeader, "no-headers", false, "leave out the names of the columns")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "no-header" { // as in flux
			name = "no-headers"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

func (g *getting) run(ctx context.Context, names []string) error {
	where, err := g.where(names)
	if err != nil {
		return err
	}
	c, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	if !g.out.IsText() || g.out.Is("name") {
		return g.printAll(ctx, c, where, names)
	}
	found, err := g.pages(ctx, c, where, names, g.table())
	switch {
	case err != nil:
		return err
	case found == 0 && len(names) == 0:
		g.Err.Line("no Rollouts found")
	}
	return g.missing(ctx, c, found, names)
}

// where returns which Rollouts are read.
func (g *getting) where(names []string) (client.ListOptions, error) {
	none := client.ListOptions{}
	if g.everywhere && len(names) > 0 {
		return none, fmt.Errorf("names and -A do not go together; write: %s", g.CommandLine("NAMESPACE", append([]string{"get"}, names...)...))
	}
	if g.ready != "" && !slices.Contains([]string{"ready=true", "ready=false", "ready=unknown"}, strings.ToLower(g.ready)) {
		return none, fmt.Errorf("--status-selector is ready=true, ready=false or ready=unknown, not %q", g.ready)
	}
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return none, fmt.Errorf("--selector: %w", err)
	}
	if g.everywhere {
		return client.ListOptions{LabelSelector: selector}, nil
	}
	namespace, err := g.Namespace()
	return client.ListOptions{Namespace: namespace, LabelSelector: selector}, err
}

// pages calls a function with what matches of each page, and returns how many match.
func (g *getting) pages(ctx context.Context, c program.Cluster, where client.ListOptions, names []string, with func([]v1alpha1.Rollout)) (int, error) {
	found := 0
	for where.Limit = program.PageSize; ; {
		page := &v1alpha1.RolloutList{}
		if err := c.Client.List(ctx, page, &where); err != nil {
			return found, fmt.Errorf("list Rollouts: %w", err)
		}
		matching := slices.DeleteFunc(page.Items, func(r v1alpha1.Rollout) bool { return !g.matches(&r, names) })
		found += len(matching)
		with(matching)
		if where.Continue = page.Continue; page.Continue == "" {
			return found, nil
		}
	}
}

func (g *getting) matches(r *v1alpha1.Rollout, names []string) bool {
	var state v1alpha1.BakeStatus
	if current := r.Current(); current != nil {
		state = current.State()
	}
	for _, filter := range []struct{ chosen, matches bool }{
		{len(names) > 0, slices.Contains(names, r.Name)},
		{g.held, holdsNewest(r)},
		{g.failed, state == v1alpha1.BakeFailed},
		{g.moving, state.Running() && !r.Spec.Suspend},
		{g.suspends, r.Spec.Suspend},
		{g.ready != "", strings.EqualFold(g.ready, "ready="+string(readyOf(r)))},
	} {
		if filter.chosen && !filter.matches {
			return false
		}
	}
	return true
}

func readyOf(r *v1alpha1.Rollout) metav1.ConditionStatus {
	if condition := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ReadyCondition); condition != nil {
		return condition.Status
	}
	return metav1.ConditionUnknown
}

// missing says which names were not found.
func (g *getting) missing(ctx context.Context, c program.Cluster, found int, names []string) error {
	if found < len(names) && !g.held && !g.failed && !g.moving && !g.suspends && g.ready == "" && g.selector == "" {
		namespace, err := g.Namespace()
		if err != nil {
			return err
		}
		return g.NoSuchRollout(ctx, c.Client, namespace, names...)
	}
	return nil
}

// printAll prints all that match as one list.
func (g *getting) printAll(ctx context.Context, c program.Cluster, where client.ListOptions, names []string) error {
	list := v1alpha1.RolloutList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutList"}, Items: []v1alpha1.Rollout{}}
	found, err := g.pages(ctx, c, where, names, func(page []v1alpha1.Rollout) {
		for _, rollout := range page {
			rollout.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Rollout"))
			list.Items = append(list.Items, rollout)
		}
	})
	if err != nil {
		return err
	}
	if g.out.Is("name") {
		for _, rollout := range list.Items {
			g.Program.Out.Line("rollout.kuberik.com/%s", rollout.Name)
		}
		return g.missing(ctx, c, found, names)
	}
	missing := g.missing(ctx, c, found, names)
	switch {
	case found == 0 && missing != nil:
		return missing
	case found == 1 && len(names) == 1:
		err = g.out.Print(g.Program, list.Items[0])
	default:
		err = g.out.Print(g.Program, list)
	}
	return cmp.Or(err, missing)
}

// header returns the names of the columns.
func (g *getting) header() []string {
	header := []string{"NAME", "VERSION", "STATE", "SINCE", "NEXT", "WAITS FOR"}
	if g.out.Is("wide") {
		header = append(header[:5:5], "BY", "MESSAGE", "WAITS FOR")
	}
	if g.everywhere {
		header = append([]string{"NAMESPACE"}, header...)
	}
	return header
}

// table returns a function that prints pages, the first one with the header.
func (g *getting) table() func([]v1alpha1.Rollout) {
	out := g.Program.Out
	if g.out.Is("wide") {
		out.Width = 0
	}
	return func(page []v1alpha1.Rollout) {
		table := show.Table{}
		if len(page) > 0 && !g.noHeader {
			table.Header, g.noHeader = g.header(), true
		}
		for i := range page {
			table.Rows = append(table.Rows, g.row(&page[i]))
		}
		table.Write(out)
	}
}

func (g *getting) row(r *v1alpha1.Rollout) []string {
	version, state, since := "-", "-", "-"
	by, message := "-", "-"
	if current := r.Current(); current != nil {
		version, state = runningOf(r), stateOf(r, current, g.Now())
		since = show.Ago(current.Timestamp.Time, g.Now())
		by, message = byWhom(current), program.OrDash(current.Message)
	}
	if r.Spec.Suspend {
		state = "Suspended"
	}
	row := []string{r.Name, version, state, since, nextOf(r)}
	if g.out.Is("wide") {
		row = append(row, by, message)
	}
	if g.everywhere {
		row = append([]string{r.Namespace}, row...)
	}
	waits := waitsOr(r)
	if g.out.Is("wide") {
		waits += notFollowed(r)
	}
	return append(row, waits)
}

// stateOf returns the state of an entry, and of a bake how much of it is over.
func stateOf(r *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry, now time.Time) string {
	share, baking := baked(r, entry, now)
	if !baking {
		return string(entry.State())
	}
	return fmt.Sprintf("Baking %.0f%%", 100*share)
}

// baked returns how much health of a bake is counted, from 0 to 1, and whether one runs.
func baked(r *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry, now time.Time) (float64, bool) {
	bake := r.Spec.BakeTimeOf(entry)
	if entry.State() != v1alpha1.BakeInProgress || entry.BakeStartTime == nil || bake == nil || bake.Duration <= 0 {
		return 0, false
	}
	healthy := now.Sub(entry.BakeStartTime.Time) - entry.StoodStill(now)
	return min(max(float64(healthy)/float64(bake.Duration), 0), 1), true
}

func byWhom(entry *v1alpha1.DeploymentHistoryEntry) string {
	if by := entry.TriggeredBy; by != nil && by.Kind != v1alpha1.TriggeredBySystem && by.Name != "" {
		return by.Name
	}
	return "system"
}

func nextOf(r *v1alpha1.Rollout) string {
	if len(r.Status.ReleaseCandidates) == 0 {
		return "-"
	}
	return releases.NameOf(r.Status.ReleaseCandidates[0].VersionInfo, r.Current())
}

// runningOf returns the version that runs, with its digest if the next release has the same tag.
func runningOf(r *v1alpha1.Rollout) string {
	running := r.Current().Version
	if all := r.Status.ReleaseCandidates; len(all) > 0 {
		return releases.NameOf(running, &v1alpha1.DeploymentHistoryEntry{Version: all[0].VersionInfo})
	}
	return running.Tag
}

// waitsOr returns why nothing newer is out.
func waitsOr(r *v1alpha1.Rollout) string {
	state := explain.StateOf(r)
	if state.Kind == explain.StateGoes {
		return "-"
	}
	return program.OrDash(&state.Cause)
}

// notFollowed returns what is said of the consumers of an OCIRepository that has pulled the
// release; empty if all are followed.
func notFollowed(r *v1alpha1.Rollout) string {
	for _, t := range r.Status.Targets {
		if t.State == v1alpha1.TargetApplied && t.Message != "" {
			return fmt.Sprintf("; %s %s: %s", t.Kind, t.Name, t.Message)
		}
	}
	return ""
}

// holdsNewest reports whether something holds the newest candidate.
func holdsNewest(r *v1alpha1.Rollout) bool {
	return len(r.Status.ReleaseCandidates) > 0 && len(r.Status.ReleaseCandidates[0].Holds) > 0
}
