// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// Quarantines are the quarantines that count for the Rollout.
type Quarantines struct {
	// All of them, sorted by kind and name.
	All []Quarantine
	// Problem is set if they could not be read.
	Problem *Problem
}

// Quarantine is a ReleaseQuarantine or a ClusterReleaseQuarantine.
type Quarantine struct {
	// Name is the kind and name.
	Name string
	// Spec names the release.
	Spec v1alpha1.ReleaseQuarantineSpec
	// Status is what is known of it.
	Status v1alpha1.ReleaseQuarantineStatus
}

func (q *Quarantine) phase(in Input) v1alpha1.QuarantinePhase {
	return quarantine.Phase(&q.Spec, &q.Status, in.Now)
}

// holds reports whether the quarantine holds the release now.
func (q *Quarantine) holds(in Input, release v1alpha1.VersionInfo) bool {
	return quarantine.Holds(q.phase(in)) && q.isAbout(in, release)
}

func (q *Quarantine) isAbout(in Input, release v1alpha1.VersionInfo) bool {
	return IsAbout(in, &q.Spec, release)
}

// IsAbout reports whether a quarantine is about a release of the Rollout.
func IsAbout(in Input, spec *v1alpha1.ReleaseQuarantineSpec, release v1alpha1.VersionInfo) bool {
	return quarantine.Matches(spec, quarantine.Release{Image: in.Policy.Image, Tag: release.Tag, Digest: orEmpty(release.Digest)})
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
		if q := &in.Quarantines.All[i]; q.holds(in, release) {
			all = append(all, *q)
		}
	}
	return all
}

// notQuarantined checks that no quarantine that the Rollout obeys holds the release. While
// quarantines cannot be read, nobody knows.
func notQuarantined(in Input, release v1alpha1.VersionInfo) *Hold {
	if !in.Rollout.Spec.Quarantine.Obeys() {
		return nil
	}
	if problem := in.Quarantines.Problem; problem != nil {
		return &Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return in.heldInQuarantine(release, func(q *Quarantine) bool { return !q.isRecall() })
}

// notRecalled checks that no quarantine holds the release even for users. A Rollout that
// does not obey quarantines obeys these.
func notRecalled(in Input, release v1alpha1.VersionInfo) *Hold {
	return in.heldInQuarantine(release, (*Quarantine).isRecall)
}

// heldInQuarantine returns the hold of the quarantines that count. It ends with the last
// of them.
func (in Input) heldInQuarantine(release v1alpha1.VersionInfo, counts func(*Quarantine) bool) *Hold {
	var hold *Hold
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		if !counts(q) || !q.holds(in, release) {
			continue
		}
		until := quarantine.Until(&q.Spec, &q.Status)
		if hold == nil {
			hold = &Hold{Reason: v1alpha1.QuarantinedReason, Message: q.message(in, release, until), Until: until}
		} else if until.IsZero() || !hold.Until.IsZero() && until.After(hold.Until) {
			hold.Until = until
		}
	}
	return hold
}

// message says why the release is held, and what ends that.
func (q *Quarantine) message(in Input, release v1alpha1.VersionInfo, until time.Time) string {
	text := fmt.Sprintf("%s is in quarantine by %s (%s)", release.Tag, q.Name, q.phase(in))
	if release.Digest == nil && q.Spec.Digest != "" {
		text = fmt.Sprintf("the digest of %s is not known, and its tag is in quarantine by %s (%s)", release.Tag, q.Name, q.phase(in))
	}
	if !until.IsZero() {
		text += " until " + clock(until)
	}
	if reason := strings.TrimSpace(q.Spec.Reason); reason != "" {
		text += ": " + reason
	}
	if q.isRecall() {
		return text + "; to end that, set its spec.lifted"
	}
	return text + "; pin it to try it all the same, or set spec.lifted of the quarantine"
}

// recalled explains why a version that a user has chosen is not promoted; nil if it is.
func recalled(in Input, ledger []v1alpha1.VersionInfo) *Problem {
	wanted, current := in.Rollout.ChosenManually(), in.Rollout.Current()
	if wanted == "" || current != nil && current.Version.Tag == wanted {
		return nil
	}
	if hold := notRecalled(in, known(ledger, wanted)); hold != nil {
		return &Problem{Reason: hold.Reason, Message: hold.Message}
	}
	return nil
}

// isLifted reports whether a user has lifted a quarantine that this failure was reported
// to. Then the failure no longer holds the release. The quarantine lists the newest
// failures only, the history entry names the quarantine.
func isLifted(in Input, entry *v1alpha1.DeploymentHistoryEntry) bool {
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		if q.Spec.Lifted && (isRecordedIn(entry, q) || names(q.Status.Incidents, in.Rollout, entry)) {
			return true
		}
	}
	return false
}

func isRecordedIn(entry *v1alpha1.DeploymentHistoryEntry, q *Quarantine) bool {
	return entry.Quarantine != "" && q.Name == ownQuarantine(entry.Quarantine)
}

// ownQuarantine returns the Name of a ReleaseQuarantine in the namespace of the Rollout.
func ownQuarantine(name string) string { return v1alpha1.ReleaseQuarantineKind + " " + name }

func names(incidents []v1alpha1.QuarantineIncident, rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) bool {
	for _, incident := range incidents {
		if incident.Rollout.UID == rollout.UID && entry.ID != nil && incident.EntryID == *entry.ID {
			return true
		}
	}
	return false
}

// knownBad reports whether a quarantine keeps a rollback from going to the release: it was
// confirmed, or a user says so. A suspicion does not: the release has succeeded here.
func knownBad(in Input, release v1alpha1.VersionInfo) bool {
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.phase(in) == v1alpha1.QuarantineConfirmed && q.isAbout(in, release) {
			return true
		}
	}
	return false
}
