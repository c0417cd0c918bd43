// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/show"
)

type watching struct {
	*program
	everywhere, moving, plain bool
}

func newWatch(p *program) *cobra.Command {
	w := &watching{program: p}
	cmd := &cobra.Command{
		Use: "watch [NAME...]", Short: "Follow Rollouts while they deploy and bake, until you press Ctrl-C",
		Long: `Follow Rollouts. On a terminal the lines are drawn again in place; elsewhere, and with
--plain, each change is a new line.`,
		ValidArgsFunction: p.completeRollouts,
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&w.everywhere, "all-namespaces", "A", false, "follow the Rollouts of all namespaces")
	cmd.Flags().BoolVar(&w.moving, "moving", false, "only those that deploy or bake")
	cmd.Flags().BoolVar(&w.plain, "plain", false, "a line for each change, also on a terminal")
	return cmd
}

// redrawn is how often the lines are drawn at most.
const redrawn = 250 * time.Millisecond

func (w *watching) run(ctx context.Context, names []string) error {
	if w.everywhere && len(names) > 0 {
		return errors.New("names and -A do not go together")
	}
	for _, name := range names {
		if _, err := w.rollout(ctx, name); err != nil {
			return err
		}
	}
	namespace, err := w.namespace()
	if err != nil {
		return err
	}
	if w.everywhere {
		namespace = ""
	}
	c, err := w.connect(ctx)
	if err != nil {
		return err
	}
	changes := make(chan changed, pageSize)
	readable, link := newLink(ctx, w.program)
	defer link.stop(nil)
	go follow(readable, link.rollouts(c, client.ListOptions{Namespace: namespace}), changes)
	s := &screen{watching: w, names: names, lines: map[string]*v1alpha1.Rollout{}, last: map[string]string{}}
	s.follow(readable, changes)
	return link.refused()
}

// changed is a Rollout as it is now; gone is true if it was deleted.
type changed struct {
	rollout *v1alpha1.Rollout
	gone    bool
}

// follow sends each change of a Rollout until the context ends. It goes on after the API
// server was away.
func follow(ctx context.Context, from cache.ListerWatcher, changes chan<- changed) {
	send := func(object any, gone bool) {
		if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		if rollout, ok := object.(*v1alpha1.Rollout); ok {
			select {
			case changes <- changed{rollout, gone}:
			case <-ctx.Done():
			}
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: from, ObjectType: &v1alpha1.Rollout{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { send(o, false) },
			UpdateFunc: func(_, o any) { send(o, false) },
			DeleteFunc: func(o any) { send(o, true) },
		},
	})
	controller.RunWithContext(ctx)
}

// screen is what is shown of the Rollouts that are followed.
type screen struct {
	*watching
	names []string
	// lines are the Rollouts that are shown, by namespace and name.
	lines map[string]*v1alpha1.Rollout
	// last is what was written of each, where nothing is drawn again.
	last map[string]string
	// drawn is how many lines are on the terminal.
	drawn int
}

func (s *screen) follow(ctx context.Context, changes <-chan changed) {
	ticker := time.NewTicker(redrawn)
	defer ticker.Stop()
	redraw := false
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-changes:
			redraw = s.take(c) || redraw
		case <-ticker.C:
			if s.redraws() && (redraw || s.anyMoves()) {
				s.draw()
				redraw = false
			}
		}
	}
}

func (s *screen) redraws() bool { return s.out.Redraws && !s.plain }

func (s *screen) anyMoves() bool {
	for _, rollout := range s.lines {
		if moves(rollout) {
			return true
		}
	}
	return false
}

func moves(r *v1alpha1.Rollout) bool { return r.Current() != nil && r.Current().State().Running() }

// take notes a change, and reports whether something that is shown has changed.
func (s *screen) take(c changed) bool {
	key := c.rollout.Namespace + "/" + c.rollout.Name
	if len(s.names) > 0 && !slices.Contains(s.names, c.rollout.Name) {
		return false
	}
	if c.gone || s.moving && !moves(c.rollout) {
		_, was := s.lines[key]
		delete(s.lines, key)
		if was && !s.redraws() {
			s.writeLine(c.rollout)
		}
		return was
	}
	s.lines[key] = c.rollout
	if !s.redraws() {
		s.writeLine(c.rollout)
	}
	return true
}

// writeLine writes what has changed in words. How much of a bake is over changes all the
// time, and is left out.
func (s *screen) writeLine(r *v1alpha1.Rollout) {
	text := strings.Join(nonEmpty(cells(r)...), "  ")
	if key := r.Namespace + "/" + r.Name; s.last[key] != text {
		s.last[key] = text
		s.out.Line("%s", text)
	}
}

// draw writes all lines over those that are on the terminal.
func (s *screen) draw() {
	if s.drawn > 0 {
		s.out.Line("%s", show.Text(fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn+1)))
	} else {
		s.out.Line("")
	}
	table := show.Table{}
	for _, key := range slices.Sorted(maps.Keys(s.lines)) {
		r := s.lines[key]
		row := cells(r)
		row[2] = cmp.Or(bar(r, s.now(), s.out.Style), row[2])
		table.Rows = append(table.Rows, row)
	}
	table.Write(s.out)
	s.drawn = len(table.Rows)
}

// cells returns what is said of a Rollout: its name, its release, the state, and why.
func cells(r *v1alpha1.Rollout) []string {
	name := r.Namespace + "/" + r.Name
	current := r.Current()
	if current == nil {
		return []string{name, "-", "nothing is deployed", waitsOr(r)}
	}
	why := orDash(current.BakeStatusMessage)
	if !current.State().Running() && len(r.Status.ReleaseCandidates) > 0 {
		why = nextOf(r) + ": " + waitsOr(r)
	}
	return []string{name, current.Version.Tag + idOf(current), string(current.State()), why}
}

const barWidth = 24

// bar returns how much of a bake is over; empty if none runs.
func bar(r *v1alpha1.Rollout, now time.Time, style show.Style) string {
	current := r.Current()
	if current == nil || !strings.HasPrefix(stateOf(r, current, now), "Baking") {
		return ""
	}
	share := min(max(float64(now.Sub(current.BakeStartTime.Time))/float64(r.Spec.BakeTime.Duration), 0), 1)
	full, empty := "█", "░"
	if !style.Unicode {
		full, empty = "#", "-"
	}
	n := int(share * barWidth)
	return fmt.Sprintf("%s%s %3.0f%%", strings.Repeat(full, n), strings.Repeat(empty, barWidth-n), 100*share)
}
