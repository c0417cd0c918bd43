// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// recording contains each status and each event that the controller wrote for the first
// Rollout of the fleet when it got a release. All Rollouts are alike. Therefore it shows
// what the controller writes for any of them.
type recording struct {
	release  release
	statuses []v1alpha1.RolloutStatus
	events   []corev1.Event
}

// record returns the statuses and the events of a finished wave.
func (b *bench) record(ctx context.Context, w *wave) (recording, error) {
	r := recording{release: w.release}
	for _, status := range b.observer.sampled() {
		if len(status.History) > 0 && status.History[0].Version.Tag == w.release.tag {
			r.statuses = append(r.statuses, status)
		}
	}
	all := &corev1.EventList{}
	if err := b.plane.Client().List(ctx, all, client.InNamespace(b.fleet.namespace(0))); err != nil {
		return r, fmt.Errorf("read the events of a promotion: %w", err)
	}
	all.Items = slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return e.InvolvedObject.Name != b.fleet.name(0) })
	slices.SortFunc(all.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) }) // the names end with the time
	r.events = all.Items[max(0, len(all.Items)-len(r.statuses)):]
	if len(r.statuses) == 0 || len(r.events) != len(r.statuses) {
		return r, fmt.Errorf("saw %d statuses and %d events of a promotion, want as many events as statuses", len(r.statuses), len(r.events))
	}
	return r, nil
}

// next returns what the controller would write for the next release: a merge patch for
// each status, and each event.
func (r recording) next(to release) (patches, events [][]byte, err error) {
	renamed := strings.NewReplacer(r.release.tag, to.tag, r.release.digest, to.digest)
	before := r.statuses[len(r.statuses)-1]
	for _, recorded := range r.statuses {
		next, err := replaced(recorded, renamed)
		if err != nil {
			return nil, nil, err
		}
		next.History = append([]v1alpha1.DeploymentHistoryEntry{numbered(next.History[0])}, r.statuses[0].History[1:]...)
		next.History = slices.Insert(next.History, 1, r.statuses[len(r.statuses)-1].History[0])
		next.AvailableReleases = append(slices.Clone(r.statuses[len(r.statuses)-1].AvailableReleases), next.AvailableReleases[len(next.AvailableReleases)-1])
		patch, err := client.MergeFrom(&v1alpha1.Rollout{Status: before}).Data(&v1alpha1.Rollout{Status: next})
		if err != nil {
			return nil, nil, fmt.Errorf("compare two statuses: %w", err)
		}
		patches, before = append(patches, patch), next
	}
	for i := range r.events {
		event, err := replaced(r.events[i], renamed)
		if err != nil {
			return nil, nil, err
		}
		event.UID, event.ResourceVersion, event.ManagedFields = "", "", nil
		body, err := json.Marshal(event)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, body)
	}
	return patches, events, nil
}

func numbered(entry v1alpha1.DeploymentHistoryEntry) v1alpha1.DeploymentHistoryEntry {
	if entry.ID != nil {
		id := *entry.ID + 1
		entry.ID = &id
	}
	return entry
}

// replaced returns a copy of an object with some texts replaced.
func replaced[T any](object T, texts *strings.Replacer) (T, error) {
	var result T
	text, err := json.Marshal(object)
	if err != nil {
		return result, err
	}
	err = json.Unmarshal([]byte(texts.Replace(string(text))), &result)
	return result, err
}
