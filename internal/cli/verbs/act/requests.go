// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// simple returns a verb that makes one request, unless it is so already.
func simple(p *program.Program, use, short string, r request.Request, already func(program.View) string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	c := newChanging(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			if is := already(v); is != "" {
				return request.Request{}, program.Refuse("%s", is)
			}
			return r, nil
		})
	}
	return cmd
}

func never(program.View) string { return "" }

// NewRetry returns the verb retry.
func NewRetry(p *program.Program) *cobra.Command {
	return simple(p, "retry NAME", "Judge the failed current release again", request.Retry(), never)
}

// NewUnblock returns the verb unblock.
func NewUnblock(p *program.Program) *cobra.Command {
	return simple(p, "unblock NAME", "Let the next release go although the current one failed", request.Unblock(), never)
}

// NewAdopt returns the verb adopt.
func NewAdopt(p *program.Program) *cobra.Command {
	cmd := simple(p, "adopt NAME", "Go on from what the targets carry, after an old status was restored", request.Adopt(), func(v program.View) string {
		if !v.Targets.Outdate(v.Rollout.Status.History) {
			return "its history is not older than its targets"
		}
		return ""
	})
	cmd.Long = `Go on from what the targets carry, after an old status was restored.
The version that they carry becomes the newest entry of the history, or the version that
is pinned, if it was pinned before. From then on, the normal rules apply.`
	return cmd
}

// NewSuspend returns the verb suspend.
func NewSuspend(p *program.Program) *cobra.Command {
	return simple(p, "suspend NAME", "Stop everything that the controller does for a Rollout", request.Suspend(), func(v program.View) string {
		if v.Rollout.Spec.Suspend {
			return "it is suspended already"
		}
		return ""
	})
}

// NewResume returns the verb resume.
func NewResume(p *program.Program) *cobra.Command {
	return simple(p, "resume NAME", "End a suspension", request.Resume(), func(v program.View) string {
		if !v.Rollout.Spec.Suspend {
			return "it is not suspended"
		}
		return ""
	})
}

// NewWithdraw returns the verb withdraw.
func NewWithdraw(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "withdraw NAME bypass|force|promote|unblock", Short: "Take back a request that has had no effect so far",
		Example: fmt.Sprintf(`  %[1]s withdraw shop bypass`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Args = program.OneName(1, "the name of a Rollout and one of bypass, force, promote, unblock")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, known := request.Withdraw(args[1])
		if !known {
			return fmt.Errorf("%q cannot be withdrawn; choose bypass, force, promote or unblock", args[1])
		}
		return c.run(cmd.Context(), args[0], func(program.View) (request.Request, error) { return r, nil })
	}
	return cmd
}

// NewApprove returns the verb approve.
func NewApprove(p *program.Program) *cobra.Command {
	var gate, tag string
	var revoke bool
	cmd := &cobra.Command{
		Use: "approve NAME --gate GATE --version VERSION", Short: "Make a gate pass for one version",
		Long: `Make a gate pass for one version and for nothing else: the next release waits again.
It changes only the RolloutGate, and needs no right to change the Rollout.`,
		Example: fmt.Sprintf(`  %[1]s approve shop --gate qa --version 1.5.0`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Flags().StringVar(&gate, "gate", "", "the RolloutGate")
	cmd.Flags().StringVar(&tag, "version", "", "the version that may pass")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take an approval back")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if gate == "" || tag == "" {
			return fmt.Errorf("name the gate and the version: %s", p.CommandLine("", "approve", args[0], "--gate", "GATE", "--version", "VERSION"))
		}
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			if revoke {
				return request.Revoke(gate, tag), canChangeGate(v, gate)
			}
			return request.Approve(gate, tag), canChangeGate(v, gate)
		})
	}
	return cmd
}

// canChangeGate refuses gates that show a schedule: the schedule counts, and not its gate.
func canChangeGate(v program.View, name string) error {
	is := func(g v1alpha1.RolloutGate) bool { return g.Name == name }
	if i := slices.IndexFunc(v.Gates.Copies, is); i >= 0 {
		labels := v.Gates.Copies[i].Labels
		return program.Refuse("gate %s shows the state of %s %s: to change it has no effect",
			name, labels[v1alpha1.ScheduleKindLabel], labels[v1alpha1.ScheduleNameLabel])
	}
	if mirror := v.Gates.Mirror; mirror != nil && is(*mirror) {
		return program.Refuse("gate %s shows what environments, quarantines and failures hold: to change it has no effect", name)
	}
	if !slices.ContainsFunc(v.Gates.Gates, is) {
		return program.NoSuchGate(v, name)
	}
	return nil
}
