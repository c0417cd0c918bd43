// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

func newEvents(p *program) *cobra.Command {
	var out *output
	var types []string
	cmd := &cobra.Command{
		Use: "events NAME", Short: "List the events of a Rollout and of everything that its release reaches",
		Example: fmt.Sprintf(`  %[1]s events shop --types Warning`, p.called),
		Args:    oneName(0, "the name of a Rollout"), ValidArgsFunction: p.completeRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return p.events(cmd.Context(), out, types, args[0]) },
	}
	out = newOutput(cmd)
	cmd.Flags().StringSliceVar(&types, "types", nil, "only events of these types: Normal, Warning")
	p.readsFiles(cmd.Flags())
	return cmd
}

func (p *program) events(ctx context.Context, out *output, types []string, name string) error {
	v, err := p.view(ctx, name, p.now())
	if err != nil {
		return err
	}
	events := tree.Events(ctx, v.below, v.tree(ctx))
	if len(types) > 0 {
		events.Items = slices.DeleteFunc(events.Items, func(e tree.Event) bool { return !slices.Contains(types, e.Type) })
	}
	if !out.isText() {
		return out.print(p, events)
	}
	p.eventTable(events)
	return nil
}

func (p *program) eventTable(events tree.EventList) {
	table := show.Table{Header: []string{"AGE", "OBJECT", "TYPE", "REASON", "MESSAGE"}, Lines: linesOfWhy}
	for _, e := range events.Items {
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (%d times)", e.Count)
		}
		table.Rows = append(table.Rows, []string{show.Ago(e.Time.Time, p.now()), e.Object.String(), e.Type, e.Reason, message})
	}
	if len(table.Rows) > 0 {
		table.Write(p.out)
	} else {
		p.err.Line("no events: the API server keeps them for an hour")
	}
	for _, missing := range events.Incomplete {
		p.err.Sentence(show.Warns, "%s", missing)
	}
}
