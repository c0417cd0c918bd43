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
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// screen is what is shown of the Rollouts that are followed.
type screen struct {
	*getting
	names []string
	// lines are the Rollouts that are shown, by namespace and name.
	lines map[string]*v1alpha1.Rollout
	// listed is true once all that were there at first are in lines.
	listed bool
	// last is what was written of each, where nothing is drawn again, and widths are those
	// of the columns.
	last   map[string]string
	widths []int
	// drawn are the lines on the terminal, and columns how many it had then.
	drawn   []string
	columns int

	mu sync.Mutex
	// notice says that the Rollouts may not be up to date; empty if they are.
	notice string
}

func newScreen(g *getting, names []string) *screen {
	return &screen{getting: g, names: names, lines: map[string]*v1alpha1.Rollout{}, last: map[string]string{}, widths: make([]int, len(g.header())-1)}
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
	return s.fitted(show.Table{Rows: [][]string{{s.notice}}}, columns)[0]
}

// fitted returns the lines of each row of a table, at most so many columns wide.
func (s *screen) fitted(table show.Table, columns int) [][]string {
	style := s.Out.Style
	style.Width = columns
	return table.Fitted(style)
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

// take notes a change, and writes it unless the lines are drawn again. What is there at
// first is written in order.
func (s *screen) take(c changed) {
	if c.rollout == nil {
		s.listed = true
		if !s.redraws() {
			s.writeAll()
		}
		return
	}
	key := c.rollout.Namespace + "/" + c.rollout.Name
	_, was := s.lines[key]
	shown := !c.gone && s.matches(c.rollout, s.names)
	if shown {
		s.lines[key] = c.rollout
	} else {
		delete(s.lines, key)
	}
	if s.listed && (was || shown) && !s.redraws() {
		s.writeLine(key, c)
	}
}

// writeAll writes the header, and a line for each Rollout.
func (s *screen) writeAll() {
	var rows [][]string
	if !s.noHeader {
		rows = append(rows, s.header())
	}
	for _, key := range slices.Sorted(maps.Keys(s.lines)) {
		row := s.row(s.lines[key])
		s.last[key] = s.lasting(row)
		rows = append(rows, row)
	}
	s.write(rows...)
}

func (s *screen) writeLine(key string, c changed) {
	row := s.row(c.rollout)
	if c.gone {
		row[s.stateColumn()] = "Gone"
	}
	if text := s.lasting(row); s.last[key] != text {
		s.last[key] = text
		s.write(row)
	}
}

func (s *screen) stateColumn() int { return slices.Index(s.header(), "STATE") }

// lasting returns a row without what changes all the time: how much of a bake is over, and
// since when a state is.
func (s *screen) lasting(row []string) string {
	at := s.stateColumn()
	state, _, _ := strings.Cut(row[at], " ")
	return strings.Join(slices.Concat(row[:at], []string{state}, row[at+2:]), "\t")
}

// write writes rows in the columns of those before.
func (s *screen) write(rows ...[]string) {
	for _, row := range rows {
		for i, width := range s.widths {
			s.widths[i] = max(width, runewidth.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		for i, width := range s.widths {
			row[i] = runewidth.FillRight(row[i], width)
		}
	}
	show.Table{Rows: rows}.Write(s.Out)
}

// draw writes all lines over those that are on the terminal, unless they are the same.
func (s *screen) draw() {
	columns, rows := s.Size()
	notice := s.noted(columns)
	if rows > 0 {
		rows = max(rows-len(notice), 1)
	}
	lines := append(s.fitRows(s.table(columns), rows), notice...)
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

// table returns the lines of the header and of each Rollout, at most so many columns wide.
func (s *screen) table(columns int) [][]string {
	if len(s.lines) == 0 {
		return s.fitted(show.Table{Rows: [][]string{{"no Rollouts to show so far"}}}, columns)
	}
	style := s.Out.Style
	style.Width = columns
	table := show.Table{}
	if !s.noHeader {
		table.Header = s.header()
	}
	for _, key := range slices.Sorted(maps.Keys(s.lines)) {
		row, at := s.row(s.lines[key]), s.stateColumn()
		row[at] = cmp.Or(bar(s.lines[key], s.Now(), style), row[at])
		table.Rows = append(table.Rows, row)
	}
	return s.fitted(table, columns)
}

// fitRows leaves out Rollouts for which a terminal has no rows: what is said of one is never
// cut. One row is for the cursor. 0 rows are as many as needed.
func (s *screen) fitRows(table [][]string, rows int) []string {
	all := slices.Concat(table...)
	if rows == 0 || len(all) < rows {
		return all
	}
	var lines []string
	for i, row := range table {
		if len(lines)+len(row) > rows-2 {
			return append(lines, fmt.Sprintf("and %d more", len(table)-i))
		}
		lines = append(lines, row...)
	}
	return lines
}

// barWidth returns how wide a bar is on a terminal with so many columns.
func barWidth(columns int) int {
	if columns == 0 {
		return 24
	}
	return min(max((columns-56)/3, 6), 24)
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
