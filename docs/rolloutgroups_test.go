// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestEveryNameOfRolloutGroupsIsExplained(t *testing.T) {
	path := filepath.Join(root, "api", "rolloutgroup", "rolloutgroup.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	page, names := documents(t)["docs/spec/rolloutgroups.md"], 0
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if names++; err != nil || name != "true" && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/spec/rolloutgroups.md does not mention `%s`", name)
		}
		return true
	})
	if names < 30 {
		t.Errorf("found only %d names", names)
	}
}
