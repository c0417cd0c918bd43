// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
)

func TestShorten(t *testing.T) {
	const text = "Kustomization shop/shop: Job.batch migrate is invalid: spec.template: field is immutable"
	for name, tt := range map[string]struct {
		style   Style
		text    string
		columns int
		want    string
	}{
		"a text that fits":              {Style{}, "fits", 4, "fits"},
		"the middle goes":               {Style{Unicode: true}, text, 60, "Kustomization shop/shop: Job.batch mig … field is immutable"},
		"in ASCII":                      {Style{}, text, 40, "Kustomization shop/shop: ... s immutable"},
		"in few columns, the end goes":  {Style{Unicode: true}, text, 23, "Kustomization shop/sho…"},
		"characters that are wide":      {Style{Unicode: true}, strings.Repeat("大", 20), 24, "大大大大大大大 … 大大大"},
		"characters of several runes":   {Style{Unicode: true}, strings.Repeat("e\u0301", 30), 24, strings.Repeat("e\u0301", 14) + " … " + strings.Repeat("e\u0301", 7)},
		"at a space there is no second": {Style{Unicode: true}, strings.Repeat("abcdef ", 6), 24, strings.Repeat("abcdef ", 2) + "… abcdef "},
		"not even an ellipsis has room": {Style{}, text, 2, "Ku"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.style.shorten(tt.text, tt.columns)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if width := runewidth.StringWidth(got); width > tt.columns {
				t.Errorf("%q is %d wide", got, width)
			}
		})
	}
}

func TestFold(t *testing.T) {
	for name, tt := range map[string]struct {
		text    string
		columns int
		want    []string
	}{
		"nothing":                       {"", 10, nil},
		"between words":                 {"one two three", 8, []string{"one two", "three"}},
		"inside of a word that is long": {"a " + strings.Repeat("b", 10) + " c", 4, []string{"a", "bbbb", "bbbb", "bb c"}},
		"wide characters":               {"大きい大", 5, []string{"大き", "い大"}},
		"a character without room":      {"大", 1, []string{"大"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fold(tt.text, tt.columns)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
