// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pretended is a test that does not really run.
type pretended struct {
	testing.TB
	failed, skipped bool
	said            []string
	cleanup         []func()
}

func (p *pretended) Helper()             {}
func (p *pretended) Name() string        { return "TestX/a case" }
func (p *pretended) Logf(string, ...any) {}
func (p *pretended) Failed() bool        { return p.failed }
func (p *pretended) Skipped() bool       { return p.skipped }
func (p *pretended) Cleanup(f func())    { p.cleanup = append(p.cleanup, f) }
func (p *pretended) Error(args ...any)   { p.failed, p.said = true, append(p.said, fmt.Sprint(args...)) }

// end does what the testing package does when a test has returned.
func (p *pretended) end() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
}

func TestRowIsStoredOfWhatPassedAndOfNothingElse(t *testing.T) {
	whole := []Row{{Test: "report.TestX/a case", Fault: "fire", Times: 2, Promise: "nothing burns", Seen: "0 of 3 burnt"}}
	saw := func(r *Report) { r.Saw(2, "%d of 3 burnt", 0) }
	for name, tt := range map[string]struct {
		test   func(*pretended, *Report)
		stored []Row
		said   []string
	}{
		"it passed":  {test: func(_ *pretended, r *Report) { saw(r) }, stored: whole},
		"it failed":  {test: func(p *pretended, r *Report) { saw(r); p.failed = true }},
		"skipped":    {test: func(p *pretended, _ *Report) { p.skipped = true }},
		"it said so": {test: func(*pretended, *Report) {}, said: []string{"report.TestX/a case passed, and did not say what it saw"}},
		"no fault": {
			test: func(_ *pretended, r *Report) { r.Saw(0, "nothing") },
			said: []string{"report.TestX/a case passed without the fault: fire"},
		},
		"it failed while it was cleaned up": {
			test: func(p *pretended, r *Report) { saw(r); p.Cleanup(func() { p.failed = true }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Setenv(FolderVariable, folder)
			p := &pretended{TB: t}
			tt.test(p, Begin(p, "fire", "nothing burns"))
			p.end()
			stored, _ := Read(folder)
			if diff := cmp.Diff(tt.stored, stored); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.said, p.said); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsStoredUnlessAFolderIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(FolderVariable, "")
	p := &pretended{TB: t}
	Begin(p, "fire", "nothing burns").Saw(1, "nothing")
	p.end()
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 || p.failed {
		t.Errorf("stored %v (%v), said %q", files, err, p.said)
	}
}

func TestTableIsSortedByTest(t *testing.T) {
	want := `| Fault | Times | Promise | What was seen | Test |
| --- | --- | --- | --- | --- |
| fire | 20 | cold | cold | ` + "`a.TestA`" + ` |
| water | 1 | dry \| warm | dry and warm | ` + "`b.TestB`" + ` |
`
	got := Table([]Row{
		{Test: "b.TestB", Fault: "water", Times: 1, Promise: "dry | warm", Seen: "dry\nand warm"},
		{Test: "a.TestA", Fault: "fire", Times: 20, Promise: "cold", Seen: "cold"},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestEmptyFolderIsNoReport(t *testing.T) {
	if rows, err := Read(t.TempDir()); err == nil {
		t.Errorf("read %v", rows)
	}
}
