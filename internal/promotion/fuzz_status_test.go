// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// statuses are examples of what other writers may leave in a Rollout: clients of other
// versions, users with an editor, restored backups.
var statuses = []string{
	`{}`,
	`{"observedGeneration":-1}`,
	`{"history":[{"id":1,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T11:00:00Z","bakeStatus":"Succeeded"}],
	  "availableReleases":[{"tag":"1.0.0"},{"tag":"1.1.0","revision":"abc","created":"2026-03-01T00:00:00Z"}]}`,
	`{"history":[{"id":7,"version":{"tag":"1.1.0"},"timestamp":"2026-03-02T11:30:00Z","bakeStatus":"Deploying","bakeStartTime":"2026-03-02T11:31:00Z"},
	  {"id":6,"version":{"tag":"1.0.0"},"timestamp":"2026-03-01T11:30:00Z","bakeStatus":"Cancelled","bakeEndTime":"2026-03-02T11:30:00Z"}],
	  "targets":[{"kind":"Kustomization","name":"apps","namespace":"default","version":"1.1.0","state":"Failed","message":"no"}]}`,
	`{"history":[{"version":{"tag":"1.1.0"},"timestamp":"2026-03-02T11:30:00Z"},{"version":{"tag":"1.0.0"},"timestamp":"2026-03-01T11:30:00Z","bakeStatus":"Pending"}]}`,
	`{"history":[{"id":3,"version":{"tag":"1.1.0"},"timestamp":"2026-03-02T11:30:00Z","bakeStatus":"Failed","bakeStatusMessage":"x","bakeEndTime":"2026-03-02T11:40:00Z",
	  "failedHealthChecks":[{"name":"web","namespace":"default"}],"lastRetryTimestamp":"2026-03-02T11:35:00Z","triggeredBy":{"kind":"User","name":"ann"}}],
	  "availableReleases":[{"tag":"1.1.0"},{"tag":"1.1.1"}],"releaseCandidates":[{"tag":"1.1.1"}],"gatedReleaseCandidates":[],
	  "gates":[{"name":"a","passing":true,"allowedVersions":null},{"name":"b","allowedVersions":[],"bypassGates":true}],
	  "conditions":[{"type":"BakeFailureDisabled","status":"True","reason":"PreviousBakeFailed","message":"","lastTransitionTime":"2026-03-02T11:30:00Z","observedGeneration":4}]}`,
	`{"history":[{"id":9223372036854775806,"version":{"tag":""},"timestamp":null},{"id":-4,"version":{"tag":"no tag"},"timestamp":"0001-01-01T00:00:00Z"},{"id":2,"version":{"tag":"2.0.0"},"timestamp":"9999-12-31T23:59:59Z","bakeStatus":"InProgress"}],
	  "availableReleases":[{"tag":"2.0.0"},{"tag":"2.0.0"},{"tag":""}],"title":"shop"}`,
	`{"history":[{"id":5,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T11:00:00Z","bakeStatus":"InProgress","bakeStartTime":"2026-03-02T11:01:00Z"},
	  {"id":5,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T11:00:00Z","bakeStatus":"Deploying"}]}`,
	`{"history":[{"id":7,"version":{"tag":"1.1.0"},"timestamp":"2026-03-02T11:00:00Z","bakeStatus":"Failed","cause":"HealthCheckFailed","rollbackDue":"2026-03-02T11:40:00Z"},
	  {"id":6,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T10:00:00Z","bakeStatus":"Succeeded"}],"availableReleases":[{"tag":"1.0.0"},{"tag":"1.1.0"},{"tag":"1.2.0"}]}`,
	`{"history":[{"id":8,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T11:41:00Z","bakeStatus":"Deploying","message":"rolled back from 1.1.0 (#7): down",
	  "triggeredBy":{"kind":"System","name":"rollout-controller"},"rollback":{"from":"1.1.0","fromID":7,"toID":6}},
	  {"id":7,"version":{"tag":"1.1.0"},"timestamp":"2026-03-02T11:00:00Z","bakeStatus":"Failed","cause":"DigestMismatch","rollbackDue":"9999-12-31T23:59:59Z"},
	  {"id":6,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T10:00:00Z","bakeStatus":"Succeeded"}],"availableReleases":[{"tag":"1.0.0"},{"tag":"1.1.0"},{"tag":"1.2.0"}]}`,
	`{"history":[{"id":0,"version":{"tag":"1.0.0"},"timestamp":"2026-03-02T11:41:00Z","bakeStatus":"Failed","rollbackDue":"0001-01-01T00:00:00Z","rollback":{}},
	  {"version":{"tag":"1.1.0"},"timestamp":null,"bakeStatus":"Succeeded","rollbackDue":"2026-03-02T11:41:00Z","rollback":{"fromID":-9223372036854775808,"toID":9223372036854775807}}]}`,
}

// FuzzStatusRoundTrip checks that a client that writes a whole status back through
// upstream's types changes no decision, whatever the status contains. A record after that
// must not give an id twice or lose an entry.
func FuzzStatusRoundTrip(f *testing.F) {
	for i, status := range statuses {
		for seed := range byte(8) {
			some := make([]byte, 120)
			for j := range some {
				some[j] = byte(j*j)*seed + byte(j)*5 + byte(i)
			}
			f.Add(some, status)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, status string) {
		in := (&dice{data}).input()
		if !onTheWire([]byte(status), &in.Rollout.Status) {
			return
		}
		foreign := copyInput(in)
		foreign.Rollout = promotion.WithFacts(throughUpstream(t, in.Rollout))
		in.Rollout = promotion.WithFacts(in.Rollout)

		ours, theirs := promotion.Decide(in), promotion.Decide(foreign)
		if waitsForUser(in.Rollout) {
			if theirs.Back != nil {
				t.Error("a failure is answered although another client has erased its mark")
			}
		} else {
			diff(t, ours.Action, theirs.Action)
			diff(t, ours.Release, theirs.Release)
			diff(t, ours.Candidates, theirs.Candidates)
			diff(t, outcomeOf(ours), outcomeOf(theirs))
		}
		history, err := promotion.Record(foreign, theirs)
		if err != nil {
			t.Fatalf("%s cannot be recorded: %v", theirs.Action, err)
		}
		checkIDs(t, foreign, history)
		checkNothingLost(t, foreign, history)
	})
}

// waitsForUser reports whether the current entry may have a mark that clients of other
// versions erase: that a failure is to be answered. Then it waits for a user.
func waitsForUser(rollout *v1alpha1.Rollout) bool {
	return rollout.Spec.RollsBack() && rollout.Current().State() == v1alpha1.BakeFailed
}

// onTheWire decodes a status. It reports whether the status is valid on the wire: it must
// be read back as it was written.
func onTheWire(status []byte, into *v1alpha1.RolloutStatus) bool {
	var first v1alpha1.RolloutStatus
	if json.Unmarshal(status, &first) != nil {
		return false
	}
	again, err := json.Marshal(first)
	if err != nil {
		return false
	}
	*into = v1alpha1.RolloutStatus{}
	return json.Unmarshal(again, into) == nil
}

func throughUpstream(t *testing.T, rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	t.Helper()
	wire, err := json.Marshal(rollout)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := fixture.ThroughUpstream(wire, nil)
	if err != nil {
		t.Fatal(err)
	}
	back := &v1alpha1.Rollout{}
	if err := json.Unmarshal(sent, back); err != nil {
		t.Fatal(err)
	}
	after := rollout.DeepCopy() // a write of the status leaves everything else unchanged
	after.Status = back.Status
	return after
}

// checkIDs checks that a new id is higher than all ids before.
func checkIDs(t *testing.T, in promotion.Input, history []v1alpha1.DeploymentHistoryEntry) {
	t.Helper()
	if d := promotion.Decide(in); !d.Action.Promotes() {
		return
	}
	for _, entry := range in.Rollout.Status.History {
		if entry.ID != nil && *entry.ID < math.MaxInt64 && *entry.ID >= *history[0].ID {
			t.Errorf("id %d is given after %d", *history[0].ID, *entry.ID)
		}
	}
}

// checkNothingLost checks that entries are removed only by the limit, and that none
// changes its position.
func checkNothingLost(t *testing.T, in promotion.Input, history []v1alpha1.DeploymentHistoryEntry) {
	t.Helper()
	before := in.Rollout.Status.History
	want := len(before)
	if len(history) > 0 && promotion.Decide(in).Action.Promotes() {
		history = history[1:]
		want = min(want, in.Rollout.Spec.GetVersionHistoryLimit()-1)
	}
	if len(history) < want {
		t.Errorf("%d of %d entries are left", len(history), len(before))
	}
	for _, entry := range history {
		i := slices.IndexFunc(before, func(e v1alpha1.DeploymentHistoryEntry) bool {
			return reflect.DeepEqual(e.Version, entry.Version) && e.Timestamp.Equal(&entry.Timestamp)
		})
		if i < 0 {
			t.Fatalf("the entry of %q was not there before, or has changed its place", entry.Version.Tag)
		}
		before = before[i+1:]
	}
}
