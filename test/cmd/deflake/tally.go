// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

// tally is how often each test failed. A package that failed without a test, since
// it did not compile or left something behind, counts under its own name.
type tally map[string]int

// add returns the suites that failed.
func (t tally) add(suites []gotest.Suite) (failed []gotest.Suite) {
	for _, s := range suites {
		if !s.Failed {
			continue
		}
		failed = append(failed, s)
		named := false
		for _, test := range s.Tests {
			if test.Failed {
				t[s.Name+" "+test.Name]++
				named = true
			}
		}
		if !named {
			t[s.Name]++
		}
	}
	return failed
}

func (t tally) write(to io.Writer) {
	if len(t) == 0 {
		fmt.Fprintln(to, "nothing failed")
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(to, "%s failed %d times\n", name, t[name])
	}
}
