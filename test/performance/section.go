// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"slices"
	"strings"
	"text/template"
)

//go:embed commandline.md.tmpl
var sectionText string

var section = template.Must(template.New("section").Parse(sectionText))

// ofCommandLine returns a report that has only the fleets with which the command line was
// measured.
func (r report) ofCommandLine() report {
	r.results = slices.DeleteFunc(slices.Clone(r.results), func(r result) bool {
		return !slices.ContainsFunc(commandLineFigures, func(f figure) bool { _, ok := r.Figures[f.key]; return ok })
	})
	return r
}

// commandLine returns the section of the page about the command line; empty if that was
// not measured. It says when it was measured and of which commit, because it can be
// measured without the rest of the page.
func (r report) commandLine() (string, error) {
	if r = r.ofCommandLine(); len(r.results) == 0 {
		return "", nil
	}
	var text strings.Builder
	err := section.Execute(&text, map[string]any{
		"Machine": r.machine, "Table": markdown(r.table(commandLineFigures)), "Figures": r.explained(commandLineFigures),
	})
	return text.String(), err
}

// following is the heading of the section after the one about the command line.
const following = "\n## How to repeat it\n"

// withSection returns a page with another section about the command line, and everything
// else as it is.
func withSection(page, text string) string {
	heading, _, _ := strings.Cut(text, "\n")
	before, after, _ := strings.Cut(page, following)
	before, _, _ = strings.Cut(before, heading+"\n")
	return strings.TrimRight(before, "\n") + "\n\n" + text + following + after
}
