// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestCellsLeaveOutAgesAndWidths(t *testing.T) {
	printed := "NAME   READY   AGE    STATUS\nshop           2d3h   1.0.0: for 10m0s\ntabs\t3\t12m\n"
	want := [][]string{{"NAME", "READY", "AGE", "STATUS"}, {"shop", "1.0.0: for 10m0s"}, {"tabs", "3"}}
	if diff := cmp.Diff(want, Cells(printed)); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
