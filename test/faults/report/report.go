// SPDX-License-Identifier: Apache-2.0

// Package report collects the results of the tests of faults for the table that `make
// reliability` writes. Each of these tests makes one row of it.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FolderVariable is the environment variable with the folder for rows, one file for each
// test. Without it no rows are stored, so a plain run of the tests does not change the
// tree.
const FolderVariable = "FAULTS_REPORT"

// Row is the result of one test.
type Row struct {
	// Test is the name of the package and that of the test.
	Test string `json:"test"`
	// Fault that was injected.
	Fault string `json:"fault"`
	// Times is how often it was injected.
	Times int `json:"times"`
	// Promise that must be kept in spite of the fault.
	Promise string `json:"promise"`
	// Seen is the result, with figures.
	Seen string `json:"seen"`
}

// Report is the row of a running test.
type Report struct {
	tb       testing.TB
	row      Row
	reported bool
}

// Begin must be the first call in a test of a fault. Its row is then stored after all
// other cleanup, and only if nothing failed. A test that passes without a result in its
// report fails.
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

// Saw reports how often the fault was injected, and the result.
func (r *Report) Saw(times int, format string, args ...any) {
	r.tb.Helper()
	r.row.Times, r.row.Seen, r.reported = times, fmt.Sprintf(format, args...), true
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
	case !r.reported:
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
