// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The table is between these lines of the page.
const (
	begin = "<!-- the table: made by make reliability -->\n"
	end   = "<!-- the end of the table -->\n"
)

const header = "| Fault | Times | Promise | What was seen | Test |\n| --- | --- | --- | --- | --- |\n"

// Read returns the rows that are stored in a folder.
func Read(folder string) ([]Row, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("find the report: %w", err)
	}
	var rows []Row
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the report: %w", err)
		}
		var row Row
		if err := json.Unmarshal(content, &row); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no report: run the tests of faults with %s=%s", folder, FolderVariable, folder)
	}
	return rows, nil
}

// Fill replaces the table of a page with a text about the run, and the rows sorted by the
// names of their tests.
func Fill(page, run string, rows []Row) (string, error) {
	before, after, err := around(page)
	if err != nil {
		return "", err
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Test, b.Test) })
	var table strings.Builder
	fmt.Fprintf(&table, "%s\n%s\n\n%s", begin, run, header)
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s | %d | %s | %s | `%s` |\n",
			cell(row.Fault), row.Times, cell(row.Promise), cell(row.Seen), row.Test)
	}
	return before + table.String() + "\n" + end + after, nil
}

// cell escapes a text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

func around(page string) (before, after string, err error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, foundToo := strings.Cut(rest, end)
	if !found || !foundToo {
		return "", "", errors.New("the page has no place for the table")
	}
	return before, after, nil
}

// line matches a row of the table.
var line = regexp.MustCompile("(?m)^\\| (.+) \\| ([0-9]+) \\| (.+) \\| (.+) \\| `([^`]+)` \\|$")

// Rows returns the rows of a page.
func Rows(page string) []Row {
	var rows []Row
	for _, match := range line.FindAllStringSubmatch(page, -1) {
		times, _ := strconv.Atoi(match[2])
		for i := range match {
			match[i] = strings.ReplaceAll(match[i], `\|`, "|")
		}
		rows = append(rows, Row{Test: match[5], Fault: match[1], Times: times, Promise: match[3], Seen: match[4]})
	}
	return rows
}

// Keep adds the rows of a page whose tests have no newer row.
func Keep(rows []Row, page string) []Row {
	for _, old := range Rows(page) {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Test == old.Test }) {
			rows = append(rows, old)
		}
	}
	return rows
}
