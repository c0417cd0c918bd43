// SPDX-License-Identifier: Apache-2.0

// Package lint finds mistakes in manifests: fields that the API server would reject, and
// what no schema can know: relations between objects, and time.
//
// It is pure and works offline. The caller reads the files, or the objects of a cluster.
//
//	lint.go         what goes in and what comes out
//	rules.go        the table of rules
//	charts.go       the templates of charts, which are left out
//	read.go         from a file to documents
//	value.go        from a document to values, within limits
//	variables.go    the variables that Flux substitutes
//	object.go       the fields of one object, and their lines
//	set.go          all objects, and who is found by a reference
//	assignments.go  the annotations that assign fields to Rollouts
//	overlay.go      what a kustomization.yaml says about the files next to it
//	applied.go      which files are applied together, and which are for other clusters
//	report.go       how a rule reports
//	github.go       findings as annotations of a pull request
//
// Each other file has the rules of one subject.
package lint

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// File is a file with manifests. Its name is shown in findings. References between a
// Kustomization and the files below its path are found by the name, with slashes.
type File struct {
	Name    string
	Content []byte
}

// Options change what is found. The zero value is usable, except that Now must be set.
type Options struct {
	// Now is the time at which schedules are evaluated.
	Now time.Time
	// External names objects that exist, but are not among those that are linted.
	External []External
	// Vars contains values of variables that Flux substitutes.
	Vars map[string]string
	// Unlisted are kinds whose objects are not given although there may be some. No rule
	// says that one does not exist.
	Unlisted []schema.GroupKind
	// Disable contains IDs of rules that report nothing.
	Disable []string
}

// Severity is how bad a finding is.
type Severity string

const (
	// SeverityError means that something does not work.
	SeverityError Severity = "error"
	// SeverityWarning means that something may not work as intended.
	SeverityWarning Severity = "warning"
)

// Finding is one mistake.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File and Line are where the field is. Without a file, the object is from a cluster.
	// A line of zero is not known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Object is the kind and the name, as in "Rollout shop/shop". It is empty if the
	// finding is about a whole file.
	Object string `json:"object,omitempty"`
	// Message says what is wrong, and Remedy what to do.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// NotChecked is something that a rule could not check.
type NotChecked struct {
	// Rule is empty if no rule could check it.
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Object string `json:"object,omitempty"`
	Reason string `json:"reason"`
}

// Result is what was found.
type Result struct {
	// Findings are sorted by file, line, rule, object and message.
	Findings []Finding `json:"findings"`
	// NotChecked is sorted in the same way.
	NotChecked []NotChecked `json:"notChecked,omitempty"`
	// Files and Objects count what was read. Objects of kinds that no rule is about
	// count as well.
	Files   int `json:"files"`
	Objects int `json:"objects"`
}

// Count returns how many findings have the severity.
func (r Result) Count(severity Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == severity {
			n++
		}
	}
	return n
}

// Files lints manifests. What cannot be read is a finding, and the rest is linted.
func Files(files []File, o Options) Result {
	s := newSet(o)
	read := reader{set: s, vars: o.Vars}
	for _, file := range s.withoutTemplates(files) {
		read.file(file)
	}
	s.applyOverlays()
	result := check(s, o, read.problems)
	result.Files = len(files)
	return result
}

// Cluster lints the objects of a cluster, each as decoded from its JSON. It assumes that
// all objects are given of each kind that a rule is about, unless it is unlisted. Rules
// about what is written in
// Git report nothing.
func Cluster(objects []map[string]any, o Options) Result {
	s := newSet(o)
	s.live = true
	for _, content := range objects {
		s.add(&object{content: content})
	}
	return check(s, o, nil)
}

func check(s *set, o Options, problems []Finding) Result {
	s.index()
	result := Result{Findings: []Finding{}, Objects: len(s.all)}
	if !slices.Contains(o.Disable, unreadable) {
		result.Findings = append(result.Findings, problems...)
	}
	for i := range rules {
		if rules[i].check == nil || slices.Contains(o.Disable, rules[i].ID) || s.live && rules[i].filesOnly || guesses(rules[i].ID, o.Unlisted) {
			continue
		}
		rules[i].check(&report{set: s, rule: &rules[i].Rule, result: &result})
	}
	result.NotChecked = append(result.NotChecked, s.skipped...)
	sortFindings(result.Findings)
	sortNotChecked(result.NotChecked)
	result.NotChecked = slices.Compact(result.NotChecked)
	return result
}

func sortFindings(all []Finding) {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
}

func sortNotChecked(all []NotChecked) {
	slices.SortFunc(all, func(a, b NotChecked) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
}
