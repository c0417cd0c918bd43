// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tableOf returns the output of kubectl get. The API server makes the table from the
// print columns of the CustomResourceDefinition.
func tableOf(ctx context.Context, config *rest.Config, namespace string, kind schema.GroupVersionResource) (string, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s", kind.GroupVersion(), namespace, kind.Resource)
	answer, err := clients.RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("get the table of %s: %w", kind.Resource, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(answer, &table); err != nil {
		return "", fmt.Errorf("read the table of %s: %w", kind.Resource, err)
	}
	return format(&table), nil
}

// format lays out a table as kubectl does, without the columns of -o wide.
func format(table *metav1.Table) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 6, 4, 3, ' ', 0)
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
