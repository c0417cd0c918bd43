// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
