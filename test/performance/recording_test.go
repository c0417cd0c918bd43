// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFloorWritesForTheNextReleaseWhatTheControllerWroteForTheLast(t *testing.T) {
	status := func(newest *fixture.EntryBuilder, message string) v1alpha1.RolloutStatus {
		s := fixture.MakeRollout("shop").Ledger("1.0.1000", "1.0.1001").History(newest, fixture.MakeEntry("1.0.1000").Succeeded()).Obj().Status
		s.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Message: message}}
		return s
	}
	recorded := recording{
		release: release{tag: "1.0.1001", digest: "sha256:aa"},
		statuses: []v1alpha1.RolloutStatus{
			status(fixture.MakeEntry("1.0.1001").Deploying(), "1.0.1001 is deploying"),
			status(fixture.MakeEntry("1.0.1001").Succeeded(), "1.0.1001 succeeded"),
		},
		events: []corev1.Event{{Message: "1.0.1001 of sha256:aa", ObjectMeta: metav1.ObjectMeta{Name: "shop.17", UID: "u", ResourceVersion: "9"}}},
	}
	patches, events, err := recorded.next(release{tag: "1.0.1002", digest: "sha256:bb"})
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		ID         int64
		BakeStatus string
		Version    struct{ Tag string }
	}
	type reported struct {
		Status struct {
			History           []entry
			AvailableReleases []struct{ Tag string }
			Conditions        []struct{ Message string }
		}
	}
	lines := func(patch []byte) (all []string) {
		var p reported
		if err := json.Unmarshal(patch, &p); err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Status.History {
			all = append(all, string(rune('0'+e.ID))+" "+e.Version.Tag+" "+e.BakeStatus)
		}
		for _, r := range p.Status.AvailableReleases {
			all = append(all, r.Tag)
		}
		return append(all, p.Status.Conditions[0].Message)
	}
	want := [][]string{
		{
			"3 1.0.1002 Deploying", "2 1.0.1001 Succeeded", "1 1.0.1000 Succeeded",
			"1.0.1000", "1.0.1001", "1.0.1002", "1.0.1002 is deploying",
		},
		{"3 1.0.1002 Succeeded", "2 1.0.1001 Succeeded", "1 1.0.1000 Succeeded", "1.0.1002 succeeded"}, // only what has changed
	}
	if diff := cmp.Diff(want, [][]string{lines(patches[0]), lines(patches[1])}); diff != "" {
		t.Errorf("the statuses (-want +got):\n%s", diff)
	}
	var event corev1.Event
	if err := json.Unmarshal(events[0], &event); err != nil {
		t.Fatal(err)
	}
	if event.Message != "1.0.1002 of sha256:bb" || event.UID != "" || event.ResourceVersion != "" {
		t.Errorf("the event is %+v", event)
	}
}
