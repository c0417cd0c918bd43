// SPDX-License-Identifier: Apache-2.0

package show

import (
	"slices"
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
// filled up. Where the width is limited, it is wrapped: it often says why something failed.
func (t Table) Write(p Printer) {
	for _, line := range slices.Concat(t.Fitted(p.Style)...) {
		p.Line("%s", Text(line))
	}
}

// Fitted returns the lines of each row, the header first.
func (t Table) Fitted(s Style) [][]string {
	rows := t.cleaned()
	widths := widthsOf(rows)
	all := make([][]string, len(rows))
	for i, row := range rows {
		all[i] = s.fit(row, widths)
	}
	return all
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

// mostBeside is how many lines a cell may have in its column.
const mostBeside = 3

// fit returns a row as lines that are no wider than the terminal. If the last cell has
// little room in its column, it goes below. Only the cells before it are cut.
func (s Style) fit(row []string, widths []int) []string {
	line := join(row, widths)
	if s.Width == 0 || runewidth.StringWidth(line) <= s.Width {
		return []string{line}
	}
	start, last := started(row[:len(row)-1], widths), row[len(row)-1]
	if column := runewidth.StringWidth(start); column == 0 || s.Width-column >= fewest {
		if lines := fold(last, s.Width-column); column == 0 || len(lines) <= mostBeside {
			return hung(start, lines)
		}
	}
	first := runewidth.Truncate(strings.TrimRight(start, " "), s.Width, s.ellipsis())
	return append([]string{first}, hung(indent, fold(last, max(s.Width-len(indent), 1)))...)
}

// indent is in front of a cell that is below its row.
const indent = gap + gap

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
