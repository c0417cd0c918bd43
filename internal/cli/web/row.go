// SPDX-License-Identifier: Apache-2.0

package web

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
)

// Row is a Rollout in the list: what its status says.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Version is the tag of what runs, and Since is when it was promoted.
	Version string       `json:"version,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
	// State is how the Rollout is doing, and why.
	State explain.State `json:"state"`
	// Next is the tag of the newest candidate.
	Next string `json:"next,omitempty"`
	// Until is when time alone has ended all that holds it; absent if something else must
	// happen.
	Until *metav1.Time `json:"until,omitempty"`
	// RolledBack is true if what runs is the result of a rollback: somebody must look.
	RolledBack bool   `json:"rolledBack,omitempty"`
	Pinned     string `json:"pinned,omitempty"`
	// Request is waits or refused; absent if nobody has asked for something that had no
	// effect so far.
	Request string `json:"request,omitempty"`
}

// RowOf returns the row of a Rollout.
func RowOf(r *v1alpha1.Rollout) Row {
	row := Row{Namespace: r.Namespace, Name: r.Name, State: explain.StateOf(r), Pinned: r.Pinned()}
	row.RolledBack = apimeta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.RolledBackCondition)
	if current := r.Current(); current != nil {
		row.Version, row.Since = current.Version.Tag, &current.Timestamp
	}
	for _, asked := range explain.PendingOf(r, func(string) *metav1.Time { return nil }) {
		if row.Request = "waits"; asked.Refused != "" {
			row.Request = "refused"
		}
	}
	if candidates := r.Status.ReleaseCandidates; len(candidates) > 0 {
		row.Next, row.Until = candidates[0].Tag, lastOf(candidates[0].Holds)
	}
	return row
}

// lastOf returns when all holds have ended; nil if time alone does not end each of them.
func lastOf(holds []v1alpha1.CandidateHold) *metav1.Time {
	var last time.Time
	for _, hold := range holds {
		if hold.Until == nil {
			return nil
		}
		if hold.Until.After(last) {
			last = hold.Until.Time
		}
	}
	if last.IsZero() {
		return nil
	}
	return &metav1.Time{Time: last}
}
