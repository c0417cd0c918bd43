// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
)

// awaiting is what --wait waits for after a change.
type awaiting struct {
	wait    bool
	timeout time.Duration
	// about is the release that the change is about, and since the number of the newest
	// promotion before it.
	about string
	since int64
}

// waits adds the flags of a change that a user can wait for.
func (c *changing) waits(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until the release is out, as the verb wait does, with its exit codes")
	inspect.TimeoutVar(cmd.Flags(), &c.timeout)
}

// remember notes what a request is about.
func (a *awaiting) remember(v program.View, r request.Request) {
	a.about, a.since = r.Tag, 0
	if current := v.Rollout.Current(); current != nil {
		a.about, a.since = cmp.Or(r.Tag, current.Version.Tag), ptr.Deref(current.ID, 0)
	}
}

// await waits for the release if the user wants that.
func (c *changing) await(ctx context.Context, name string) error {
	if !c.wait || c.dryRun != "" {
		return nil
	}
	return inspect.Await(ctx, c.Program, name, c.about, c.since, c.timeout)
}
