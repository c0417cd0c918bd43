// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// emulator is a terminal that shows what a program writes. When its width changes, it
// wraps lines again, as terminals of today do. It knows the few sequences that the program
// uses: any other one is an error.
type emulator struct {
	columns, rows int
	// lines are the rows of the screen, and above them those that were scrolled away.
	lines []emulatedLine
	// row and column are where the cursor is. Its column is the width of the terminal after
	// the last column was written.
	row, column int
	// unread is a beginning of a sequence.
	unread string
	err    error
}

// emulatedLine is one row. A wide character takes two cells, of which the second is empty.
type emulatedLine struct {
	cells []string
	// wraps is true if the text goes on in the next row.
	wraps bool
}

func newEmulator(columns, rows int) *emulator {
	return &emulator{columns: columns, rows: rows, lines: make([]emulatedLine, 1)}
}

var (
	sequence    = regexp.MustCompile(`^\x1b\[([0-9;]*)([a-zA-Z])`)
	unfinished  = regexp.MustCompile(`^\x1b(\[[0-9;]*)?$`)
	wideScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul}
)

func (e *emulator) Write(text []byte) (int, error) {
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
	return len(text), e.err
}

func (e *emulator) control(parameters, final string) {
	n, _ := strconv.Atoi(parameters) // none is 0
	switch {
	case final == "m": // colours
	case final == "A":
		e.row = max(e.row-max(n, 1), e.top())
		e.column = min(e.column, e.columns-1)
	case final == "J" && n == 0:
		e.eraseLine()
		for i := e.row + 1; i < len(e.lines); i++ {
			e.lines[i] = emulatedLine{}
		}
	case final == "K" && n == 0:
		e.eraseLine()
	default:
		e.err = fmt.Errorf("the terminal does not know ESC[%s%s", parameters, final)
	}
}

// eraseLine erases from the cursor to the end of the row.
func (e *emulator) eraseLine() {
	line := &e.lines[e.row]
	line.cells, line.wraps = line.cells[:min(e.column, len(line.cells))], false
}

func (e *emulator) character(r rune) {
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
		e.err = fmt.Errorf("the terminal does not know the character %U", r)
	}
}

// put writes a character into its cells.
func (e *emulator) put(cells ...string) {
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

func (e *emulator) down() {
	if e.row++; e.row == len(e.lines) {
		e.lines = append(e.lines, emulatedLine{})
	}
}

// top is the first row that was not scrolled away: the highest one the cursor can reach.
func (e *emulator) top() int { return max(0, len(e.lines)-e.rows) }

// resize changes the size, and wraps all lines again.
func (e *emulator) resize(columns, rows int) {
	old := *e
	*e = emulator{columns: columns, rows: rows, unread: e.unread, err: e.err}
	for i, line := range old.lines {
		if i == 0 || !old.lines[i-1].wraps {
			e.lines = append(e.lines, emulatedLine{})
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

// text returns all rows, also those that were scrolled away.
func (e *emulator) text() string {
	var all []string
	for _, line := range e.lines {
		all = append(all, strings.TrimRight(strings.Join(line.cells, ""), " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = slices.Delete(all, len(all)-1, len(all))
	}
	return strings.Join(all, "\n")
}

func TestEmulatorShowsWhatATerminalDoes(t *testing.T) {
	wrapped := func(e *emulator) { e.resize(4, 3) }
	for name, test := range map[string]struct {
		written string
		then    func(*emulator)
		want    string
	}{
		"wraps after the last column":               {written: "12345678\r\n12345678x", want: "12345678\n12345678\nx"},
		"moves up and erases":                       {written: "a\r\nb\r\nc\r\n\x1b[2A\x1b[Jx", want: "a\nx"},
		"erases the rest of a row":                  {written: "abc\rx\x1b[K", want: "x"},
		"does not move to what was scrolled away":   {written: "a\r\nb\r\nc\r\nd\r\x1b[9A\x1b[Jx", want: "a\nx"},
		"shows colours as nothing":                  {written: "\x1b[1;31ma\x1b[0m", want: "a"},
		"keeps a wide character together":           {written: "1234567日本", want: "1234567\n日本"},
		"puts an accent on the character before it": {written: "e\u0301x", want: "e\u0301x"},
		"wraps again when it gets narrower":         {written: "1234567\r\nx", then: wrapped, want: "1234\n567\nx"},
		"joins again when it gets wider":            {written: "1234567\r\n日本x", then: func(e *emulator) { wrapped(e); e.resize(9, 3) }, want: "1234567\n日本x"},
		"keeps the cursor behind its text":          {written: "1234567", then: func(e *emulator) { wrapped(e); e.character('x') }, want: "1234\n567x"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEmulator(8, 3)
			for _, b := range []byte(test.written) { // it may arrive in any pieces
				if _, err := e.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			if test.then != nil {
				test.then(e)
			}
			if diff := cmp.Diff(test.want, e.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, unknown := range []string{"\x1b[2K", "\x1b[5;5H", "\x07", "\x1b]0;title"} {
		e := newEmulator(8, 3)
		if _, _ = e.Write([]byte(unknown)); e.err == nil {
			t.Errorf("it accepts %q", unknown)
		}
	}
}
