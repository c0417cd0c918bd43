// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

type promoting struct {
	*changing
	pastGates, force, withdraw bool
}

// NewPromote returns the verb promote.
func NewPromote(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "promote NAME [VERSION]", Short: "Let a release go past what holds it",
		Long: `Let a release go past what holds it. Nothing is pinned: the next release waits again.

Without --past-gates and --force nothing is forced: the command says what holds the
release, and which request would be enough. Where an Environment leaves promotions to
users, it promotes a release that the environments before have proven; whatever else
holds it still does. With --withdraw, it takes back what was requested and has had no
effect so far.`,
		Example: fmt.Sprintf(`  # Where an Environment leaves promotions to users (spec.promotion: Manual)
  %[1]s promote shop 1.5.0 -m "tested by hand"
  # Past gates and schedules; HealthChecks and the bake still count
  %[1]s promote shop 1.5.0 --past-gates -m "INC-4711"
  # Past everything
  %[1]s promote shop 1.5.0 --force -m "INC-4711"`, p.Called),
	}
	r := &promoting{changing: newChanging(p, cmd)}
	program.TakesVersion(cmd, &r.tag, "the release; if it is not given, the newest candidate, or the newest proven one that is left to users")
	r.waits(cmd)
	cmd.Flags().BoolVar(&r.pastGates, "past-gates", false, "do not wait for gates, schedules and Environments (annotation bypass-gates); an Environment may require -m")
	cmd.Flags().BoolVar(&r.force, "force", false, "do not wait for anything (annotation force-deploy); needs -m")
	cmd.Flags().BoolVar(&r.withdraw, "withdraw", false, "take the request back, as long as it has had no effect; with --past-gates or --force, only that one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case r.withdraw && (r.tag != "" || r.why != ""):
			return errors.New("--withdraw has neither a version nor a reason")
		case r.force && r.pastGates:
			return errors.New("--past-gates and --force do not go together")
		case r.force && r.why == "" && !r.withdraw:
			return errors.New(`--force goes past everything: say why, with -m "..."`)
		}
		return r.run(cmd.Context(), args[0], r.request)
	}
	return cmd
}

func (r *promoting) request(v program.View) (request.Request, error) {
	switch {
	case r.withdraw && r.pastGates:
		return withdrawn(v, "bypass")
	case r.withdraw && r.force:
		return withdrawn(v, "force")
	case r.withdraw:
		return withdrawn(v, "promote")
	}
	tag := r.chosen(v.Decision.Candidates)
	if tag == "" {
		return request.Request{}, program.Refuse("there is no newer release to promote")
	}
	if r.force {
		return request.Promote(tag), nil
	}
	standing := promotion.StandingOf(v.Input, v.Decision, tag)
	if standing.Verdict == nil {
		return request.Request{}, program.Refuse("%s", standing.Message)
	}
	return r.weakest(v, *standing.Verdict)
}

// chosen returns the release that is meant; empty if there is none.
func (r *promoting) chosen(candidates []promotion.Verdict) string {
	if r.tag != "" || len(candidates) == 0 {
		return r.tag
	}
	at := slices.IndexFunc(candidates, isLeftToUsers)
	if at < 0 || r.force || r.pastGates {
		at = 0
	}
	return candidates[at].Release.Tag
}

// isLeftToUsers reports whether a candidate is proven and waits until a user promotes it.
func isLeftToUsers(v promotion.Verdict) bool {
	return v.HeldBy(environmentsv1.AwaitingPromotionReason) && !v.HeldByUpstreams()
}

// weakest returns the request that is enough for a candidate, and that was asked for.
func (r *promoting) weakest(v program.View, verdict promotion.Verdict) (request.Request, error) {
	tag := verdict.Release.Tag
	switch {
	case r.pastGates && (isLeftToUsers(verdict) || verdict.HeldByUpstreams()):
		return r.pastUpstreams(v, tag)
	case r.pastGates:
		return request.PromotePastGates(tag), nil
	case isLeftToUsers(verdict):
		return request.PromoteProven(tag), nil
	}
	return request.Request{}, r.enough(v, verdict)
}

// pastUpstreams lets a release go past Environments. One of them may require a reason.
func (r *promoting) pastUpstreams(v program.View, tag string) (request.Request, error) {
	past := request.PromotePastUpstreams(tag, r.why)
	for _, answer := range promotion.Decide(past.Apply(v.Input)).Answers {
		if answer.Reason == environmentsv1.BypassNeedsReasonReason {
			return past, program.Refuse("%s\n%s", answer.Message, r.line(v, tag, "--past-gates", "-m", ""))
		}
	}
	return past, nil
}

// line returns this command with flags.
func (r *promoting) line(v program.View, tag string, flags ...string) string {
	return r.CommandLine(v.Rollout.Namespace, append([]string{"promote", v.Rollout.Name, "--version", tag}, flags...)...)
}

// enough says which request is enough for a release: none, if nothing holds it.
func (r *promoting) enough(v program.View, verdict promotion.Verdict) error {
	tag := verdict.Release.Tag
	force := r.line(v, tag, "--force", "-m", "")
	switch {
	case verdict.Eligible():
		return program.Refuse("nothing holds %s: it goes out by itself, after newer ones that may go too; to choose it, pin it", tag)
	case v.Unread.Any():
		return program.Refuse("%s is held: %s; you may not read %s, so no command was tried", tag, messages(verdict.Holds), v.Unread)
	case verdict.HeldByUpstreams() && mayBypass(v, tag):
		return program.Refuse("%s is held: %s\n%s   # past Environments, gates and schedules\n%s   # past everything",
			tag, messages(verdict.Holds), r.line(v, tag, "--past-gates", "-m", ""), force)
	case verdict.HeldByGates() && !verdict.HeldByUpstreams():
		return program.Refuse("%s is held: %s\n%s   # past gates and schedules\n%s   # past everything", tag, messages(verdict.Holds), r.line(v, tag, "--past-gates"), force)
	}
	if !goes(v, tag) {
		return program.Refuse("%s is held, and no request lets it go: %s", tag, messages(verdict.Holds))
	}
	return program.Refuse("%s is held: %s\n%s   # past everything", tag, messages(verdict.Holds), force)
}

// goes reports whether a user can force a release. A quarantine may forbid that.
func goes(v program.View, tag string) bool {
	return promotion.Decide(request.Promote(tag).Apply(v.Input)).Action.Promotes()
}

// mayBypass reports whether the Environments let a release past, with a reason.
func mayBypass(v program.View, tag string) bool {
	after := promotion.Decide(request.PromotePastUpstreams(tag, "...").Apply(v.Input))
	standing := promotion.StandingOf(v.Input, after, tag).Verdict
	return standing == nil || !standing.HeldByUpstreams()
}
