// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/testfiles"
)

// named matches a test in the table of mistakes: its package, function and case.
var named = regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")

func TestMistakesNameTestsThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "contributing", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsByPackage(t)
	rows := 0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasSuffix(line, "| Shown by |") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, name := range names {
			if !tests[name[1]].has(name[2], name[3]) {
				t.Errorf("there is no test %s in: %s", name[0], line)
			}
		}
	}
	if rows < 48 {
		t.Errorf("found only %d mistakes", rows)
	}
}

// testFunctions contains the texts in each test function of a package. A case is named by
// one of them, or by a text outside the functions, for example in a table.
type testFunctions struct {
	texts     map[string]map[string]bool
	elsewhere map[string]bool
}

func (f *testFunctions) has(function, testCase string) bool {
	if f == nil || f.texts[function] == nil {
		return false
	}
	return testCase == "" || f.texts[function][testCase] || f.elsewhere[testCase]
}

// testsByPackage reads every test file of the repository.
func testsByPackage(t *testing.T) map[string]*testFunctions {
	t.Helper()
	packages := map[string]*testFunctions{}
	err := testfiles.Each(root, func(path string, _ *token.FileSet, file *ast.File) error {
		name := filepath.Base(filepath.Dir(path))
		if packages[name] == nil {
			packages[name] = &testFunctions{texts: map[string]map[string]bool{}, elsewhere: map[string]bool{}}
		}
		packages[name].read(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func (f *testFunctions) read(file *ast.File) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		isTest := ok && testfiles.IsTest(function)
		texts := f.elsewhere
		if isTest {
			texts = map[string]bool{}
			f.texts[function.Name.Name] = texts
		}
		ast.Inspect(declaration, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts[text] = true
				}
			}
			return true
		})
	}
}
