// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fluxrollouts/rollout-controller/test/testfiles"
)

// test is a test function, with the names of its cases in the order of the source.
type test struct {
	file  string
	line  int
	name  string
	cases []string
}

// read returns the tests of all packages below a folder, in the order of their files.
func read(root string) ([]test, error) {
	var tests []test
	err := testfiles.Each(root, func(path string, positions *token.FileSet, file *ast.File) error {
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && testfiles.IsTest(function) {
				tests = append(tests, test{
					file: filepath.ToSlash(name), line: positions.Position(function.Pos()).Line,
					name: function.Name.Name, cases: casesOf(function),
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tests: %w", err)
	}
	return tests, nil
}

// casesOf returns the keys of the tables in a test, and the names that it gives to Run.
// Only names of several words count: a table is also used for other values.
func casesOf(function *ast.FuncDecl) []string {
	var cases []string
	ast.Inspect(function, func(node ast.Node) bool {
		for _, name := range namesAt(node) {
			literal, ok := name.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
				cases = append(cases, text)
			}
		}
		return true
	})
	return cases
}

// namesAt returns the expressions that name cases: the keys of a table, or the first
// argument of Run.
func namesAt(node ast.Node) []ast.Expr {
	var names []ast.Expr
	switch node := node.(type) {
	case *ast.CompositeLit:
		if _, isTable := node.Type.(*ast.MapType); !isTable {
			return nil
		}
		for _, row := range node.Elts {
			if row, ok := row.(*ast.KeyValueExpr); ok {
				names = append(names, row.Key)
			}
		}
	case *ast.CallExpr:
		if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Run" && len(node.Args) == 2 {
			names = append(names, node.Args[0])
		}
	}
	return names
}
