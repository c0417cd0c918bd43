// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
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
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		found, err := readFile(root, path)
		tests = append(tests, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the tests: %w", err)
	}
	return tests, nil
}

func readFile(root, path string) ([]test, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	var tests []test
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && (strings.HasPrefix(function.Name.Name, "Test") || strings.HasPrefix(function.Name.Name, "Fuzz")) {
			tests = append(tests, test{
				file: filepath.ToSlash(name), line: files.Position(function.Pos()).Line,
				name: function.Name.Name, cases: casesOf(function),
			})
		}
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
