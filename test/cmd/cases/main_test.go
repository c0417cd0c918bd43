// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package shop

func TestBake(t *testing.T) {
	for name := range map[string]bool{
		"it ends at its deadline": true,
		"it ends well":            true,
		"short":                   true,
	} {
		t.Run(name, nil)
	}
	t.Run("a check is unhealthy", func(t *testing.T) {})
}

func TestGates(t *testing.T) {}

func helper() {}
`

func TestRunListsTestsAndCases(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"shop", "bin", ".git"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "shop_test.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bake, gates := "shop/shop_test.go:3 TestBake\n", "shop/shop_test.go:14 TestGates\n"
	deadline, well, unhealthy := "    it ends at its deadline\n", "    it ends well\n", "    a check is unhealthy\n"
	for name, tt := range map[string]struct {
		words []string
		want  string
	}{
		"everything":                      {nil, bake + deadline + well + unhealthy + gates},
		"a test that is about the words":  {[]string{"bake"}, bake + deadline + well + unhealthy},
		"only the cases about the words":  {[]string{"bake", "ENDS"}, bake + deadline + well},
		"nothing, where no case has them": {[]string{"gates", "ends"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var printed strings.Builder
			if err := run(&printed, root, tt.words); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, printed.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunNamesFilesThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "broken_test.go"), []byte("packag"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(&strings.Builder{}, root, nil); err == nil || !strings.Contains(err.Error(), "broken_test.go") {
		t.Errorf("got %v", err)
	}
}
