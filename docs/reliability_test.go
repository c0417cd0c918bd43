// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/faults/report"
)

// TestEveryTestOfAFaultHasItsRow compares the table in reliability.md with the tests of
// the packages that report to it.
func TestEveryTestOfAFaultHasItsRow(t *testing.T) {
	want := testsThatReport(t)
	for _, row := range report.Rows(documents(t)["docs/reliability.md"]) {
		if !want[row.Test] {
			t.Errorf("docs/reliability.md has a row of %s, which does not exist or has two", row.Test)
		}
		delete(want, row.Test)
	}
	for test := range want {
		t.Errorf("docs/reliability.md has no row of %s: run make reliability", test)
	}
}

// testsThatReport returns the tests of all packages below test/faults that import the
// package report.
func testsThatReport(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "test", "faults", "*", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	reporting, tests := map[string]bool{}, map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Base(filepath.Dir(path))
		reporting[folder] = reporting[folder] || imports(file, "test/faults/report")
		for _, test := range testsOf(file) {
			tests[folder+"."+test] = true
		}
	}
	for test := range tests {
		if folder, _, _ := strings.Cut(test, "."); !reporting[folder] {
			delete(tests, test)
		}
	}
	return tests
}

func imports(file *ast.File, packageOf string) bool {
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasSuffix(path, "/"+packageOf) {
			return true
		}
	}
	return false
}

// TestEveryDrillHasItsRow compares the table of what was lost with the tests that lose it.
func TestEveryDrillHasItsRow(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "test", "e2e", "recovery", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range testsOf(file) {
			tests = append(tests, "recovery."+test)
		}
	}
	rows := regexp.MustCompile(`recovery\.Test\w+`).FindAllString(documents(t)["docs/reliability.md"], -1)
	slices.Sort(tests)
	slices.Sort(rows)
	rows = slices.Compact(rows) // a test may have several stories
	if diff := cmp.Diff(tests, rows); diff != "" || len(tests) == 0 {
		t.Errorf("rows in docs/reliability.md (-tests +rows):\n%s", diff)
	}
}

// testsOf returns the names of the tests in a file.
func testsOf(file *ast.File) []string {
	var tests []string
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			tests = append(tests, f.Name.Name)
		}
	}
	return tests
}
