// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

// tally counts how often each package ran and passed, and how often each test failed. A
// package that failed without a failed test, because it did not compile or left something
// behind, counts as a failed test with the package's name.
type tally struct {
	mu           sync.Mutex
	runs, passed map[string]int
	failures     map[string]int
}

func newTally() *tally {
	return &tally{runs: map[string]int{}, passed: map[string]int{}, failures: map[string]int{}}
}

func (t *tally) add(s gotest.Suite) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs[s.Name]++
	if !s.Failed {
		t.passed[s.Name]++
		return
	}
	named := false
	for _, test := range s.Tests {
		if test.Failed {
			t.failures[s.Name+" "+test.Name]++
			named = true
		}
	}
	if !named {
		t.failures[s.Name]++
	}
}

func (t *tally) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

func (t *tally) write(to io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.runs)) {
		fmt.Fprintf(to, "%s passed %d of %d times\n", name, t.passed[name], t.runs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.failures)) {
		fmt.Fprintf(to, "%s failed %d times\n", name, t.failures[name])
	}
}
