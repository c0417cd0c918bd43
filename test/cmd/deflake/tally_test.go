// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

func TestTallyCountsRunsAndTheTestsAndPackagesThatFailed(t *testing.T) {
	all := newTally()
	for range 2 {
		for _, s := range []gotest.Suite{
			{Name: "a", Failed: true, Tests: []gotest.Test{{Name: "TestOne", Failed: true}, {Name: "TestTwo"}}},
			{Name: "b"},
			{Name: "c", Failed: true, Tests: []gotest.Test{{Name: "TestThree"}}},
		} {
			all.add(s)
		}
	}
	all.add(gotest.Suite{Name: "a"})
	var printed strings.Builder
	all.write(&printed)
	want := `a passed 1 of 3 times
b passed 2 of 2 times
c passed 0 of 2 times
a TestOne failed 2 times
c failed 2 times
`
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !all.failed() {
		t.Error("no failure was counted")
	}
}

func TestTallyWithoutFailures(t *testing.T) {
	all := newTally()
	all.add(gotest.Suite{Name: "a"})
	if all.failed() {
		t.Error("a failure was counted")
	}
}
