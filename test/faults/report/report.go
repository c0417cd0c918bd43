// SPDX-License-Identifier: Apache-2.0

// Package report carries what the tests of faults did and saw to the table in
// docs/reliability.md. Each of these tests makes one row of it.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FolderVariable names, in the environment, the folder where rows are stored, a
// file for each test. Without it none are, so that a plain run of the tests leaves
// the tree as it is.
const FolderVariable = "FAULTS_REPORT"

// Row is what one test did and saw.
type Row struct {
	// Test is the name of the package and that of the test.
	Test string `json:"test"`
	// Fault that was injected.
	Fault string `json:"fault"`
	// Times that it was.
	Times int `json:"times"`
	// Promise that had to hold all the same.
	Promise string `json:"promise"`
	// Seen is what came of it, with figures.
	Seen string `json:"seen"`
}

// Report is the row of a test that runs.
type Report struct {
	tb   testing.TB
	row  Row
	told bool
}

// Begin is the first thing that a test of a fault does, so that its row is stored
// after everything else was cleaned up, and only if nothing failed. A test that
// passes and says nothing of what it saw, fails.
func Begin(tb testing.TB, fault, promise string) *Report {
	tb.Helper()
	here, err := os.Getwd() // the go command runs tests in the folder of their package
	if err != nil {
		tb.Fatal(err)
	}
	r := &Report{tb: tb, row: Row{Test: filepath.Base(here) + "." + tb.Name(), Fault: fault, Promise: promise}}
	tb.Cleanup(r.store)
	return r
}

// Saw says how often the fault was injected, and what came of it.
func (r *Report) Saw(times int, format string, args ...any) {
	r.tb.Helper()
	r.row.Times, r.row.Seen, r.told = times, fmt.Sprintf(format, args...), true
	r.tb.Logf("%s, %d times: %s", r.row.Fault, times, r.row.Seen)
}

func (r *Report) store() {
	if r.tb.Failed() || r.tb.Skipped() {
		return
	}
	if err := r.validate(); err != nil {
		r.tb.Error(err)
		return
	}
	if folder := os.Getenv(FolderVariable); folder != "" {
		if err := write(folder, r.row); err != nil {
			r.tb.Error(err)
		}
	}
}

// validate makes sure that no row shows a fault that never happened.
func (r *Report) validate() error {
	switch {
	case !r.told:
		return fmt.Errorf("%s passed, and did not say what it saw", r.row.Test)
	case r.row.Times < 1:
		return fmt.Errorf("%s passed without the fault: %s", r.row.Test, r.row.Fault)
	}
	return nil
}

func write(folder string, row Row) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	content, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("write the row of %s: %w", row.Test, err)
	}
	name := strings.ReplaceAll(row.Test, "/", "-") + ".json"
	return os.WriteFile(filepath.Join(folder, name), append(content, '\n'), 0o644)
}
