// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// unless returns what is asked for, unless a check says why not.
func unless(check func(program.View) error, r func() request.Request) asked {
	return func(v program.View) (request.Request, error) {
		if err := check(v); err != nil {
			return request.Request{}, err
		}
		return r(), nil
	}
}

// retryVerb is about the current release without naming it.
const retryVerb = "retry"

// NewRetry returns the verb retry.
func NewRetry(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{Use: retryVerb, Short: "Judge the failed current release again"}
	c := newUnsigned(p, cmd)
	c.waits(cmd)
	return ofSeveral(cmd, c, func(program.View) (request.Request, error) { return request.Retry(), nil })
}

// NewUnblock returns the verb unblock.
func NewUnblock(p *program.Program) *cobra.Command {
	var withdraw bool
	cmd := &cobra.Command{Use: "unblock", Short: "Let the next release go although the current one failed"}
	cmd.Flags().BoolVar(&withdraw, "withdraw", false, "take the request back, as long as it has had no effect")
	return ofSeveral(cmd, newUnsigned(p, cmd), func(v program.View) (request.Request, error) {
		if withdraw {
			return withdrawn(v, "unblock")
		}
		return request.Unblock(), nil
	})
}

// withdrawn takes back what was requested and has had no effect so far.
func withdrawn(v program.View, name string) (request.Request, error) {
	r, known := request.Withdraw(name)
	if !known {
		return r, fmt.Errorf("%q cannot be withdrawn; choose approval, bypass, force, promote or unblock", name)
	}
	changed := v.Rollout.DeepCopy()
	if r.ChangeRollout(changed); equality.Semantic.DeepEqual(v.Rollout, changed) {
		return r, isSo("there is no such request to withdraw")
	}
	return r, nil
}

// NewAdopt returns the verb adopt.
func NewAdopt(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "adopt NAME", Short: "Go on from what the targets carry, after an old status was restored",
		Long: `Go on from what the targets carry, after an old status was restored.
The version that they carry becomes the newest entry of the history, or the version that
is pinned, if it was pinned before. From then on, the normal rules apply.`,
	}
	c := newUnsigned(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[0], unless(func(v program.View) error {
			if !v.Targets.Outdate(v.Rollout.Status.History) {
				return program.Refuse("its history is not older than its targets")
			}
			return nil
		}, request.Adopt))
	}
	return cmd
}

// NewSuspend returns the verb suspend.
func NewSuspend(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "suspend", Short: "Stop everything that the controller does for a Rollout",
		Long: `Stop everything that the controller does for a Rollout, until you resume it.
It says what that stops. Your name, the time and the reason are in annotations of the
Rollout, for those who ask why nothing happens.`,
		Example: fmt.Sprintf(`  %[1]s suspend shop -m "INC-4711"
  # All of the web shop, with one question
  %[1]s suspend -l tier=web -m "INC-4711"`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Flags().Lookup("message").Usage = "why, for those who ask"
	return ofSeveral(cmd, c, unless(func(v program.View) error {
		if v.Rollout.Spec.Suspend {
			return isSo("already " + show.Suspension(v.Rollout, v.Now))
		}
		return nil
	}, func() request.Request { return request.Suspend(p.Now()) }))
}

// NewResume returns the verb resume.
func NewResume(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "resume", Short: "End a suspension"}
	return ofSeveral(cmd, newUnsigned(p, cmd), unless(func(v program.View) error {
		if !v.Rollout.Spec.Suspend {
			return isSo("it is not suspended")
		}
		return nil
	}, request.Resume))
}

// NewWithdraw returns the verb withdraw, an old word for --withdraw.
func NewWithdraw(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "withdraw NAME approval|bypass|force|promote|unblock", Short: "Take back a request that has had no effect so far", Hidden: true}
	c := newUnsigned(p, cmd)
	cmd.Args = program.OneName(1, "the name of a Rollout and one of approval, bypass, force, promote, unblock")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] == "approval" {
			return (&deciding{changing: c, withdraw: true}).run(cmd.Context(), args[0])
		}
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) { return withdrawn(v, args[1]) })
	}
	return cmd
}
