// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// screen is what is shown of the Rollouts that are followed.
type screen struct {
	*watching
	names []string
	// lines are the Rollouts that are shown, by namespace and name.
	lines map[string]*v1alpha1.Rollout
	// last is what was written of each, where nothing is drawn again.
	last map[string]string
	// drawn are the lines on the terminal, and columns how many it had then.
	drawn   []string
	columns int

	mu sync.Mutex
	// notice says that the Rollouts may not be up to date; empty if they are.
	notice string
}

func newScreen(w *watching, names []string) *screen {
	return &screen{watching: w, names: names, lines: map[string]*v1alpha1.Rollout{}, last: map[string]string{}}
}

// note keeps what is said about reading Rollouts, to be drawn below them. If it were
// written between two drawings, the second one would miss the lines of the first.
func (s *screen) note(sign show.Sign, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = ""
	if sign != show.Well {
		s.notice = fmt.Sprintf(format, args...)
	}
}

// noted returns the notice as a line that is at most so many columns wide; none if there
// is none.
func (s *screen) noted(columns int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notice == "" {
		return nil
	}
	return s.lined(show.Table{Rows: [][]string{{s.notice}}}, columns)
}

// lined returns the lines of a table, each of them at most so many columns wide.
func (s *screen) lined(table show.Table, columns int) []string {
	style, text := s.Out.Style, &strings.Builder{}
	style.Width = columns
	table.Write(show.Printer{Style: style, Out: text})
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// redrawn is how often the lines are drawn at most.
const redrawn = 250 * time.Millisecond

func (s *screen) follow(ctx context.Context, changes <-chan changed) {
	ticker := time.NewTicker(redrawn)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-changes:
			s.take(c)
		case <-ticker.C:
			if s.redraws() {
				s.draw()
			}
		}
	}
}

func (s *screen) redraws() bool { return s.Out.Redraws && !s.plain }

func moves(r *v1alpha1.Rollout) bool { return r.Current() != nil && r.Current().State().Running() }

// take notes a change, and writes it unless the lines are drawn again.
func (s *screen) take(c changed) {
	key := c.rollout.Namespace + "/" + c.rollout.Name
	_, was := s.lines[key]
	shown := !c.gone && (!s.moving || moves(c.rollout))
	switch {
	case len(s.names) > 0 && !slices.Contains(s.names, c.rollout.Name):
		return
	case shown:
		s.lines[key] = c.rollout
	default:
		delete(s.lines, key)
	}
	if (was || shown) && !s.redraws() {
		s.writeLine(c.rollout)
	}
}

// writeLine writes what has changed in words. How much of a bake is over changes all the
// time, and is left out.
func (s *screen) writeLine(r *v1alpha1.Rollout) {
	text := strings.Join(program.NonEmpty(cells(r)...), "  ")
	if key := r.Namespace + "/" + r.Name; s.last[key] != text {
		s.last[key] = text
		s.Out.Line("%s", text)
	}
}

// draw writes all lines over those that are on the terminal, unless they are the same.
func (s *screen) draw() {
	columns, rows := s.Size()
	notice := s.noted(columns)
	lines := append(fitRows(s.table(columns), max(rows-len(notice), 0)), notice...)
	if columns == s.columns && slices.Equal(lines, s.drawn) {
		return
	}
	// In one write, so that no terminal shows half of it.
	text := s.back(columns) + strings.Join(lines, "\n")
	s.Out.Line("%s", show.Text(text))
	s.drawn, s.columns = lines, columns
}

// back moves the cursor to the first line that was drawn, and erases what is below. If
// the window got narrower since then, terminals have wrapped the lines.
func (s *screen) back(columns int) string {
	rows := 0
	for _, line := range s.drawn {
		rows++
		if columns > 0 {
			rows += max(runewidth.StringWidth(line)-1, 0) / columns
		}
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", rows)
}

// table returns a line for each Rollout, each of them at most so many columns wide.
func (s *screen) table(columns int) []string {
	style := s.Out.Style
	style.Width = columns
	table := show.Table{}
	for _, key := range slices.Sorted(maps.Keys(s.lines)) {
		r := s.lines[key]
		row := cells(r)
		row[2] = cmp.Or(bar(r, s.Now(), style), row[2])
		table.Rows = append(table.Rows, row)
	}
	if len(table.Rows) == 0 {
		table.Rows = [][]string{{"no Rollouts to show so far"}}
	}
	return s.lined(table, columns)
}

// fitRows leaves out lines for which a terminal has no rows. One row is for the cursor. 0
// rows are as many as needed.
func fitRows(lines []string, rows int) []string {
	if rows == 0 || len(lines) < rows {
		return lines
	}
	shown := max(rows-2, 0)
	return append(lines[:shown:shown], fmt.Sprintf("and %d more", len(lines)-shown))
}

// cells returns what is said of a Rollout: its name, its release, the state, and why.
func cells(r *v1alpha1.Rollout) []string {
	name := r.Namespace + "/" + r.Name
	current := r.Current()
	if current == nil {
		return []string{name, "-", "nothing is promoted", waitsOr(r)}
	}
	why := cmp.Or(promotion.StateMessage(r), "-")
	if !current.State().Running() && len(r.Status.ReleaseCandidates) > 0 {
		why = nextOf(r) + ": " + waitsOr(r)
	}
	return []string{name, current.Version.Tag + idOf(current), string(current.State()), why}
}

// barWidth returns how wide a bar is on a terminal with so many columns.
func barWidth(columns int) int {
	if columns == 0 {
		return 24
	}
	return min(max((columns-32)/2, 6), 24)
}

// bar returns how much of a bake is over; empty if none runs.
func bar(r *v1alpha1.Rollout, now time.Time, style show.Style) string {
	share, baking := baked(r, r.Current(), now)
	if !baking {
		return ""
	}
	full, empty := "█", "░"
	if !style.Unicode {
		full, empty = "#", "-"
	}
	width := barWidth(style.Width)
	n := int(share * float64(width))
	return fmt.Sprintf("%s%s %3.0f%%", strings.Repeat(full, n), strings.Repeat(empty, width-n), 100*share)
}
