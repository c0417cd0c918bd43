// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEmulatorShowsWhatATerminalDoes(t *testing.T) {
	wrapped := func(e *Terminal) { e.Resize(4, 3) }
	for name, test := range map[string]struct {
		written string
		then    func(*Terminal)
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
		"joins again when it gets wider":            {written: "1234567\r\n日本x", then: func(e *Terminal) { wrapped(e); e.Resize(9, 3) }, want: "1234567\n日本x"},
		"keeps the cursor behind its text":          {written: "1234567", then: func(e *Terminal) { wrapped(e); e.character('x') }, want: "1234\n567x"},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(8, 3)
			for _, b := range []byte(test.written) { // it may arrive in any pieces
				if _, err := e.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			if test.then != nil {
				test.then(e)
			}
			if diff := cmp.Diff(test.want, e.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, unknown := range []string{"\x1b[2K", "\x1b[5;5H", "\x07", "\x1b]0;title"} {
		e := New(8, 3)
		if _, _ = e.Write([]byte(unknown)); e.Err == nil {
			t.Errorf("it accepts %q", unknown)
		}
	}
}
