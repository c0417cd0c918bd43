// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"
)

func TestWordsAreQuotedForAShell(t *testing.T) {
	for word, want := range map[string]string{
		"1.5.0": "1.5.0", "": "''", "$(rm -rf ~)": "'$(rm -rf ~)'", "it's": `'it'\''s'`, "a;b": "'a;b'", "#38": "'#38'",
	} {
		if got := quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
