// SPDX-License-Identifier: Apache-2.0

package truncate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestItemsKeepsWhatFitsAndWhatMattersFirst(t *testing.T) {
	matter := func(wanted ...string) func(string) bool {
		return func(item string) bool { return slices.Contains(wanted, item) }
	}
	all := []string{"aa", "bb", "cccc", "dd"} // 5, 5, 7 and 5 bytes in JSON, with a comma
	for name, tt := range map[string]struct {
		limit   int
		matters func(string) bool
		want    []string
	}{
		"all of them":                              {22, matter(), all},
		"the first ones":                           {21, matter(), []string{"aa", "bb", "cccc"}},
		"the one that matters, in its place":       {12, matter("dd"), []string{"aa", "dd"}},
		"no smaller one in place of one too large": {16, matter(), []string{"aa", "bb"}},
		"none": {4, matter("aa"), nil},
	} {
		got, omitted := Items(all, tt.limit, tt.matters)
		if diff := cmp.Diff(tt.want, got); diff != "" || int(omitted) != len(all)-len(tt.want) {
			t.Errorf("%s: %d omitted (-want +got):\n%s", name, omitted, diff)
		}
	}
}
