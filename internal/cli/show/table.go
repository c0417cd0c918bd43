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
	// Lines is how many lines the last cell of a row may have where the width is limited;
	// 0 is one. What a cell has no room for is left out in its middle.
	Lines int
}

// Write writes the table in columns as wide as their widest cell. The last column is not
// filled up. Where the width is limited, the last column is cut.
func (t Table) Write(p Printer) {
	rows := t.cleaned()
	widths := widthsOf(rows)
	for _, row := range rows {
		for _, line := range t.fit(p.Style, row, widths) {
			p.Line("%s", Text(line))
		}
	}
}

// lines returns the table as lines of any width, which are clean.
func (t Table) lines() []string {
	rows := t.cleaned()
	widths := widthsOf(rows)
	all := make([]string, len(rows))
	for i, row := range rows {
		all[i] = join(row, widths)
	}
	return all
}

func (t Table) cleaned() [][]string {
	if t.Header == nil {
		return cleanedRows(t.Rows)
	}
	return cleanedRows(append([][]string{t.Header}, t.Rows...))
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
	return strings.TrimRight(started(row[:len(row)-1], widths)+row[len(row)-1], " ")
}

// started returns the first cells of a row, up to where the next one begins.
func started(cells []string, widths []int) string {
	var line strings.Builder
	for i, cell := range cells {
		line.WriteString(cell + strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)) + gap)
	}
	return line.String()
}

// fit returns a row as lines that are no wider than the terminal. If the last cell has
// little room in its column, it goes below.
func (t Table) fit(s Style, row []string, widths []int) []string {
	line := join(row, widths)
	if s.Width == 0 || runewidth.StringWidth(line) <= s.Width {
		return []string{line}
	}
	start, last := started(row[:len(row)-1], widths), row[len(row)-1]
	first := strings.TrimRight(start, " ")
	switch column := runewidth.StringWidth(start); {
	case s.Width-column >= fewest:
		return hung(start, t.broken(s, last, s.Width-column))
	case t.Lines > 1 && runewidth.StringWidth(first) <= s.Width && s.Width-len(indent) >= fewest:
		return append([]string{first}, hung(indent, t.broken(s, last, s.Width-len(indent)))...)
	}
	return []string{runewidth.Truncate(line, s.Width, s.ellipsis())}
}

// indent is in front of a cell that is below its row.
const indent = gap + gap

// broken returns as much of the last cell of a row as its lines have room for.
func (t Table) broken(s Style, cell string, columns int) []string {
	short := s.shorten(cell, columns*max(t.Lines, 1))
	if t.Lines <= 1 {
		return []string{short}
	}
	return fold(short, columns)
}

// hung returns lines with a text in front of the first, and spaces in front of the others.
func hung(start string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		if i > 0 {
			start = strings.Repeat(" ", widthOf(start))
		}
		all[i] = strings.TrimRight(start+line, " ")
	}
	return all
}
