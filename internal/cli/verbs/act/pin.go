// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// NewPin returns the verb pin.
func NewPin(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pin NAME VERSION", Short: "Deploy a version, and nothing else until you unpin",
		Long: `Deploy a version, and nothing else until you unpin.
While this command line owns the pin, kuberik's dashboard disables its buttons for
versions of the Rollout; unpin gives them back.`,
		Example: fmt.Sprintf(`  %[1]s pin shop 1.3.1 -m "1.4.2 answers with 502"`, p.Called),
	}
	c := newChanging(p, cmd)
	program.TakesVersion(cmd, &c.tag, "the version")
	c.waits(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.tag == "" {
			return errors.New("say which version to pin; see: " + cmd.CommandPath() + " --help")
		}
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) { return c.pin(v, c.tag) })
	}
	return cmd
}

func (c *changing) pin(v program.View, tag string) (request.Request, error) {
	return request.Pin(tag), c.warns(v, tag)
}

// NewUnpin returns the verb unpin.
func NewUnpin(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "unpin NAME", Short: "End a pin: newer releases go out again"}
	c := newUnsigned(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			if v.Rollout.Pinned() == "" {
				return request.Request{}, isSo("no version is pinned")
			}
			return request.Unpin(), nil
		})
	}
	return cmd
}
