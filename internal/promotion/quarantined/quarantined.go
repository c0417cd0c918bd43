// SPDX-License-Identifier: Apache-2.0

// Package quarantined says what quarantines hold now, and which of them knows a failure. It
// knows the quarantines, the image that the policy ranks, and the time.
package quarantined

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Quarantines are the quarantines that count for the Rollout.
type Quarantines struct {
	// All of them, sorted by kind and name.
	All []Quarantine
	// Problem is set if they could not be read.
	Problem *verdict.Problem

	holding Holding
}

// Quarantine is a ReleaseQuarantine or a ClusterReleaseQuarantine.
type Quarantine struct {
	// Name is the kind and name.
	Name string
	// Spec names the release.
	Spec v1alpha1.ReleaseQuarantineSpec
	// Status is what is known of it.
	Status v1alpha1.ReleaseQuarantineStatus
	// Managed is true if the controller has created it.
	Managed bool
}

// Until returns when the quarantine ends by itself; zero means never.
func (q *Quarantine) Until() time.Time { return quarantine.Until(&q.Spec, &q.Status) }

// Holds reports whether the quarantine holds something now. One that the controller has
// created, and not reported the failure to yet, does not: nobody says that the release is
// bad.
func (q *Quarantine) Holds(now time.Time) bool {
	isEmpty := q.Managed && len(q.Status.Failures) == 0
	return !isEmpty && quarantine.Phase(&q.Spec, &q.Status, now) == v1alpha1.QuarantineHeld
}

// isRecall reports whether the quarantine also holds what users choose.
func (q *Quarantine) isRecall() bool { return q.Spec.Enforce == v1alpha1.EnforceAlways }

// OwnName returns the name of a ReleaseQuarantine of the namespace of the Rollout; false if
// it is another object.
func (q *Quarantine) OwnName() (string, bool) {
	name, own := strings.CutPrefix(q.Name, ownQuarantine(""))
	return name, own && !strings.Contains(name, "/")
}

// longestReason is how many characters of the reason of a quarantine a message contains.
const longestReason = 256

// message says why the release is held, and what ends that.
func (q *Quarantine) message(release v1alpha1.VersionInfo) string {
	text := fmt.Sprintf("%s is in quarantine by %s", release.Tag, q.Name)
	if release.Digest == nil && q.Spec.Digest != "" {
		text = fmt.Sprintf("the digest of %s is not known, and its tag is in quarantine by %s", release.Tag, q.Name)
	}
	if until := q.Until(); !until.IsZero() {
		text += " until " + verdict.Clock(until)
	}
	if reason := truncate.Line(q.Spec.Reason, longestReason); reason != "" {
		text += ": " + reason
	}
	if q.isRecall() {
		return text + "; to end that, set its spec.lifted"
	}
	return text + "; pin it to try it all the same, or set spec.lifted of the quarantine"
}

// Lift reports whether a user has lifted a quarantine that this failure was reported
// to. Then the failure no longer holds the release; a later one does, also after a retry.
// The quarantine knows the newest failures only, the history entry names the quarantine, if it does. It
// has that name again if a user deleted it and the same content failed once more.
func (qs Quarantines) Lift(named string, failure v1alpha1.ReleaseFailure) bool {
	recorded := ownQuarantine(named)
	for i := range qs.All {
		q := &qs.All[i]
		if q.Spec.Lifted && (named != "" && q.Name == recorded || quarantine.Lists(&q.Status, failure)) {
			return true
		}
	}
	return false
}

// ownQuarantine returns the Name of a ReleaseQuarantine in the namespace of the Rollout.
func ownQuarantine(name string) string { return v1alpha1.ReleaseQuarantineKind + " " + name }
