// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

func TestTableNamesTheLongestFirst(t *testing.T) {
	var printed strings.Builder
	writeTable(&printed, []timed{
		{Suite: gotest.Suite{Name: "internal/a", Took: 2 * time.Second, Tests: []gotest.Test{{Name: "TestQuick", Took: time.Millisecond}}}},
		{
			Suite: gotest.Suite{Name: "test/b", Failed: true, Took: time.Minute, Tests: []gotest.Test{
				{Name: "TestOne", Took: time.Second}, {Name: "TestTwo", Took: 3 * time.Second},
				{Name: "TestThree", Took: 2 * time.Second}, {Name: "TestFour", Took: 4 * time.Second},
			}},
			usage: usage{CPU: 90 * time.Second, Planes: 2},
		},
	})
	want := `| Package | Time | CPU time | Control planes | Longest tests |
| --- | ---: | ---: | ---: | --- |
| test/b FAILED | 60 s | 90 s | 2 | TestFour 4 s, TestTwo 3 s, TestThree 2 s |
| internal/a | 2 s | 0 s | 0 |  |
| all | 62 s | 90 s | 2 | |
`
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunTestNotesWhatTheProcessesUsed(t *testing.T) {
	folder := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(rootVariable, filepath.Dir(here))
	script := `printf .. > "$` + planesVariable + `"; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done`
	if err := runTest(folder, []string{"/bin/sh", "-c", script}); err != nil {
		t.Fatal(err)
	}
	used, err := usageOf(filepath.Join(folder, fileName("timings")))
	if err != nil {
		t.Fatal(err)
	}
	if used.Planes != 2 || used.CPU == 0 {
		t.Errorf("noted %+v", used)
	}
	if err := runTest(folder, []string{"/bin/sh", "-c", "exit 3"}); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the error of a test that fails is %v", err)
	}
	if none, err := usageOf(filepath.Join(folder, "none")); err != nil || none != (usage{}) {
		t.Errorf("of a package without tests was noted %+v, %v", none, err)
	}
}
