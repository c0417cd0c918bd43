// SPDX-License-Identifier: Apache-2.0

package truncate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

func TestTextIsCut(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not if it is short":                        {"ten chars.", "ten chars."},
		"not if it is empty":                        {"", ""},
		"after so many characters":                  {"eleven chars", "eleven cha…"},
		"between characters, not within one":        {strings.Repeat("é", 11), strings.Repeat("é", 6) + "…"},
		"not for a few characters of several bytes": {"für Müller", "für Müller"},
		"earlier if JSON makes it longer":           {strings.Repeat("\x00", 10), "\x00\x00…"},
		"with what is no UTF-8":                     {strings.Repeat("\xff", 10), "\xff\xff…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.Text(test.text, 10); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestLineIsPrintable(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":                              {"one two", "one two"},
		"several lines":                      {" one\r\n\ttwo\u2028\n", "one two"},
		"a terminal's language":              {"\x1b[31mred\x00\x7f", "[31mred"},
		"another direction":                  {"a\u202eb", "a b"},
		"no UTF-8":                           {"a\xffb", "a b"},
		"as long as can be, without the end": {"eleven chars", "eleven cha…"},
		"nothing but blanks":                 {" \n\t", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.Line(test.text, 10); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestListNamesSomeAndCountsTheRest(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	long := strings.Repeat("x", 253)
	for name, test := range map[string]struct {
		names []string
		want  string
	}{
		"none":                 {nil, ""},
		"one":                  {[]string{"a"}, "a"},
		"twenty":               {names[:20], strings.Join(names[:20], ", ")},
		"a thousand":           {names, strings.Join(names[:20], ", ") + " and 980 more"},
		"some with long names": {[]string{long, long, long, long}, long + ", " + long + ", " + long + " and 1 more"},
		"one that is too long": {[]string{strings.Repeat(long, 4)}, strings.Repeat(long, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.List(test.names); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzText checks that the result for any text is within the limits and is a prefix of
// the text, and that its size is that in JSON.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "plain", "\x00\x1b[31m", "\xff\xfe", "\"\\<>&\u2028", "日本語\U0001F600", "a\u202eb", strings.Repeat("é", 40)} {
		f.Add(text, 10)
	}
	f.Fuzz(func(t *testing.T, text string, characters int) {
		characters = 4 + int(uint(characters)%64)
		wire, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if size := truncate.Size(text); size < len(wire)-2 {
			t.Errorf("%q takes %d bytes in JSON, not %d", text, len(wire)-2, size)
		}
		cut := truncate.Text(text, characters)
		rest, shortened := strings.CutSuffix(cut, "…")
		if cut != text && !(shortened && strings.HasPrefix(text, rest)) {
			t.Errorf("%q became %q", text, cut)
		}
		if utf8.RuneCountInString(cut) > characters+1 || truncate.Size(cut) > characters+characters/2 {
			t.Errorf("%q is longer than %d characters, or takes %d bytes", cut, characters, truncate.Size(cut))
		}
	})
}
