// SPDX-License-Identifier: Apache-2.0

// Package messages has the catalogue of what the controller writes into a status, an event
// or its log: what each message means, and what to do. The page of the messages is generated
// from it, and users look a message up in it.
//
//	messages.go  the catalogue
//	find.go      the entries that a message is most like
//
// A test holds the catalogue to the messages in the code: none is missing, and none is gone.
package messages

import (
	"embed"
	"io/fs"

	"sigs.k8s.io/yaml"
)

// Section is a group of messages with a title.
type Section struct {
	// Title is its heading.
	Title string `json:"title"`
	// Parts are in their order on the page.
	Parts []Part `json:"parts"`
}

// Part is a text in Markdown, or a table of messages.
type Part struct {
	Text string `json:"text,omitempty"`
	// Columns are the headings of the table; empty means "What you see" and "What it means,
	// and what to do".
	Columns []string `json:"columns,omitempty"`
	Entries []Entry  `json:"entries,omitempty"`
}

// Entry is about one message, or a few that mean the same. Its texts are in Markdown, and
// links are relative to the page. Names, versions and times are examples.
type Entry struct {
	// Seen is what a user sees: reasons and messages between backticks, or a symptom.
	Seen string `json:"seen"`
	// Means says what it means, and what to do; empty if nothing is to be done.
	Means string `json:"means,omitempty"`
}

//go:embed catalogue/*.yaml
var catalogue embed.FS

// Chapters returns the sections of each file. The first section of a chapter names it.
func Chapters() [][]Section {
	names, err := fs.Glob(catalogue, "catalogue/*.yaml")
	if err != nil {
		panic(err)
	}
	var all [][]Section
	for _, name := range names {
		all = append(all, read(name))
	}
	return all
}

// read panics on what only a mistake in this project can cause.
func read(name string) []Section {
	content, err := catalogue.ReadFile(name)
	if err != nil {
		panic(err)
	}
	var file struct {
		Sections []Section `json:"sections"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		panic(name + ": " + err.Error())
	}
	return file.Sections
}
