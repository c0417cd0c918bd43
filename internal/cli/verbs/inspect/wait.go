// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

type waiting struct {
	*program.Program
	timeout time.Duration
	said    string
}

// NewWait returns the verb wait.
func NewWait(p *program.Program) *cobra.Command {
	w, text, tag := &waiting{Program: p}, "", ""
	cmd := &cobra.Command{
		Use: "wait NAME [VERSION]", Short: "Wait until a release is out, for scripts and CI",
		Long: `Wait until something is so, and say on stderr what it waits for.

Without a version, it waits until the newest release that the controller knows is out: the
version that a user has chosen, or the newest candidate, or the current release. Name
the version where Flux may not have seen it yet. --for is one of
  version=TAG    the release is out and its bake succeeded; "wait NAME TAG" is the same
  applied=TAG    it is applied and healthy
  promoted=TAG   its promotion was recorded
  candidate=TAG  the controller knows it, and it may be promoted
  idle           nothing deploys or bakes

What was before does not count: neither an old promotion of the version, nor a status
that does not know the newest spec or request yet.

Exit codes: 0 it is so; 3 it ended otherwise: failed, cancelled, superseded, or a newer
release runs; 4 time ran out; 1 the Rollout does not exist.`,
		Example: fmt.Sprintf(`  # Until nothing newer is known than what is out
  %[1]s wait shop
  %[1]s wait shop 1.5.0 --timeout 1h`, p.Called),
		ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error {
			goal, err := parseGoal(text, tag)
			if err != nil {
				return err
			}
			return w.until(cmd.Context(), args[0], goal)
		},
	}
	program.TakesVersion(cmd, &tag, "the release; if it is not given, the newest one")
	cmd.Flags().StringVar(&text, "for", "", "what to wait for; the default is that the release is out")
	TimeoutVar(cmd.Flags(), &w.timeout)
	return cmd
}

// TimeoutVar adds the flag that limits a wait for a release.
func TimeoutVar(flags *pflag.FlagSet, timeout *time.Duration) {
	program.SpanVar(flags, timeout, "timeout", 15*time.Minute, "how long to wait at most: 30m, 2h or 7d")
}

// Await waits until a release is out that a user has just asked for. since is the number of
// the newest promotion before that.
func Await(ctx context.Context, p *program.Program, name, tag string, since int64, timeout time.Duration) error {
	w := &waiting{Program: p, timeout: timeout}
	return w.until(ctx, name, &goal{kind: forVersion, tag: tag, since: &since})
}

// until waits until a goal is reached. It begins with a Rollout that is not older than this
// call, so that it sees what was asked for before.
func (w *waiting) until(ctx context.Context, name string, goal *goal) error {
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
	link.fresh = true
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

func (w *waiting) look(g *goal, event watch.Event) (bool, error) {
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

// Goals of a wait, as they are given with --for.
const (
	forVersion   = "version"
	forApplied   = "applied"
	forPromoted  = "promoted"
	forCandidate = "candidate"
	forIdle      = "idle"
	forNewest    = ""
)

// goal is what is waited for.
type goal struct {
	kind, tag string
	// since is the number of the newest promotion when the wait began; nil before the first
	// look.
	since *int64
	// candidate is the tag that was seen as a candidate.
	candidate string
}

// progress is how a goal stands.
type progress int

const (
	pending progress = iota
	reached
	missed
)

// parseGoal returns the goal of --for about a version, which may be named apart from it.
func parseGoal(text, version string) (*goal, error) {
	kind, tag, _ := strings.Cut(text, "=")
	if kind == forNewest && version != "" {
		kind = forVersion
	}
	switch kind {
	case forVersion, forApplied, forPromoted, forCandidate:
		if tag != "" && version != "" && tag != version {
			return nil, fmt.Errorf("two versions are given: %s and %s", version, tag)
		}
		if tag = cmp.Or(tag, version); tag != "" {
			return &goal{kind: kind, tag: tag}, nil
		}
	case forIdle, forNewest:
		if text == kind && version == "" {
			return &goal{kind: kind}, nil
		}
	}
	return nil, fmt.Errorf("--for=%q: choose version=TAG, applied=TAG, promoted=TAG, candidate=TAG or idle, or leave it out", text)
}

// look compares the status of a Rollout with the goal. An answer that is given before the
// controller has seen what users want is none.
func (g *goal) look(r *v1alpha1.Rollout) (progress, string) {
	if g.since == nil {
		g.since = ptr.To(numberOf(r.Current()))
	}
	if g.kind == forNewest {
		g.tag = newestOf(r)
	}
	state, text := g.judge(r)
	unsaid := []explain.Kind{explain.StateHeld, explain.StateGoes, explain.StateUpToDate} // of other releases
	if state != pending {
		if why := g.unanswered(r); why != "" {
			state, text = pending, why
			unsaid = append(unsaid, explain.StateFailed) // before what was asked for
		}
	}
	if now := explain.StateOf(r); state == pending && !slices.Contains(unsaid, now.Kind) && !strings.Contains(text, now.Cause) {
		text += fmt.Sprintf("; %s: %s", now.Kind, now.Cause)
	}
	return state, text
}

func numberOf(entry *v1alpha1.DeploymentHistoryEntry) int64 {
	if entry == nil {
		return 0
	}
	return ptr.Deref(entry.ID, 0)
}

// newestOf returns the release that is to run in the end, as far as the controller knows;
// empty if it knows none.
func newestOf(r *v1alpha1.Rollout) string {
	tag := cmp.Or(r.Pinned(), r.Annotations[v1alpha1.ForceDeployAnnotation])
	if tag == "" && len(r.Status.ReleaseCandidates) > 0 {
		tag = r.Status.ReleaseCandidates[0].Tag
	}
	if current := r.Current(); tag == "" && current != nil {
		tag = current.Version.Tag
	}
	return tag
}

// unanswered says what the controller has not seen yet; empty if it has seen everything. It
// looks at no spec of a Rollout that is suspended.
func (g *goal) unanswered(r *v1alpha1.Rollout) string {
	current := r.Current()
	runs := current != nil && current.Version.Tag == g.tag
	switch {
	case r.Status.ObservedGeneration < r.Generation && !r.Spec.Suspend:
		return "the controller has not seen the newest spec of the Rollout yet"
	case r.Pinned() == g.tag && g.tag != "" && !runs:
		return g.tag + " is pinned, and not promoted yet"
	}
	return g.requested(r, runs)
}

// requested says which request for what is waited for the controller has not removed yet.
func (g *goal) requested(r *v1alpha1.Rollout, runs bool) string {
	for _, request := range []struct {
		key     string
		isMeant bool
	}{
		{v1alpha1.RetryAnnotation, runs || g.kind == forIdle},
		{v1alpha1.ForceDeployAnnotation, g.kind == forIdle || r.Annotations[v1alpha1.ForceDeployAnnotation] == g.tag},
		{v1alpha1.BypassGatesAnnotation, r.Annotations[v1alpha1.BypassGatesAnnotation] == g.tag},
		{v1alpha1.PromoteAnnotation, r.Annotations[v1alpha1.PromoteAnnotation] == g.tag},
	} {
		if value, isSet := r.Annotations[request.key]; isSet && request.isMeant {
			return fmt.Sprintf("the controller has not answered %s=%s yet", request.key, value)
		}
	}
	return ""
}

func (g *goal) judge(r *v1alpha1.Rollout) (progress, string) {
	current := r.Current()
	switch {
	case g.kind == forIdle && (current == nil || !current.State().Running()):
		return reached, "nothing deploys or bakes"
	case g.kind == forIdle:
		return pending, said(r, current)
	case g.tag == "":
		return pending, "no release is known yet"
	}
	for i := range r.Status.History {
		entry := &r.Status.History[i]
		if entry.Version.Tag == g.tag && (i == 0 || g.counts(entry)) {
			return g.entry(r, entry)
		}
	}
	return g.unpromoted(r)
}

// said says how a promotion is doing: of the current one, why it is not out, in the words of
// get.
func said(r *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) string {
	text := fmt.Sprintf("%s is %s%s", entry.Version.Tag, entry.State(), idOf(entry))
	cause := ptr.Deref(entry.BakeStatusMessage, "")
	if entry == r.Current() {
		state, ofIt := explain.StateOf(r), []explain.Kind{explain.StateFailed, explain.StateDeploying, explain.StateBaking}
		if slices.Contains(ofIt, state.Kind) {
			cause = cmp.Or(state.Cause, cause)
		}
	}
	if cause != "" {
		text += ": " + cause
	}
	return text
}

// counts reports whether a promotion that is over counts: those from before the wait do not,
// unless it is enough that there was one.
func (g *goal) counts(entry *v1alpha1.DeploymentHistoryEntry) bool {
	return g.kind == forPromoted || g.kind == forCandidate || entry.ID != nil && *entry.ID >= *g.since
}

// entry judges a promotion of the release.
func (g *goal) entry(r *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) (progress, string) {
	isApplied := entry.BakeStartTime != nil || entry.State() == v1alpha1.BakeSucceeded
	switch {
	case g.kind == forPromoted, g.kind == forCandidate, g.kind == forApplied && isApplied, entry.State() == v1alpha1.BakeSucceeded:
		return reached, said(r, entry)
	case entry.State() == v1alpha1.BakeFailed, entry.State() == v1alpha1.BakeCancelled:
		return missed, said(r, entry)
	case entry != r.Current():
		return missed, g.tag + " was superseded"
	}
	return pending, said(r, entry)
}

// unpromoted judges a release that was not promoted since the wait began.
func (g *goal) unpromoted(r *v1alpha1.Rollout) (progress, string) {
	for _, c := range r.Status.ReleaseCandidates {
		if c.Tag != g.tag {
			continue
		}
		g.candidate = g.tag
		if g.kind == forCandidate {
			return reached, g.tag + " is a candidate" + heldBy(c)
		}
		return pending, g.tag + " is a candidate" + heldBy(c)
	}
	switch {
	case g.candidate == g.tag:
		return missed, g.tag + " is no candidate any more: it was superseded or withdrawn"
	case isPassed(r, g.tag):
		return missed, fmt.Sprintf("%s runs%s, and %s is not newer: it goes out only if it is pinned", r.Current().Version.Tag, idOf(r.Current()), g.tag)
	}
	return pending, g.tag + " is not known yet: Flux has not reported it, or it is not newer than what runs"
}

// isPassed reports whether the release was deployed before what runs now, or is older in the
// order of the policy, in which the known releases are listed.
func isPassed(r *v1alpha1.Rollout, tag string) bool {
	current := r.Current()
	if current == nil {
		return false
	}
	at := func(tag string) int {
		return slices.IndexFunc(r.Status.AvailableReleases, func(v v1alpha1.VersionInfo) bool { return v.Tag == tag })
	}
	wasDeployed := slices.ContainsFunc(r.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag == tag })
	return wasDeployed || at(tag) >= 0 && at(tag) < at(current.Version.Tag)
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
