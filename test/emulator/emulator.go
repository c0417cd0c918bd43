// SPDX-License-Identifier: Apache-2.0

// Package emulator is a terminal for tests, which compare what it shows.
package emulator

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal shows what a program writes. When its width changes, it
// wraps lines again, as terminals of today do. It knows the few sequences that the program
// uses: any other one is an error.
type Terminal struct {
	columns, rows int
	// lines are the rows of the screen, and above them those that were scrolled away.
	lines []row
	// row and column are where the cursor is. Its column is the width of the terminal after
	// the last column was written.
	row, column int
	// unread is a beginning of a sequence.
	unread string
	// Err is the first sequence that it does not know.
	Err error
}

// row is one row. A wide character takes two cells, of which the second is empty.
type row struct {
	cells []string
	// wraps is true if the text goes on in the next row.
	wraps bool
}

// New returns an empty terminal.
func New(columns, rows int) *Terminal {
	return &Terminal{columns: columns, rows: rows, lines: make([]row, 1)}
}

var (
	sequence    = regexp.MustCompile(`^\x1b\[([0-9;]*)([a-zA-Z])`)
	unfinished  = regexp.MustCompile(`^\x1b(\[[0-9;]*)?$`)
	wideScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul}
)

// Write shows a text, which may be a piece of a sequence or of a character.
func (e *Terminal) Write(text []byte) (int, error) {
	rest := e.unread + string(text)
	for rest != "" && !unfinished.MatchString(rest) && utf8.FullRuneInString(rest) {
		if parts := sequence.FindStringSubmatch(rest); parts != nil {
			e.control(parts[1], parts[2])
			rest = rest[len(parts[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		e.character(r)
		rest = rest[size:]
	}
	e.unread = rest
	return len(text), e.Err
}

func (e *Terminal) control(parameters, final string) {
	n, _ := strconv.Atoi(parameters) // none is 0
	switch {
	case final == "m": // colours
	case final == "A":
		e.row = max(e.row-max(n, 1), e.top())
		e.column = min(e.column, e.columns-1)
	case final == "J" && n == 0:
		e.eraseLine()
		for i := e.row + 1; i < len(e.lines); i++ {
			e.lines[i] = row{}
		}
	case final == "K" && n == 0:
		e.eraseLine()
	default:
		e.Err = fmt.Errorf("the terminal does not know ESC[%s%s", parameters, final)
	}
}

// eraseLine erases from the cursor to the end of the row.
func (e *Terminal) eraseLine() {
	line := &e.lines[e.row]
	line.cells, line.wraps = line.cells[:min(e.column, len(line.cells))], false
}

func (e *Terminal) character(r rune) {
	switch {
	case r == '\r':
		e.column = 0
	case r == '\n':
		e.down()
	case unicode.In(r, unicode.Mn):
		if line := e.lines[e.row].cells; e.column > 0 && e.column <= len(line) {
			line[e.column-1] += string(r)
		}
	case unicode.In(r, wideScripts...):
		e.put(string(r), "")
	case unicode.IsPrint(r):
		e.put(string(r))
	default:
		e.Err = fmt.Errorf("the terminal does not know the character %U", r)
	}
}

// put writes a character into its cells.
func (e *Terminal) put(cells ...string) {
	if e.column+len(cells) > e.columns {
		e.lines[e.row].wraps = true
		e.down()
		e.column = 0
	}
	line := &e.lines[e.row]
	for len(line.cells) < e.column+len(cells) {
		line.cells = append(line.cells, " ")
	}
	copy(line.cells[e.column:], cells)
	e.column += len(cells)
}

func (e *Terminal) down() {
	if e.row++; e.row == len(e.lines) {
		e.lines = append(e.lines, row{})
	}
}

// top is the first row that was not scrolled away: the highest one the cursor can reach.
func (e *Terminal) top() int { return max(0, len(e.lines)-e.rows) }

// Resize changes the size, and wraps all lines again.
func (e *Terminal) Resize(columns, rows int) {
	old := *e
	*e = Terminal{columns: columns, rows: rows, unread: e.unread, Err: e.Err}
	for i, line := range old.lines {
		if i == 0 || !old.lines[i-1].wraps {
			e.lines = append(e.lines, row{})
			e.row, e.column = len(e.lines)-1, 0
		}
		for at, cell := range line.cells {
			switch wide := at+1 < len(line.cells) && line.cells[at+1] == ""; {
			case wide:
				e.put(cell, "")
			case cell != "":
				e.put(cell)
			}
		}
		if i == old.row {
			defer func(row, column int) { e.row, e.column = row, column }(e.row, min(old.column, e.column))
		}
	}
}

// Text returns all rows, also those that were scrolled away.
func (e *Terminal) Text() string {
	var all []string
	for _, line := range e.lines {
		all = append(all, strings.TrimRight(strings.Join(line.cells, ""), " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = slices.Delete(all, len(all)-1, len(all))
	}
	return strings.Join(all, "\n")
}
