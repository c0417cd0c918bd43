// SPDX-License-Identifier: Apache-2.0

// Package testfiles reads the tests of the repository as source code.
package testfiles

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// Each parses every test file below a folder, except in bin and in hidden folders, and
// calls visit with its path. It returns the first error.
func Each(root string, visit func(path string, positions *token.FileSet, file *ast.File) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return visit(path, positions, file)
	})
}

// IsTest reports whether a function is a test or a fuzz test.
func IsTest(function *ast.FuncDecl) bool {
	name := function.Name.Name
	return function.Recv == nil && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}
