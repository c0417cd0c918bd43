// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

type listingEvents struct {
	*program.Program
	out    *program.Output
	types  []string
	follow bool
}

// NewEvents returns the verb events.
func NewEvents(p *program.Program) *cobra.Command {
	l := &listingEvents{Program: p}
	cmd := &cobra.Command{
		Use: "events NAME", Short: "List the events of a Rollout and of everything that its release reaches, the newest last",
		Example: fmt.Sprintf(`  %[1]s events shop --types Warning
  %[1]s events shop -w`, p.Called),
		Args: program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args[0]) },
	}
	l.out = program.NewOutput(cmd)
	cmd.Flags().StringSliceVar(&l.types, "types", nil, "only events of these types: Normal, Warning")
	cmd.Flags().BoolVarP(&l.follow, "watch", "w", false, fmt.Sprintf("go on and show new events, until you press Ctrl-C; they are looked for every %s", eventInterval))
	p.ReadsFiles(cmd.Flags())
	return cmd
}

// eventInterval is how often new events are looked for. What a release reaches changes, so
// all of it is read again.
const eventInterval = 5 * time.Second

// check refuses what cannot be shown.
func (l *listingEvents) check() error {
	if l.follow && (!l.out.IsText() || len(l.Files) > 0) {
		return errors.New("-w shows the events of a cluster as text: leave out -o and -f")
	}
	for _, kind := range l.types {
		if !strings.EqualFold(kind, corev1.EventTypeNormal) && !strings.EqualFold(kind, corev1.EventTypeWarning) {
			return fmt.Errorf("--types: there is no type %q; choose Normal or Warning", kind)
		}
	}
	return nil
}

func (l *listingEvents) run(ctx context.Context, name string) error {
	if err := l.check(); err != nil {
		return err
	}
	events, err := l.events(ctx, name)
	switch {
	case err != nil:
		return err
	case !l.out.IsText():
		return l.out.Print(l.Program, events)
	}
	l.table(events.Items, []string{"AGE", "OBJECT", "TYPE", "REASON", "MESSAGE"})
	if len(events.Items) == 0 {
		l.Err.Line("no events: the API server keeps them for an hour")
	}
	for _, missing := range events.Incomplete {
		l.Err.Sentence(show.Warns, "%s", missing)
	}
	if l.follow {
		return l.goOn(ctx, name, events.Items)
	}
	return nil
}

// goOn shows what is new until the context ends.
func (l *listingEvents) goOn(ctx context.Context, name string, shown []tree.Event) error {
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	known := map[string]bool{}
	key := func(e tree.Event) string {
		return fmt.Sprint(e.Time.UnixNano(), e.Object, e.Reason, e.Message, e.Count)
	}
	for {
		for _, e := range shown {
			known[key(e)] = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		events, err := l.events(ctx, name)
		if err != nil && ctx.Err() == nil {
			return err
		}
		shown = slices.DeleteFunc(events.Items, func(e tree.Event) bool { return known[key(e)] })
		l.table(shown, nil)
	}
}

// events returns the events of the types that are wanted.
func (l *listingEvents) events(ctx context.Context, name string) (tree.EventList, error) {
	v, err := l.View(ctx, name, l.Now())
	if err != nil {
		return tree.EventList{}, err
	}
	events := tree.Events(ctx, v.Below, Tree(ctx, v))
	if len(l.types) > 0 {
		events.Items = slices.DeleteFunc(events.Items, func(e tree.Event) bool {
			return !slices.ContainsFunc(l.types, func(kind string) bool { return strings.EqualFold(kind, e.Type) })
		})
	}
	return events, nil
}

func (l *listingEvents) table(events []tree.Event, header []string) {
	if len(events) == 0 {
		return
	}
	table := show.Table{Header: header}
	for _, e := range events {
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (%d times)", e.Count)
		}
		table.Rows = append(table.Rows, []string{show.Ago(e.Time.Time, l.Now()), e.Object.String(), e.Type, e.Reason, message})
	}
	table.Write(l.Out)
}
