// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"slices"
	"strings"
	"text/template"
)

//go:embed commandline.md.tmpl
var commandLineText string

//go:embed environments.md.tmpl
var environmentsText string

//go:embed measurements.md.tmpl
var measurementsText string

// section is a part of the page that can be measured without the rest.
type section struct {
	text    *template.Template
	figures []figure
	fleets  []size // of the page, the largest last
}

var sections = map[string]section{
	commandLineOnly:  {template.Must(template.New("").Parse(commandLineText)), commandLineFigures, []size{tenThousandSpread}},
	environmentsOnly: {template.Must(template.New("").Parse(environmentsText)), environmentFigures, []size{smallest, thousandSpread, tenThousandSpread}},
	measurementsOnly: {template.Must(template.New("").Parse(measurementsText)), measurementFigures, []size{smallest, thousandSpread}},
}

// of returns a report that has only the fleets with which some of the figures were
// measured.
func (r report) of(figures []figure) report {
	r.results = bySize(slices.DeleteFunc(slices.Clone(r.results), func(r result) bool {
		return !slices.ContainsFunc(figures, func(f figure) bool { _, ok := r.Figures[f.key]; return ok })
	}))
	return r
}

// section returns a section of the page; empty if that was not measured. It says when it
// was measured and of which commit, because it can be measured without the rest of the
// page.
func (r report) section(s section) (string, error) {
	if r = r.of(s.figures); len(r.results) == 0 {
		return "", nil
	}
	var text strings.Builder
	err := s.text.Execute(&text, map[string]any{
		"Machine": r.machine, "EnvironmentsLimit": environmentsLimit, "Table": markdown(r.table(s.figures)), "Figures": r.explained(s.figures),
	})
	return text.String(), err
}

// following is the heading of what follows the sections.
const following = "\n## How to repeat it\n"

// withSection returns a page with another text of a section, and everything else as it is.
func withSection(page, text string) string {
	heading, _, _ := strings.Cut(text, "\n")
	end := strings.Index(page, following)
	before, section, found := strings.Cut(page, heading+"\n")
	if found {
		end = len(page) - len(section) + strings.Index(section, "\n## ")
	} else {
		before = page[:end]
	}
	return strings.TrimRight(before, "\n") + "\n\n" + text + page[end:]
}
