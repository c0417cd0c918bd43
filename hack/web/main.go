// SPDX-License-Identifier: Apache-2.0

// Web bundles the page of the command line. What it makes is committed, so nobody who
// builds the command line needs Node.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	from, to := flag.String("from", "web", "the folder with the sources"), flag.String("to", "internal/cli/web/assets", "the folder to write")
	flag.Parse()
	if err := bundle(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bundle(from, to string) error {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{from + "/src/app.tsx", from + "/src/app.css"}, Outdir: to, Write: true,
		Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
	})
	if len(result.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	return errors.Join(copied(from+"/src/index.html", to+"/index.html"), licences(from, to))
}

// licences copies the licences of what is in the bundle.
func licences(from, to string) error {
	var all strings.Builder
	for _, name := range []string{"preact", "@preact/signals", "@preact/signals-core"} {
		text, err := os.ReadFile(filepath.Join(from, "node_modules", name, "LICENSE"))
		if err != nil {
			return fmt.Errorf("the licence of %s: %w", name, err)
		}
		fmt.Fprintf(&all, "%s\n\n%s\n", name, text)
	}
	return os.WriteFile(to+"/LICENSES", []byte(all.String()), 0o644)
}

func copied(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
