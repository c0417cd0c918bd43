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

func TestTextIsCutInItsMiddle(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not if it is short":                        {"ten chars.", "ten chars."},
		"not if it is empty":                        {"", ""},
		"after so many characters":                  {"eleven chars", "eleve … rs"},
		"at a space, without a second one":          {"four and more", "four … re"},
		"before a space, without a second one":      {"eleven of a s", "eleve … s"},
		"between characters, not within one":        {strings.Repeat("é", 11), "ééé … é"},
		"not for a few characters of several bytes": {"für Müller", "für Müller"},
		"earlier if JSON makes it longer":           {strings.Repeat("\x00", 9) + "x", "\x00 … x"},
		"with what is no UTF-8":                     {strings.Repeat("\xff", 9) + "x", "\xff … x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.Text(test.text, 10); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What others report begins with the object, and ends with the cause.
func TestTextKeepsTheCauseAtTheEnd(t *testing.T) {
	immutable := `Job/shop/migrate dry-run failed (Invalid): Job.batch "migrate" is invalid: spec.template: Invalid value: ` +
		strings.Repeat(`{"labels":{"batch.kubernetes.io/controller-uid":"0d4ad4e6"}},`, 33) + `: field is immutable`
	text := immutable
	for _, characters := range []int{1500, 1024, 512, 256, 128, 100, 64} {
		text = truncate.Text(text, characters)
		if !strings.HasPrefix(text, "Job/shop/migrate") || !strings.HasSuffix(text, "field is immutable") {
			t.Errorf("%d characters of it: %s", characters, text)
		}
		if again := truncate.Text(text, characters); again != text {
			t.Errorf("cut again, it becomes %s", again)
		}
		if strings.Count(text, "…") != 1 {
			t.Errorf("cut several times, it shows each of them: %s", text)
		}
	}
}

func TestLineIsPrintable(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":                 {"one two", "one two"},
		"several lines":         {" one\r\n\ttwo\u2028\n", "one two"},
		"a terminal's language": {"\x1b[31mred\x00\x7f", "[31mred"},
		"another direction":     {"a\u202eb", "a b"},
		"no UTF-8":              {"a\xffb", "a b"},
		"no longer than it can be, without the middle": {"eleven chars", "eleve … rs"},
		"nothing but blanks":                           {" \n\t", ""},
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

// FuzzText checks that the result for any text is within the limits and is a beginning and
// an end of the text, that its size is that in JSON, and that a text that is cut again does
// not show it twice.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "plain", "\x00\x1b[31m", "\xff\xfe", "\"\\<>&\u2028", "日本語\U0001F600", "a\u202eb", strings.Repeat("é", 40),
		strings.Repeat("a <", 60), "a" + strings.Repeat(" ", 90) + "z", strings.Repeat("a", 50) + strings.Repeat("<", 50)} {
		f.Add(text, 10, 9)
		f.Add(text, 24, 23)
		f.Add(text, 60, 13)
	}
	f.Fuzz(func(t *testing.T, text string, characters, fewer int) {
		characters = 4 + int(uint(characters)%64)
		fewer = 4 + int(uint(fewer)%uint(characters-3))
		wire, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if size := truncate.Size(text); size < len(wire)-2 {
			t.Errorf("%q takes %d bytes in JSON, not %d", text, len(wire)-2, size)
		}
		once := truncate.Text(text, characters)
		checkText(t, text, once, characters)
		twice := truncate.Text(once, fewer)
		checkText(t, once, twice, fewer)
		if !strings.Contains(text, "…") && strings.Count(twice, "…") > 1 {
			t.Errorf("%q became %q, and then %q", text, once, twice)
		}
		if again := truncate.Text(once, characters); again != once {
			t.Errorf("%q became %q", once, again)
		}
	})
}

// checkText checks a text that was cut to a number of characters.
func checkText(t *testing.T, text, cut string, characters int) {
	t.Helper()
	if utf8.RuneCountInString(cut) > characters || truncate.Size(cut) > characters+characters/2 {
		t.Errorf("%q is longer than %d characters, or takes %d bytes", cut, characters, truncate.Size(cut))
	}
	if cut != text && !isMadeOf(cut, text) {
		t.Errorf("%q became %q", text, cut)
	}
	if utf8.ValidString(text) && !utf8.ValidString(cut) {
		t.Errorf("%q was cut inside of a character: %q", text, cut)
	}
}

// isMadeOf reports whether a text is the beginning and the end of another one, with an
// ellipsis in between.
func isMadeOf(cut, text string) bool {
	for i := range cut {
		end, found := strings.CutPrefix(cut[i:], "…")
		begin := cut[:i]
		if found && isEnd(text, end) && (strings.HasPrefix(text, begin) || strings.HasPrefix(text, strings.TrimSuffix(begin, " "))) {
			return true
		}
	}
	return false
}

func isEnd(text, end string) bool {
	return strings.HasSuffix(text, end) || strings.HasSuffix(text, strings.TrimPrefix(end, " "))
}
