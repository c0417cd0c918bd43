// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

func TestTallyCountsTestsAndPackagesThatFailedWithoutOne(t *testing.T) {
	all := tally{}
	for range 2 {
		failed := all.add([]gotest.Suite{
			{Name: "a", Failed: true, Tests: []gotest.Test{{Name: "TestOne", Failed: true}, {Name: "TestTwo"}}},
			{Name: "b"},
			{Name: "c", Failed: true, Tests: []gotest.Test{{Name: "TestThree"}}},
		})
		if len(failed) != 2 {
			t.Errorf("%d suites failed, want a and c", len(failed))
		}
	}
	var printed strings.Builder
	all.write(&printed)
	want := "a TestOne failed 2 times\nc failed 2 times\n"
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
