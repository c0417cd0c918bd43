// SPDX-License-Identifier: Apache-2.0

// Web bundles the page from web/ into internal/web/assets, which is committed, so that
// nobody who builds the command line needs Node.
//
// With -check, it only compares the sources with those of the committed assets.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	sources = "web"
	assets  = "internal/web/assets"
	// stamp has the hash of the sources that the assets were made from.
	stamp = assets + "/SOURCES"
)

func main() {
	check := flag.Bool("check", false, "fail if the assets are not those of the sources")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool) error {
	hash, err := hashOf(sources)
	if err != nil {
		return err
	}
	if check {
		made, err := os.ReadFile(stamp)
		if err == nil && strings.TrimSpace(string(made)) != hash {
			err = errors.New(assets + " is not made of what is in " + sources + ": run make web")
		}
		return err
	}
	if err := bundle(); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(hash+"\n"), 0o644)
}

// hashOf returns the hash of the names and contents of all sources.
func hashOf(root string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(path), len(content), content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func bundle() error {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{sources + "/src/app.tsx", sources + "/src/app.css"}, Outdir: assets, Write: true,
		Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		Supported: map[string]bool{"nesting": false},
	})
	if len(result.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	page, err := os.ReadFile(sources + "/src/index.html")
	if err != nil {
		return err
	}
	if err := os.WriteFile(assets+"/index.html", page, 0o644); err != nil {
		return err
	}
	return licences()
}

// licences copies the licences of what is in the bundle.
func licences() error {
	var all strings.Builder
	for _, name := range []string{"preact", "@preact/signals", "@preact/signals-core"} {
		text, err := os.ReadFile(filepath.Join(sources, "node_modules", name, "LICENSE"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%s\n\n%s\n", name, text)
	}
	return os.WriteFile(assets+"/LICENSES", []byte(all.String()), 0o644)
}
