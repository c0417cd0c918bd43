// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// TableOf returns what kubectl get shows of the objects in a namespace. The API server
// makes the table from the print columns of the CustomResourceDefinition.
func (c *ControlPlane) TableOf(ctx context.Context, namespace string, kind schema.GroupVersionResource) (*metav1.Table, error) {
	clients, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s", kind.GroupVersion(), namespace, kind.Resource)
	answer, err := clients.RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the table of %s: %w", kind.Resource, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(answer, table); err != nil {
		return nil, fmt.Errorf("read the table of %s: %w", kind.Resource, err)
	}
	return table, nil
}

// columnGap is what kubectl prints between two columns, at least.
const columnGap = "   "

// FormatTable lays out a table as kubectl does, without the columns of -o wide.
func FormatTable(table *metav1.Table) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 6, 4, len(columnGap), ' ', 0)
	var names []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			names = append(names, strings.ToUpper(column.Name))
		}
	}
	fmt.Fprintln(columns, strings.Join(names, "\t"))
	for i := range table.Rows {
		fmt.Fprintln(columns, strings.Join(cells(table, i), "\t"))
	}
	_ = columns.Flush()
	return text.String()
}

func cells(table *metav1.Table, row int) []string {
	var shown []string
	for i, cell := range table.Rows[row].Cells {
		switch {
		case table.ColumnDefinitions[i].Priority != 0:
		case cell == nil:
			shown = append(shown, "")
		default:
			shown = append(shown, fmt.Sprint(cell))
		}
	}
	return shown
}

// age matches the cells of columns that count the time since something.
var age = regexp.MustCompile(`^(\d+[smhdy])+$`)

// Cells returns the cells of a table as kubectl prints it, line by line, without empty
// cells and without ages, which differ from run to run.
func Cells(printed string) [][]string {
	var rows [][]string
	for line := range strings.Lines(strings.ReplaceAll(printed, "\t", columnGap)) {
		var row []string
		for cell := range strings.SplitSeq(line, columnGap) {
			if cell = strings.TrimSpace(cell); cell != "" && !age.MatchString(cell) {
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
