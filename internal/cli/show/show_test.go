// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

func TestStyleFollowsTheTerminalAndItsEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		terminal bool
		env      map[string]string
		want     show.Style
	}{
		"a terminal":                  {true, nil, show.Style{Colours: true, Unicode: true, Redraws: true, Width: 80}},
		"a pipe":                      {false, nil, show.Style{Unicode: true}},
		"NO_COLOR":                    {true, map[string]string{"NO_COLOR": "1"}, show.Style{Unicode: true, Redraws: true, Width: 80}},
		"a dumb terminal":             {true, map[string]string{"TERM": "dumb"}, show.Style{Unicode: true, Width: 80}},
		"a locale of Latin letters":   {true, map[string]string{"LANG": "de_DE.ISO-8859-1"}, show.Style{Colours: true, Redraws: true, Width: 80}},
		"LC_ALL counts before LANG":   {false, map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, show.Style{}},
		"an empty LC_ALL says naught": {false, map[string]string{"LC_ALL": "", "LANG": "en_US.utf8"}, show.Style{Unicode: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := show.StyleOf(tt.terminal, 80, func(name string) string { return tt.env[name] })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCleanMakesTextHarmless(t *testing.T) {
	for name, tt := range map[string][2]string{
		"plain text":             {"1.5.0 – größer, 大", "1.5.0 – größer, 大"},
		"a colour":               {"\x1b[31mred", `\x1b[31mred`},
		"a link":                 {"\x1b]8;;https://x\x07y", `\x1b]8;;https://x\x07y`},
		"a carriage return":      {"held\rfree", `held\x0dfree`},
		"right to left":          {"a\u202eb", `a\u202eb`},
		"eight-bit controls":     {"a\u009b31m", `a\x9b31m`},
		"a separator of lines":   {"a\u2028b", `a\u2028b`},
		"lines and tabs":         {"a\nb\tc", "a b c"},
		"bytes that are no text": {"a\xffb", "a�b"},
		"an emoji of two parts":  {"👩\u200d💻", "👩\u200d💻"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show.Clean(tt[0]); got != tt[1] {
				t.Errorf("got %q, want %q", got, tt[1])
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b]0;title\x07\u202e\u2066\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		clean := show.Clean(text)
		if strings.ContainsFunc(clean, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("%q became %q", text, clean)
		}
		if again := show.Clean(clean); again != clean {
			t.Errorf("%q became %q, and %q when it was cleaned again", text, clean, again)
		}
	})
}

func TestLineCleansWhatItIsGiven(t *testing.T) {
	type name string
	var out strings.Builder
	p := show.Printer{Style: show.Style{Colours: true}, Out: &out}
	p.Line("%s %s %s %d %s", "a\x1bb", name("c\x1bd"), errors.New("e\x1bf"), 7, p.Bold("g\x1bh"))
	p.Sentence(show.Bad, "no %s", "\r")
	want := "a\\x1bb c\\x1bd e\\x1bf 7 \x1b[1mg\\x1bh\x1b[0m\n\x1b[31mx\x1b[0m no \\x0d\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	table := show.Table{
		Header: []string{"NAME", "VERSION", "WAITS FOR"},
		Rows:   [][]string{{"shop", "1.3.2", "RolloutGate qa"}, {"大きい", "", "a\x1bb"}, {"e\u0301t\u00e9", "2", ""}},
	}
	for name, tt := range map[string]struct {
		style show.Style
		want  string
	}{
		"wide and combining characters": {show.Style{Unicode: true}, "" +
			"NAME    VERSION  WAITS FOR\n" +
			"shop    1.3.2    RolloutGate qa\n" +
			"大きい           a\\x1bb\n" +
			"e\u0301t\u00e9     2\n"},
		"a narrow terminal": {show.Style{Unicode: true, Width: 20}, "" +
			"NAME    VERSION\n" +
			"    WAITS FOR\n" +
			"shop    1.3.2\n" +
			"    RolloutGate qa\n" +
			"大きい\n" +
			"    a\\x1bb\n" +
			"e\u0301t\u00e9     2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			table.Write(show.Printer{Style: tt.style, Out: &out})
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for line := range strings.Lines(out.String()) {
				if width := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); tt.style.Width > 0 && width > tt.style.Width {
					t.Errorf("%q is %d wide", line, width)
				}
			}
		})
	}
}

// All of the text says why a promotion failed.
func TestTableWrapsItsLastColumn(t *testing.T) {
	const why = "Kustomization shop/shop: Job.batch migrate is invalid: spec.template: field is immutable"
	for name, tt := range map[string]struct {
		width int
		want  string
	}{
		"in its column": {50, "" +
			"#   VERSION  WHY\n" +
			"41  1.1.0    Kustomization shop/shop: Job.batch\n" +
			"             migrate is invalid: spec.template:\n" +
			"             field is immutable\n"},
		"below, where the column is narrow": {36, "" +
			"#   VERSION  WHY\n" +
			"41  1.1.0\n" +
			"    Kustomization shop/shop:\n" +
			"    Job.batch migrate is invalid:\n" +
			"    spec.template: field is\n" +
			"    immutable\n"},
		"and names are cut": {8, "" +
			"#   VER…\n" +
			"    WHY\n" +
			"41  1.1…\n" +
			"    Kust\n    omiz\n    atio\n    n\n    shop\n    /sho\n    p:\n    Job.\n    batc\n    h\n    migr\n    ate\n    is\n" +
			"    inva\n    lid:\n    spec\n    .tem\n    plat\n    e:\n    fiel\n    d is\n    immu\n    tabl\n    e\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			table := show.Table{Header: []string{"#", "VERSION", "WHY"}, Rows: [][]string{{"41", "1.1.0", why}}}
			table.Write(show.Printer{Style: show.Style{Unicode: true, Width: tt.width}, Out: &out})
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, time.November, 21, 13, 5, 0, 0, time.UTC)
	for name, tt := range map[string][2]string{
		"this year":    {show.Moment(now, now, zone), "Sat 21 Nov 14:05 CET"},
		"another year": {show.Moment(now.AddDate(1, 0, 0), now, zone), "Sun 21 Nov 2027 14:05 CET"},
		"exact":        {show.Exact(now, zone), "Sat 21 Nov 14:05:00 CET"},
		"ago":          {show.Ago(now.Add(-52*time.Hour), now), "2d4h"},
		"never":        {show.Ago(time.Time{}, now), "-"},
		"span":         {show.Span(90 * time.Second), "90s"},
	} {
		if tt[0] != tt[1] {
			t.Errorf("%s: got %q, want %q", name, tt[0], tt[1])
		}
	}
}
