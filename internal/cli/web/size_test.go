// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
)

// mostBytes is what the first load of ten thousand Rollouts may take, compressed.
const mostBytes = 250 << 10

func TestTenThousandRowsAreSmall(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	b := NewBoard()
	for i := range 10_000 {
		row := Row{Namespace: fmt.Sprintf("team-%02d", i%100), Name: fmt.Sprintf("service-%04d", i), Version: fmt.Sprintf("1.%d.%d", i%50, i%7),
			Since: &metav1.Time{Time: noon.Add(-time.Duration(i*7919%1e6) * time.Second)}, State: explain.State{Kind: explain.StateUpToDate, Cause: "up to date"}}
		if i%20 == 0 {
			row.Next, row.State = fmt.Sprintf("1.%d.0", 50+i%9), explain.State{Kind: explain.StateHeld, Cause: fmt.Sprintf("not passing: RolloutGate qa-%d", i%30)}
		}
		b.Put(row)
	}
	rows, reading, revision := b.All(Everything())
	var out bytes.Buffer
	to := gzip.NewWriter(&out)
	if err := json.NewEncoder(to).Encode(fleet{revision, noon, reading, rows}); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil || out.Len() > mostBytes {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	t.Logf("%d bytes", out.Len())
}
