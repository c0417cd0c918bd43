// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

type waiting struct {
	*program.Program
	goal    string
	timeout time.Duration
	said    string
}

// NewWait returns the verb wait.
func NewWait(p *program.Program) *cobra.Command {
	w := &waiting{Program: p}
	cmd := &cobra.Command{
		Use: "wait NAME --for=GOAL", Short: "Wait until a release is out, for scripts and CI",
		Long: `Wait until something is so, and say on stderr what it waits for.

GOAL is one of
  version=TAG    the release is out and its bake succeeded
  applied=TAG    it is applied and healthy
  promoted=TAG   its promotion was recorded
  candidate=TAG  the controller knows it, and it may be promoted
  idle           nothing deploys or bakes

Exit codes: 0 it is so; 3 it ended otherwise: failed, cancelled or superseded;
4 time ran out; 1 the Rollout does not exist.`,
		Example: fmt.Sprintf(`  %[1]s wait shop --for=version=1.5.0 --timeout 1h`, p.Called),
		Args:    program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return w.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&w.goal, "for", "", "what to wait for")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 15*time.Minute, "how long to wait at most")
	return cmd
}

func (w *waiting) run(ctx context.Context, name string) error {
	goal, err := parseGoal(w.goal)
	if err != nil {
		return err
	}
	namespace, err := w.Namespace()
	if err != nil {
		return err
	}
	c, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, w.timeout)
	defer stop()
	readable, link := newLink(limited, w.Program)
	defer link.stop(nil)
	where := client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}
	_, err = watchtools.UntilWithSync(readable, link.rollouts(c, where), &v1alpha1.Rollout{}, w.exists(limited, c, namespace, name),
		func(event watch.Event) (bool, error) { return w.look(goal, event) })
	switch refused := link.refused(); {
	case refused != nil:
		return refused
	case limited.Err() != nil && ctx.Err() == nil:
		return program.Exit{Code: program.TimeRanOut, Err: fmt.Errorf("time ran out: %s", cmp.Or(w.said, "nothing was seen of the Rollout"))}
	}
	return err
}

// exists ends the wait if there is no such Rollout.
func (w *waiting) exists(ctx context.Context, c program.Cluster, namespace, name string) watchtools.PreconditionFunc {
	return func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return true, w.NoSuchRollout(ctx, c.Client, namespace, name)
		}
		return false, nil
	}
}

func (w *waiting) look(g goal, event watch.Event) (bool, error) {
	rollout, ok := event.Object.(*v1alpha1.Rollout)
	if !ok || event.Type == watch.Deleted {
		return true, errors.New("the Rollout was deleted")
	}
	state, text := g.look(rollout)
	if text != w.said && state == pending {
		w.Err.Sentence(show.Waits, "%s", text)
	}
	w.said = text
	switch state {
	case reached:
		w.Out.Sentence(show.Well, "%s", text)
		return true, nil
	case missed:
		return true, program.Exit{Code: program.Otherwise, Err: errors.New(text)}
	case pending:
	}
	return false, nil
}

// goal is what is waited for.
type goal struct {
	kind, tag string
	// wasCandidate is true once the tag was seen as a candidate.
	wasCandidate *bool
}

// progress is how a goal stands.
type progress int

const (
	pending progress = iota
	reached
	missed
)

func parseGoal(text string) (goal, error) {
	kind, tag, _ := strings.Cut(text, "=")
	switch kind {
	case "version", "applied", "promoted", "candidate":
		if tag != "" {
			return goal{kind, tag, new(bool)}, nil
		}
	case "idle":
		if tag == "" {
			return goal{kind: kind}, nil
		}
	}
	return goal{}, fmt.Errorf("--for=%q: choose version=TAG, applied=TAG, promoted=TAG, candidate=TAG or idle", text)
}

// look compares the status of a Rollout with the goal.
func (g goal) look(r *v1alpha1.Rollout) (progress, string) {
	if g.kind == "idle" {
		return idle(r)
	}
	for i := range r.Status.History {
		if entry := &r.Status.History[i]; entry.Version.Tag == g.tag {
			return g.entry(entry, i == 0)
		}
	}
	return g.unpromoted(r)
}

func idle(r *v1alpha1.Rollout) (progress, string) {
	current := r.Current()
	if current == nil || !current.State().Running() {
		return reached, "nothing deploys or bakes"
	}
	return pending, said(current)
}

func said(entry *v1alpha1.DeploymentHistoryEntry) string {
	text := fmt.Sprintf("%s is %s%s", entry.Version.Tag, entry.State(), idOf(entry))
	if entry.BakeStatusMessage != nil {
		text += ": " + *entry.BakeStatusMessage
	}
	return text
}

// entry judges a promotion of the release.
func (g goal) entry(entry *v1alpha1.DeploymentHistoryEntry, isCurrent bool) (progress, string) {
	applied := entry.BakeStartTime != nil || entry.State() == v1alpha1.BakeSucceeded
	switch {
	case g.kind == "promoted", g.kind == "candidate", g.kind == "applied" && applied, entry.State() == v1alpha1.BakeSucceeded:
		return reached, said(entry)
	case entry.State() == v1alpha1.BakeFailed, entry.State() == v1alpha1.BakeCancelled:
		return missed, said(entry)
	case !isCurrent:
		return missed, g.tag + " was superseded"
	}
	return pending, said(entry)
}

// unpromoted judges a release that was not promoted.
func (g goal) unpromoted(r *v1alpha1.Rollout) (progress, string) {
	for _, candidate := range r.Status.ReleaseCandidates {
		if candidate.Tag != g.tag {
			continue
		}
		*g.wasCandidate = true
		state := pending
		if g.kind == "candidate" {
			state = reached
		}
		return state, g.tag + " is a candidate" + heldBy(candidate)
	}
	if *g.wasCandidate {
		return missed, g.tag + " is no candidate any more: it was superseded or withdrawn"
	}
	return pending, g.tag + " is not known yet: Flux has not reported it, or it is not newer than what runs"
}

func heldBy(c v1alpha1.ReleaseCandidate) string {
	var messages []string
	for _, hold := range c.Holds {
		messages = append(messages, hold.Message)
	}
	if len(messages) == 0 {
		return ""
	}
	return ", held: " + strings.Join(messages, "; ")
}
