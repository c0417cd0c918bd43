// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/request"
)

type promoting struct {
	*changing
	tag              string
	pastGates, force bool
}

func newPromote(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "promote NAME", Short: "Let a release go past what holds it",
		Long: `Let a release go past what holds it. Nothing is pinned: the next release waits again.

Without --past-gates and --force nothing is forced: the command says what holds the
release, and which request would be enough.`,
		Example: fmt.Sprintf(`  # Past gates and schedules; HealthChecks and the bake still count
  %[1]s promote shop --version 1.5.0 --past-gates
  # Past everything
  %[1]s promote shop --version 1.5.0 --force -m "INC-4711"`, p.called),
	}
	r := &promoting{changing: newChanging(p, cmd)}
	cmd.Flags().StringVar(&r.tag, "version", "", "the release; the newest candidate if it is not given")
	cmd.Flags().BoolVar(&r.pastGates, "past-gates", false, "do not wait for gates and schedules (annotation bypass-gates)")
	cmd.Flags().BoolVar(&r.force, "force", false, "do not wait for anything (annotation force-deploy); needs -m")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case r.force && r.pastGates:
			return errors.New("--past-gates and --force do not go together")
		case r.force && r.why == "":
			return errors.New(`--force goes past everything: say why, with -m "..."`)
		}
		return r.run(cmd.Context(), args[0], r.request)
	}
	return cmd
}

func (r *promoting) request(v view) (request.Request, error) {
	tag := r.tag
	if tag == "" && len(v.Decision.Candidates) > 0 {
		tag = v.Decision.Candidates[0].Release.Tag
	}
	if tag == "" {
		return request.Request{}, refuse("there is no newer release to promote")
	}
	if r.force {
		return request.Promote(tag), nil
	}
	standing := promotion.StandingOf(v.Input, v.Decision, tag)
	if standing.Verdict == nil {
		return request.Request{}, refuse("%s", standing.Message)
	}
	if r.pastGates {
		return request.PromotePastGates(tag), nil
	}
	return request.Request{}, r.enough(v, *standing.Verdict)
}

// enough says which request is enough for a release: none, if nothing holds it.
func (r *promoting) enough(v view, verdict promotion.Verdict) error {
	tag := verdict.Release.Tag
	line := func(flags ...string) string {
		return r.commandLine(v.Rollout.Namespace, append([]string{"promote", v.Rollout.Name, "--version", tag}, flags...)...)
	}
	switch {
	case verdict.Eligible():
		return refuse("nothing holds %s: it goes out by itself, after newer ones that may go too; to choose it, pin it", tag)
	case verdict.HeldByGates():
		return refuse("%s is held: %s\n%s (past gates and schedules)\n%s (past everything)", tag, messages(verdict.Holds), line("--past-gates"), line("--force", "-m", "..."))
	}
	return refuse("%s is held: %s\n%s (past everything)", tag, messages(verdict.Holds), line("--force", "-m", "..."))
}
