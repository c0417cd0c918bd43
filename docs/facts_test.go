// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers contains the functions that may look into a message, by what they read. All
// others know what they need from a field: a message may be reworded at any time.
var readers = map[string][]string{
	"it is a text of Flux, whose reason does not tell": {
		"internal/flux/targets.fluxSaysUnhealthy", "internal/flux/targets.refusesChart",
	},
	"it is a text of the API server or of etcd, which have no reason for it": {
		"internal/controller/rollout.etcdSaysTooLarge", "internal/health/class/job.lacksRight",
	},
	"it is a text of the CEL library, to be said in plain words": {
		"internal/health/condition.inWords", "internal/health/condition.firstOf",
	},
	"it is a text of the YAML library, which has no number of the line": {"internal/cli/lint.place"},
	"it only keeps the command line from saying the same twice": {
		"internal/cli/show.Measured", "internal/cli/verbs/check.sentence",
	},
	"it is a history entry of a client that says so nowhere else": {"internal/rolloutstatus.markedSuccessful"},
	"it is a history entry of a client that erases the facts": {
		"internal/promotion.groundsOf", "internal/promotion.automaticGroundsOf",
	},
}

// matchers are the functions that look into a text, by their package.
var matchers = map[string][]string{
	"strings": {"HasPrefix", "HasSuffix", "Contains", "ContainsAny", "Index", "LastIndex", "Cut", "CutPrefix", "CutSuffix", "EqualFold"},
	"regexp":  {"MatchString"},
}

// methods are those of a regular expression that look into a text.
var methods = []string{"MatchString", "FindString", "FindStringIndex", "FindStringSubmatch", "FindStringSubmatchIndex", "FindAllString", "FindAllStringSubmatch"}

func TestNoMessageIsReadToDecide(t *testing.T) {
	used, found := map[string]bool{}, map[string][]string{}
	for _, folder := range []string{"api", "internal", "cmd"} {
		for name, files := range packagesIn(t, folder) {
			for _, f := range functionsOf(files) {
				if lines := f.reads(); len(lines) > 0 {
					found[name+"."+f.Name.Name] = lines
				}
			}
		}
	}
	for _, names := range readers {
		for _, name := range names {
			used[name] = true
			if found[name] == nil {
				t.Errorf("%s reads no message any more: remove it from \"readers\" in docs/facts_test.go", name)
			}
		}
	}
	for name, lines := range found {
		if !used[name] {
			t.Errorf("%s looks into a message: %s\nStore what it wants to know as a field, and derive the message from it", name, strings.Join(lines, ", "))
		}
	}
}

// packagesIn returns the files of the product's packages, by the folder.
func packagesIn(t *testing.T, folder string) map[string][]*ast.File {
	t.Helper()
	all := map[string][]*ast.File{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, filepath.Dir(name))
		all[filepath.ToSlash(short)] = append(all[filepath.ToSlash(short)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var positions = token.NewFileSet()

// function is a function with the names in it that stand for a message.
type function struct {
	*ast.FuncDecl
	messages map[string]bool
}

// functionsOf returns the functions of a package. A parameter stands for a message if a
// function of the package passes one.
func functionsOf(files []*ast.File) []*function {
	var all []*function
	byName := map[string][]*function{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
				all = append(all, &function{f, map[string]bool{}})
				byName[f.Name.Name] = append(byName[f.Name.Name], all[len(all)-1])
			}
		}
	}
	for again := true; again; {
		again = false
		for _, f := range all {
			again = f.follow(byName) || again
		}
	}
	return all
}

// follow learns which names stand for a message, from the assignments in the function and
// from what it passes on. It returns whether it has learnt something.
func (f *function) follow(byName map[string][]*function) (learnt bool) {
	note := func(in *function, name string) {
		learnt = learnt || !in.messages[name]
		in.messages[name] = true
	}
	ast.Inspect(f.Body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if name, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) && f.isMessage(value) {
					note(f, name.Name)
				}
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			for _, other := range byName[called.Name] {
				for i, name := range parametersOf(other.FuncDecl) {
					if i < len(n.Args) && other.Recv == nil && f.isMessage(n.Args[i]) {
						note(other, name)
					}
				}
			}
		}
		return true
	})
	return learnt
}

func parametersOf(f *ast.FuncDecl) []string {
	var names []string
	for _, parameter := range f.Type.Params.List {
		for _, name := range parameter.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// reads returns the lines in which the function looks into a message.
func (f *function) reads() []string {
	var lines []string
	ast.Inspect(f.Body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && looksIn(call) && slices.ContainsFunc(call.Args, f.isMessage) {
			at := positions.Position(call.Pos())
			lines = append(lines, fmt.Sprintf("%s:%d", path.Base(filepath.ToSlash(at.Filename)), at.Line))
		}
		return true
	})
	return lines
}

// looksIn reports whether a call looks into a text.
func looksIn(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && slices.Contains(matchers[of.Name], selector.Sel.Name) || slices.Contains(methods, selector.Sel.Name)
}

// isMessage reports whether an expression is a message: by its name, as the text of an
// error, as a part of either, or as a variable for it.
func (f *function) isMessage(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return f.messages[e.Name] || namesMessage(e.Name)
	case *ast.SelectorExpr:
		return namesMessage(e.Sel.Name)
	case *ast.StarExpr:
		return f.isMessage(e.X)
	case *ast.ParenExpr:
		return f.isMessage(e.X)
	case *ast.SliceExpr:
		return f.isMessage(e.X)
	case *ast.CallExpr:
		name := calledName(e)
		return name == "Error" && len(e.Args) == 0 || namesMessage(name) || slices.Contains(sameText, name) && slices.ContainsFunc(e.Args, f.isMessage)
	}
	return false
}

// sameText are functions whose result is still the message that they are given.
var sameText = []string{"Deref", "ToLower", "TrimSpace", "TrimPrefix", "TrimSuffix", "ReplaceAll"}

// namesMessage reports whether a name is that of a message. A field named problem or
// Problem may be a text as well as a struct, and only a text can be looked into.
func namesMessage(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, "message") || lower == "problem"
}
