// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// unread is an importer that reads no package: what the files use of each other is enough.
type unread struct{}

func (unread) Import(string) (*types.Package, error) { return nil, errors.New("unread") }

// A reader of a file can read those that it uses, without coming back to it.
func TestFilesAreInNoCircle(t *testing.T) {
	uses := usesOfFiles(t)
	var visit func(path []string)
	visited := map[string]bool{}
	visit = func(path []string) {
		file := path[len(path)-1]
		for i, before := range path[:len(path)-1] {
			if before == file {
				t.Fatalf("files use each other: %s", strings.Join(path[i:], " → "))
			}
		}
		for other := range uses[file] {
			if !visited[other] {
				visit(append(path, other))
			}
		}
		visited[file] = true
	}
	for file := range uses {
		visit([]string{file})
	}
}

// usesOfFiles returns which files of the package each of them uses.
func usesOfFiles(t *testing.T) map[string]map[string]bool {
	t.Helper()
	paths, _ := filepath.Glob("*.go")
	fset, files := token.NewFileSet(), []*ast.File(nil)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, _ := (&types.Config{Importer: unread{}, Error: func(error) {}}).Check("promotion", fset, files, info)
	uses := map[string]map[string]bool{}
	for at, used := range info.Uses {
		_, isFunc := used.(*types.Func)
		if used.Pkg() != pkg || used.Parent() != pkg.Scope() && !isFunc {
			continue
		}
		from, to := fset.File(at.Pos()).Name(), fset.File(used.Pos()).Name()
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		if to != from {
			uses[from][to] = true
		}
	}
	if len(uses) < 10 {
		t.Fatalf("uses of %d files were found", len(uses))
	}
	return uses
}
