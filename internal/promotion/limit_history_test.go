// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// historyBound is the size limit of the history, in bytes of JSON.
const historyBound = 48 << 10

// fullEntry returns an entry in which every field is set, so that no field that is missing
// makes up for one whose size is not counted.
func fullEntry(text string) v1alpha1.DeploymentHistoryEntry {
	e := entry("1.0.0").ID(math.MinInt64).Succeeded().Because(text).BakeStart(noon).BakeEnd(noon).Retried(noon).RetryStart(noon).
		Due(v1alpha1.CauseHealthCheckFailed, noon).Back(text, math.MinInt64, math.MinInt64).Message(text).Obj()
	e.Version = release("1.0.0").Digest(text).Revision(text).Created(noon).Obj()
	e.Version.Version = &text
	e.FailedHealthChecks = []v1alpha1.FailedHealthCheck{{Name: "db", Namespace: "shop", Message: &text}}
	state := v1alpha1.BakeInProgress
	e.BakeStatus = &state
	return e
}

func TestHistoryStaysWithinItsLimit(t *testing.T) {
	forge := func(change func(*v1alpha1.DeploymentHistoryEntry)) func(string) v1alpha1.DeploymentHistoryEntry {
		return func(text string) v1alpha1.DeploymentHistoryEntry {
			e := fullEntry(text)
			change(&e)
			return e
		}
	}
	for name, made := range map[string]func(text string) v1alpha1.DeploymentHistoryEntry{
		"every field is set":     fullEntry,
		"a mark without a cause": forge(func(e *v1alpha1.DeploymentHistoryEntry) { e.Cause = "" }),
		"a cause without a mark": forge(func(e *v1alpha1.DeploymentHistoryEntry) { e.RollbackDue = nil }),
		"a forged cause":         forge(func(e *v1alpha1.DeploymentHistoryEntry) { e.Cause = v1alpha1.FailureCause(strings.Repeat("<", 900)) }),
		"a forged tag":           forge(func(e *v1alpha1.DeploymentHistoryEntry) { e.Rollback.From = strings.Repeat("\"", 2000) }),
		"no rollback":            forge(func(e *v1alpha1.DeploymentHistoryEntry) { e.Rollback = nil }),
	} {
		for _, text := range []string{"", "plain", strings.Repeat("<é\x01", 40)} {
			t.Run(name+", with "+text, func(t *testing.T) {
				r := rollout().HistoryLimit(500).RollsBack().Obj()
				for i := range 300 {
					e := made(text)
					e.Timestamp.Time = noon.Add(-time.Duration(i) * time.Hour)
					r.Status.History = append(r.Status.History, e)
				}
				in := given(rollout()).in()
				in.Rollout = r
				checkHistoryLimit(t, in)
			})
		}
	}
}

// checkHistoryLimit checks that what is stored fits, that little room is left over, and
// that the history that was read stays as it was.
func checkHistoryLimit(t *testing.T, in promotion.Input) {
	t.Helper()
	before, status := in.Rollout.DeepCopy(), in.Rollout.Status.DeepCopy()
	promotion.ResolveMetadata(in, status)
	wire, err := json.Marshal(status.History)
	if err != nil {
		t.Fatal(err)
	}
	if len(wire) > historyBound || len(status.History) == 0 {
		t.Errorf("%d entries take %d bytes", len(status.History), len(wire))
	}
	shared := in.Rollout.Status
	promotion.ResolveMetadata(in, &shared)
	diff(t, before, in.Rollout)
}

// A rollback that is cut still shows what it is.
func TestRollbackThatIsCutStaysOne(t *testing.T) {
	var all []*fixture.EntryBuilder
	for range 200 {
		all = append(all, entry("1.0.0").Succeeded().Back("1.1.0", 7, 5).Message("rolled back from 1.1.0 (#7): "+strings.Repeat("x", 1000)))
	}
	in := given(rollout().HistoryLimit(500).RollsBack().History(all...)).in()
	status := in.Rollout.Status.DeepCopy()
	promotion.ResolveMetadata(in, status)
	for i := range status.History {
		e := &status.History[i]
		diff(t, &v1alpha1.RollbackRecord{From: "1.1.0", FromID: 7, ToID: 5}, e.Rollback)
		diff(t, v1alpha1.GroundsRollback, e.Grounds)
	}
}
