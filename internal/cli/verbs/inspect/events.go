// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

// NewEvents returns the verb events.
func NewEvents(p *program.Program) *cobra.Command {
	var out *program.Output
	var types []string
	cmd := &cobra.Command{
		Use: "events NAME", Short: "List the events of a Rollout and of everything that its release reaches",
		Example: fmt.Sprintf(`  %[1]s events shop --types Warning`, p.Called),
		Args:    program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return events(cmd.Context(), p, out, types, args[0]) },
	}
	out = program.NewOutput(cmd)
	cmd.Flags().StringSliceVar(&types, "types", nil, "only events of these types: Normal, Warning")
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func events(ctx context.Context, p *program.Program, out *program.Output, types []string, name string) error {
	v, err := p.View(ctx, name, p.Now())
	if err != nil {
		return err
	}
	events := tree.Events(ctx, v.Below, Tree(ctx, v))
	if len(types) > 0 {
		events.Items = slices.DeleteFunc(events.Items, func(e tree.Event) bool { return !slices.Contains(types, e.Type) })
	}
	if !out.IsText() {
		return out.Print(p, events)
	}
	eventTable(p, events)
	return nil
}

func eventTable(p *program.Program, events tree.EventList) {
	table := show.Table{Header: []string{"AGE", "OBJECT", "TYPE", "REASON", "MESSAGE"}, Lines: linesOfWhy}
	for _, e := range events.Items {
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (%d times)", e.Count)
		}
		table.Rows = append(table.Rows, []string{show.Ago(e.Time.Time, p.Now()), e.Object.String(), e.Type, e.Reason, message})
	}
	if len(table.Rows) > 0 {
		table.Write(p.Out)
	} else {
		p.Err.Line("no events: the API server keeps them for an hour")
	}
	for _, missing := range events.Incomplete {
		p.Err.Sentence(show.Warns, "%s", missing)
	}
}
