// SPDX-License-Identifier: Apache-2.0

package truncate

import (
	"strings"
	"testing"
)

func TestNameIsCutToAHash(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"shop", "shop"},
		{"shop.example-1", "shop.example-1"},
		{strings.Repeat("a", 20), strings.Repeat("a", 20)},
		{strings.Repeat("a", 21), "aaaaaaa-7df8e299c834"},
		{"aaaaa.-" + strings.Repeat("b", 20), "aaaaa-b0bcd4452bad"},
	} {
		if got := Name(test.name, 20); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNamesThatBeginAlikeDiffer(t *testing.T) {
	long := strings.Repeat("a", 100)
	if a, b := Name(long+"1", 63), Name(long+"2", 63); a == b || len(a) != 63 {
		t.Errorf("got %s and %s", a, b)
	}
}
