// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProseIsBrokenBetweenWords(t *testing.T) {
	const long = "ScheduleClosed  office-hours is closed until 2026-11-26"
	for name, test := range map[string]struct {
		style Style
		text  string
		want  string
	}{
		"nothing is broken where lines may have any length": {Style{}, long, long},
		"nor if it has room":                     {Style{Width: len(long)}, long, long},
		"the rest is further in":                 {Style{Width: 30}, "  " + long, "  ScheduleClosed  office-hours\n    is closed until 2026-11-26"},
		"a word that is too long stays whole":    {Style{Width: 10}, "a " + strings.Repeat("b", 20) + " c", "a\n  " + strings.Repeat("b", 20) + "\n  c"},
		"wide characters need two columns":       {Style{Width: 9}, "春の 値上げ", "春の\n  値上げ"},
		"spaces at the end of a line are gone":   {Style{Width: 8}, "one    three", "one\n  three"},
		"texts of a cluster are cleaned as ever": {Style{Width: 80}, "red \x1b[31m", `red \x1b[31m`},
	} {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			Printer{Style: test.style, Out: out}.Prose("%s", test.text)
			if diff := cmp.Diff(test.want+"\n", out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestColorsTakeNoRoom(t *testing.T) {
	out := &strings.Builder{}
	p := Printer{Style: Style{Width: 10, Colours: true, Unicode: true}, Out: out}
	p.Prose("%s is well", p.Bold("it"))
	if strings.Contains(strings.TrimSuffix(out.String(), "\n"), "\n") {
		t.Errorf("it has room for %q", out)
	}
}

func TestRemarkIsBelowACommandThatLeavesItNoRoom(t *testing.T) {
	for width, want := range map[int]string{
		0:  "    ► approve shop   # then still held\n",
		38: "    ► approve shop   # then still held\n",
		37: "    ► approve shop\n        # then still held\n",
		16: "    ► approve shop\n        # then\n        # still\n        # held\n",
	} {
		out := &strings.Builder{}
		Printer{Style: Style{Width: width, Unicode: true}, Out: out}.Command("    ", "approve shop", "then still held")
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
	out := &strings.Builder{}
	Printer{Style: Style{Width: 5}, Out: out}.Command("", "approve shop", "")
	if diff := cmp.Diff("> approve shop\n", out.String()); diff != "" {
		t.Errorf("a command is broken (-want +got):\n%s", diff)
	}
}
