// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// gap separates columns.
const gap = "  "

// Table has rows of cells.
type Table struct {
	// Header is the first row; nil for none.
	Header []string
	Rows   [][]string
}

// Write writes the table in columns as wide as their widest cell. The last column is not
// filled up. Where the width is limited, the last column is cut.
func (t Table) Write(p Printer) {
	for _, line := range t.lines() {
		p.Line("%s", Text(p.fit(line)))
	}
}

// lines returns the table as lines, which are clean.
func (t Table) lines() []string {
	rows := t.Rows
	if t.Header != nil {
		rows = append([][]string{t.Header}, rows...)
	}
	rows = cleanedRows(rows)
	widths := widthsOf(rows)
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = join(row, widths)
	}
	return all
}

func cleanedRows(rows [][]string) [][]string {
	all := make([][]string, len(rows))
	for i, row := range rows {
		all[i] = make([]string, len(row))
		for j, cell := range row {
			all[i][j] = Clean(cell)
		}
	}
	return all
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	return widths
}

func join(row []string, widths []int) string {
	var line strings.Builder
	for i, cell := range row {
		if i > 0 {
			line.WriteString(gap)
		}
		line.WriteString(cell)
		if i < len(row)-1 {
			line.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)))
		}
	}
	return strings.TrimRight(line.String(), " ")
}

// fit cuts a line to the width of the terminal, never inside a character.
func (s Style) fit(line string) string {
	if s.Width == 0 {
		return line
	}
	end := "..."
	if s.Unicode {
		end = "…"
	}
	return runewidth.Truncate(line, s.Width, end)
}
