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

// section is a part of the report that can be measured without the rest.
type section struct {
	text    *template.Template
	figures []figure
}

var sections = map[string]section{
	commandLineOnly:  {template.Must(template.New("").Parse(commandLineText)), commandLineFigures},
	environmentsOnly: {template.Must(template.New("").Parse(environmentsText)), environmentFigures},
	measurementsOnly: {template.Must(template.New("").Parse(measurementsText)), measurementFigures},
}

// of returns a report that has only the fleets with which some of the figures were
// measured.
func (r report) of(figures []figure) report {
	r.results = bySize(slices.DeleteFunc(slices.Clone(r.results), func(r result) bool {
		return !slices.ContainsFunc(figures, func(f figure) bool { _, ok := r.Figures[f.key]; return ok })
	}))
	return r
}

// section returns a section of the report; empty if that was not measured.
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
