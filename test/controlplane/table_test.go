// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTableIsWhatKubectlShows(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Wide", Priority: 1}, {Name: "Ready"}, {Name: "Age"}},
		Rows:              []metav1.TableRow{{Cells: []any{"shop", "much", nil, "3s"}}},
	}
	if got, want := FormatTable(table), "NAME   READY   AGE\nshop           3s\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
