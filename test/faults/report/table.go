// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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

// Table returns the rows as a table, sorted by the names of their tests.
func Table(rows []Row) string {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Test, b.Test) })
	table := strings.Builder{}
	table.WriteString("| Fault | Times | Promise | What was seen | Test |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s | %d | %s | %s | `%s` |\n",
			cell(row.Fault), row.Times, cell(row.Promise), cell(row.Seen), row.Test)
	}
	return table.String()
}

// cell escapes a text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
