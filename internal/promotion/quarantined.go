// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
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

	holding holding
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

func (q *Quarantine) until() time.Time { return quarantine.Until(&q.Spec, &q.Status) }

// holds reports whether the quarantine holds something now. One that the controller has
// created, and not reported the failure to yet, does not: nobody says that the release is
// bad.
func (q *Quarantine) holds(now time.Time) bool {
	isEmpty := q.Managed && len(q.Status.Failures) == 0
	return !isEmpty && quarantine.Phase(&q.Spec, &q.Status, now) == v1alpha1.QuarantineHeld
}

// IsAbout reports whether a quarantine is about a release of the Rollout.
func IsAbout(in Input, spec *v1alpha1.ReleaseQuarantineSpec, release v1alpha1.VersionInfo) bool {
	return quarantine.Matches(spec, quarantine.Release{Image: in.Policy.Image, Tag: release.Tag, Digest: releases.OrEmpty(release.Digest)})
}

// isRecall reports whether the quarantine also holds what users choose.
func (q *Quarantine) isRecall() bool { return q.Spec.Enforce == v1alpha1.EnforceAlways }

// OwnName returns the name of a ReleaseQuarantine of the namespace of the Rollout; false if
// it is another object.
func (q *Quarantine) OwnName() (string, bool) {
	name, own := strings.CutPrefix(q.Name, ownQuarantine(""))
	return name, own && !strings.Contains(name, "/")
}

// QuarantinesOn returns the quarantines that hold a release, whether or not the Rollout
// obeys them.
func QuarantinesOn(in Input, release v1alpha1.VersionInfo) []Quarantine {
	var all []Quarantine
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.holds(in.Now) && IsAbout(in, &q.Spec, release) {
			all = append(all, *q)
		}
	}
	return all
}

// notQuarantined checks that no quarantine that the Rollout obeys holds the release. While
// quarantines cannot be read, nobody knows.
func notQuarantined(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	if !in.Rollout.Spec.Quarantine.Obeys() {
		return nil
	}
	if problem := in.Quarantines.Problem; problem != nil {
		return &verdict.Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return in.heldInQuarantine(release, ofFailures, ofUser)
}

// notRecalled checks that no quarantine holds the release even for users. A Rollout that
// does not obey quarantines obeys these.
func notRecalled(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	return in.heldInQuarantine(release, recall)
}

// heldInQuarantine returns the hold of the quarantines that count. It ends with the last
// of them, and so it names that one.
func (in Input) heldInQuarantine(release v1alpha1.VersionInfo, counts ...strength) *verdict.Hold {
	q := in.holding().about(in, release, counts...)
	if q == nil {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.QuarantinedReason, Message: q.message(release), Until: q.until()}
}

// longestReason is how many characters of the reason of a quarantine a message contains.
const longestReason = 256

// message says why the release is held, and what ends that.
func (q *Quarantine) message(release v1alpha1.VersionInfo) string {
	text := fmt.Sprintf("%s is in quarantine by %s", release.Tag, q.Name)
	if release.Digest == nil && q.Spec.Digest != "" {
		text = fmt.Sprintf("the digest of %s is not known, and its tag is in quarantine by %s", release.Tag, q.Name)
	}
	if until := q.until(); !until.IsZero() {
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

// recalled explains why a version that a user has pinned is not promoted; nil if it is.
func recalled(in Input, ledger []v1alpha1.VersionInfo) *verdict.Hold {
	wanted := in.Rollout.Pinned()
	if wanted == "" || in.runsTag(wanted) {
		return nil
	}
	return notRecalled(in, releases.Known(ledger, wanted))
}

// isLifted reports whether a user has lifted a quarantine that this failure was reported
// to. Then the failure no longer holds the release; a later one does, also after a retry.
// The quarantine knows the newest failures only, the history entry names the quarantine. It
// has that name again if a user deleted it and the same content failed once more.
func isLifted(in Input, entry *v1alpha1.DeploymentHistoryEntry) bool {
	recorded, failure := ownQuarantine(entry.Quarantine), in.failure(entry)
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		if q.Spec.Lifted && (entry.Quarantine != "" && q.Name == recorded || quarantine.Lists(&q.Status, failure)) {
			return true
		}
	}
	return false
}

// ownQuarantine returns the Name of a ReleaseQuarantine in the namespace of the Rollout.
func ownQuarantine(name string) string { return v1alpha1.ReleaseQuarantineKind + " " + name }

// knownBad returns the quarantine that keeps a rollback from going to the release, and that
// ends last; nil if there is none. A user says that it is bad. Failures elsewhere do not
// count: the release has succeeded here.
func knownBad(in Input, release v1alpha1.VersionInfo) *Quarantine {
	return in.holding().about(in, release, ofUser, recall)
}
