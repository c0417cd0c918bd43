// SPDX-License-Identifier: Apache-2.0

// Command cases lists all tests with their cases, as they are in the source. Arguments
// select the tests: those whose package, name or case contains all of these words, in
// upper or lower case.
//
//	go run ./test/cmd/cases bake deadline
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Stdout, ".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, words []string) error {
	tests, err := read(root)
	if err != nil {
		return err
	}
	for _, test := range tests {
		if cases, ok := test.about(words); ok {
			_, _ = fmt.Fprintf(out, "%s:%d %s\n", test.file, test.line, test.name)
			for _, name := range cases {
				_, _ = fmt.Fprintf(out, "    %s\n", name)
			}
		}
	}
	return nil
}

// about returns the cases of a test that contain all words, or all of its cases if its
// file and name contain the words already. It reports whether there is anything about
// them.
func (t test) about(words []string) ([]string, bool) {
	if contains(t.file+" "+t.name, words) {
		return t.cases, true
	}
	var selected []string
	for _, name := range t.cases {
		if contains(t.file+" "+t.name+" "+name, words) {
			selected = append(selected, name)
		}
	}
	return selected, len(selected) > 0
}

func contains(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, word := range words {
		if !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}
