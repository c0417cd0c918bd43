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
)

// rowOf finds a row of a table in proof.md by the test in its last cell.
var rowOf = regexp.MustCompile("(?m)^\\| .+ \\| `([a-z]+\\.Test\\w+)` \\|$")

// TestEveryTestOfAFaultHasItsRow compares the tables in proof.md with the tests of the
// packages that report what they saw.
func TestEveryTestOfAFaultHasItsRow(t *testing.T) {
	want := testsThatReport(t)
	for _, row := range rowOf.FindAllStringSubmatch(documents(t)["docs/proof.md"], -1) {
		test := row[1]
		if strings.HasPrefix(test, "recovery.") {
			continue // TestEveryDrillHasItsRow
		}
		if !want[test] {
			t.Errorf("docs/proof.md has a row of %s, which does not exist or has two", test)
		}
		delete(want, test)
	}
	for test := range want {
		t.Errorf("docs/proof.md has no row of %s: say what it makes fail", test)
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
	rows := regexp.MustCompile(`recovery\.Test\w+`).FindAllString(documents(t)["docs/proof.md"], -1)
	slices.Sort(tests)
	slices.Sort(rows)
	if diff := cmp.Diff(tests, rows); diff != "" || len(tests) == 0 {
		t.Errorf("rows in docs/proof.md (-tests +rows):\n%s", diff)
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
