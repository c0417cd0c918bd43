// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

func headOf(in promotion.Input, d promotion.Decision) Head {
	h := Head{Suspended: in.Rollout.Spec.Suspend, Next: nextOf(d), Problems: explain.Problems(in, d)}
	entry := in.Rollout.Current()
	if entry == nil {
		return h
	}
	h.Version, h.ID, h.State, h.Since = entry.Version.Tag, entry.ID, string(entry.State()), timeOf(entry.Timestamp.Time)
	h.Message, h.StateMessage = ptr.Deref(entry.Message, ""), promotion.StateMessage(in.Rollout)
	if state := explain.StateNow(in, d); state.Kind == explain.StateFailed {
		h.StateMessage = state.Cause // with whether it goes back by itself
	}
	if entry.TriggeredBy != nil && entry.TriggeredBy.Kind != v1alpha1.TriggeredBySystem {
		h.By = entry.TriggeredBy.Name
	}
	return h
}

// nextOf returns the release that is promoted now; else the newest candidate that does not
// wait for an older one.
func nextOf(d promotion.Decision) *Next {
	if d.Action.Promotes() {
		return &Next{Version: d.Release.Tag, Digest: ptr.Deref(d.Release.Digest, ""), Promotes: true, Message: d.Message}
	}
	if held := heldRelease(d); held != nil {
		return heldNext(*held)
	}
	return nil
}

// heldRelease returns the release that a user chose and that waits; else the newest candidate
// that does not wait for an older one.
func heldRelease(d promotion.Decision) *promotion.Verdict {
	if d.Awaited != nil {
		return d.Awaited
	}
	for i := range d.Candidates {
		if !d.Candidates[i].HeldBy(v1alpha1.NotNextReason) {
			return &d.Candidates[i]
		}
	}
	return nil
}

func heldNext(candidate promotion.Verdict) *Next {
	next := &Next{Version: candidate.Release.Tag, Digest: ptr.Deref(candidate.Release.Digest, "")}
	for _, hold := range candidate.Holds {
		next.Holds = append(next.Holds, Hold{Reason: hold.Reason, Message: hold.Message, Until: timeOf(hold.Until)})
	}
	return next
}

// NextName returns the name of the next release: with its digest if its tag is the one that
// runs.
func (h Head) NextName() string {
	next := v1alpha1.VersionInfo{Tag: h.Next.Version, Digest: &h.Next.Digest}
	return releases.NameOf(next, &v1alpha1.DeploymentHistoryEntry{Version: v1alpha1.VersionInfo{Tag: h.Version}})
}

// timeOf returns a time in UTC; nil if it is zero.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}
