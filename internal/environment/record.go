// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestText is the number of characters to which a message of the Rollout is cut.
const longestText = 256

// record is what is said of releases while the history is read, entry by entry.
type record struct {
	releases []environmentsv1.Release
	// interrupted are those whose newest promotion was cancelled, as far as is known.
	interrupted []environmentsv1.Release
	// rank is the place of each tag in the order of the ImagePolicy, as far as it is known.
	rank map[string]int
}

// judged reads the history of the Rollout, from the oldest entry to the newest. Measure is
// asked how long the current release has been healthy; was is what was recorded of this
// promotion, and is empty if nothing was.
func judged(v View, measure func(r, was *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry)) []environmentsv1.Release {
	history := v.Rollout.Status.History
	rec := recordedOf(v)
	for i, entry := range slices.Backward(history) {
		if entry.State() != v1alpha1.BakeCancelled {
			rec.withdraw(&entry, v.Rollout)
		}
		r := rec.promoted(&entry, v.Rollout.Spec.BakeTimeOf(&entry))
		if r == nil {
			continue
		}
		was := recordedAs(v.Recorded, &entry)
		if i > 0 {
			left := v.past(history[i-1].PromotedTime())
			v.leave(r, was, left, baked(&entry, v.errorUntil(left), time.Time{}))
			continue
		}
		r.Current = true
		r.HealthySince, r.Soaked, r.Unhealthy = nil, nil, ""
		if r.Evidence == environmentsv1.EvidenceNone && isApplied(v.Rollout.Status.Targets) {
			r.Evidence = environmentsv1.EvidenceApplied // its targets were annotated later
		}
		if entry.State() == v1alpha1.BakeSucceeded || entry.State() == v1alpha1.BakeInProgress {
			measure(r, &was, &entry)
			if r.Unhealthy != "" || v.LastError.After(healthyFrom(&was, &entry)) {
				r.LongestSoak = nil
			}
		}
	}
	return rec.releases
}

// healthyFrom returns since when an error is one of the promotion of an entry, and not one of
// the release before it.
func healthyFrom(was *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) time.Time {
	switch {
	case was.HealthySince != nil:
		return was.HealthySince.Time
	case entry.BakeStartTime != nil:
		return entry.BakeStartTime.Time
	}
	return time.Time{}
}

// recordedOf returns what was recorded of releases before, and still holds.
func recordedOf(v View) record {
	rec := record{rank: ranks(v.Rollout)}
	if isCreatedAgain(v) {
		return rec
	}
	for _, r := range v.Recorded {
		entry := entryOf(v.Rollout, r.ID)
		unjudged := entry == nil || !judges(entry.State())
		mistaken := entry != nil && identityOf(&entry.Version) != identity(&r)
		switch {
		case mistaken || !judges(r.State):
			continue
		case unjudged && r.State.Running():
			rec.interrupted = append(rec.interrupted, r)
			continue
		case unjudged && r.Current: // otherwise its entry is read
			v.leave(&r, r, v.past(leftAt(v.Rollout, r.ID)), 0)
		}
		rec.releases = append(rec.releases, r)
	}
	return rec
}

// isCreatedAgain reports whether the Rollout was created again since the record was made. It
// counts its promotions anew then, and nothing of the record is about its history.
func isCreatedAgain(v View) bool {
	current := v.Rollout.Current()
	return current != nil && slices.ContainsFunc(v.Recorded, func(r environmentsv1.Release) bool { return r.ID > current.IDOrZero() })
}

// recordedAs returns what was recorded of a promotion; nothing if it was not recorded.
func recordedAs(recorded []environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) environmentsv1.Release {
	for i := range recorded {
		if recorded[i].ID == entry.IDOrZero() && identity(&recorded[i]) == identityOf(&entry.Version) {
			return recorded[i]
		}
	}
	return environmentsv1.Release{}
}

// promoted enters a promotion. It returns nil if it says nothing of the release: because a
// later one decides, or because another choice ended it.
func (rec *record) promoted(entry *v1alpha1.DeploymentHistoryEntry, bakeTime *metav1.Duration) *environmentsv1.Release {
	if !judges(entry.State()) {
		return nil
	}
	r, at := released(entry, bakeTime), find(rec.releases, &entry.Version)
	if at < 0 {
		r.LongestSoak = rec.soakBefore(&r, entry)
		rec.releases = append(rec.releases, r)
		return &rec.releases[len(rec.releases)-1]
	}
	old := &rec.releases[at]
	if old.ID > r.ID {
		return nil
	}
	if first := firstID(old); first != r.ID {
		r.FirstID = first
	}
	succeeded := r.State == v1alpha1.BakeSucceeded
	if old.ID == r.ID && !r.Evidence.AtLeast(old.Evidence) {
		r.Evidence = old.Evidence // the entry may have lost it
	}
	if known := old.ID == r.ID && old.State == v1alpha1.BakeSucceeded; !succeeded || known {
		r.Withdrawn = old.Withdrawn // a new success lifts it
	}
	r.LongestSoak = longestSoak(old, &r, entry)
	*old = r
	return old
}

// soakBefore returns the longest soak of a release, by the record of a later promotion that was
// cancelled. Nothing else of that one counts.
func (rec *record) soakBefore(r *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) *metav1.Duration {
	at := find(rec.interrupted, &entry.Version)
	if at < 0 || !isSameContent(r, &rec.interrupted[at]) {
		return nil
	}
	return rec.interrupted[at].LongestSoak
}

// longestSoak returns the longest soak of a release before an entry, by what is recorded of it
// until then. It no longer counts once the release has failed, or the environment has gone back
// from it: then the next success has to prove the release alone.
func longestSoak(old, r *environmentsv1.Release, entry *v1alpha1.DeploymentHistoryEntry) *metav1.Duration {
	failed := old.State == v1alpha1.BakeFailed || r.State == v1alpha1.BakeFailed || entry.LastRetryTimestamp != nil
	switch longest := old.Longest(); {
	case failed || !isSameContent(r, old):
		return nil
	case old.ID == r.ID:
		return old.LongestSoak
	case old.Withdrawn != "" || longest == 0:
		return nil
	default:
		return &metav1.Duration{Duration: longest}
	}
}

// isSameContent reports whether two promotions of a release are of one content. Without a
// digest, their tag may have moved in between.
func isSameContent(a, b *environmentsv1.Release) bool {
	return a.Digest != "" || a.Revision == b.Revision
}

// judges reports whether an entry in a state says something of its release. One that was
// cancelled does not, nor does one in a state that only another client knows: kuberik before
// v0.6 wrote none.
func judges(state v1alpha1.BakeStatus) bool {
	return state.Running() || state == v1alpha1.BakeSucceeded || state == v1alpha1.BakeFailed
}

// released returns what an entry of the history says of its release.
func released(entry *v1alpha1.DeploymentHistoryEntry, bakeTime *metav1.Duration) environmentsv1.Release {
	r := environmentsv1.Release{
		Tag: entry.Version.Tag, Digest: orEmpty(entry.Version.Digest),
		Revision: truncate.Text(orEmpty(entry.Version.Revision), longestText),
		ID:       entry.IDOrZero(), State: entry.State(),
	}
	cutoff := entry.Cutoff()
	r.Since = &cutoff
	switch r.State {
	case v1alpha1.BakeInProgress:
		r.Since = entry.BakeStartTime
		if bakeTime != nil && r.Since != nil {
			r.Until = &metav1.Time{Time: r.Since.Add(bakeTime.Duration)}
		}
	case v1alpha1.BakeSucceeded:
		r.Since, r.Evidence = entry.BakeEndTime, evidenceOf(entry)
	case v1alpha1.BakeFailed:
		r.Since, r.Message = entry.BakeEndTime, truncate.Text(orEmpty(entry.BakeStatusMessage), longestText)
	case v1alpha1.BakeDeploying, v1alpha1.BakeCancelled:
	}
	return r
}

// evidenceOf returns what a success stands on, by what was counted then. An entry without
// that was written by another client.
func evidenceOf(entry *v1alpha1.DeploymentHistoryEntry) environmentsv1.Evidence {
	switch by := entry.ProvenBy; {
	case by != nil && by.Targets == 0 && by.HealthChecks == 0:
		return environmentsv1.EvidenceNone
	case by == nil || by.HealthChecks == 0:
		return environmentsv1.EvidenceApplied
	case baked(entry, time.Time{}, time.Time{}) == 0:
		return environmentsv1.EvidenceHealthy
	default:
		return environmentsv1.EvidenceBaked
	}
}

func isApplied(targets []v1alpha1.TargetStatus) bool {
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(t v1alpha1.TargetStatus) bool { return t.State != v1alpha1.TargetApplied })
}

// leave ends the time in which a release was current. What it had been healthy until then,
// or in an earlier promotion, is all that counts from now on. If that was not recorded, only
// the bake counts.
func (v View) leave(r *environmentsv1.Release, was environmentsv1.Release, at time.Time, bake time.Duration) {
	r.Current, r.HealthySince, r.Unhealthy, r.RenewedTime, r.RenewAfter = false, nil, "", nil, nil
	if was.Soaked != nil {
		bake = v.soakedUntil(was, at)
	}
	r.Soaked = &metav1.Duration{Duration: bake}
	if was.HealthySince == nil || !v.errorUntil(at).After(was.HealthySince.Time) {
		r.Soaked.Duration = r.Longest()
	}
	r.LongestSoak = nil
}

// past returns a time, or now if it is still to come: nobody was healthy until then.
func (v View) past(t time.Time) time.Time {
	if t.After(v.now) {
		return v.now
	}
	return t
}

// errorUntil returns when a HealthCheck last saw an error, if that was before a release was
// left. A later error is not one of that release.
func (v View) errorUntil(left time.Time) time.Time {
	if v.LastError.After(left) {
		return time.Time{}
	}
	return v.LastError
}

// soakedUntil returns for how long a release had been healthy when it was left, which may be
// before anybody looked again. An error after that hides whether there was one before: then
// only what was recorded counts, and so it does if the controller was away.
func (v View) soakedUntil(was environmentsv1.Release, at time.Time) time.Duration {
	switch recorded := was.Soaked.Duration; {
	case was.HealthySince == nil, v.LastError.After(at), !Unheard(&was, at).IsZero():
		return recorded
	case v.LastError.After(was.HealthySince.Time):
		return max(0, at.Sub(v.errorEnd()))
	default:
		return max(recorded, at.Sub(was.HealthySince.Time))
	}
}

// withdraw marks the releases that the environment has gone back from with an entry: those
// that it had proven before, and that are newer. It does not matter what was promoted in
// between. The versions of two images say nothing of each other.
func (rec *record) withdraw(entry *v1alpha1.DeploymentHistoryEntry, rollout *v1alpha1.Rollout) {
	for i := range rec.releases {
		r := &rec.releases[i]
		if r.State != v1alpha1.BakeSucceeded || r.Withdrawn != "" || r.ID >= entry.IDOrZero() || identity(r) == identityOf(&entry.Version) {
			continue
		}
		before := entryOf(rollout, r.ID)
		if differ := before != nil && imagename.Differ(entry.Image, before.Image); !differ && rec.isNewer(r, entry) {
			r.Withdrawn = "went back to " + entry.Version.Tag + by(entry)
		}
	}
}

// isNewer reports whether a release is newer than that of an entry. If the order of the
// ImagePolicy is not known for both, the one that was promoted later for the first time is
// newer.
func (rec *record) isNewer(r *environmentsv1.Release, than *v1alpha1.DeploymentHistoryEntry) bool {
	a, known := rec.rank[r.Tag]
	if b, both := rec.rank[than.Version.Tag]; known && both {
		return a > b
	}
	at := find(rec.releases, &than.Version)
	return at >= 0 && firstID(&rec.releases[at]) < firstID(r)
}

// firstID returns the number of the first promotion of a release.
func firstID(r *environmentsv1.Release) int64 {
	if r.FirstID != 0 {
		return r.FirstID
	}
	return r.ID
}

func find(releases []environmentsv1.Release, version *v1alpha1.VersionInfo) int {
	return slices.IndexFunc(releases, func(r environmentsv1.Release) bool { return identity(&r) == identityOf(version) })
}

// ranks returns the place of each known release in the order of the ImagePolicy. A tag
// that is listed twice has the newer place.
func ranks(rollout *v1alpha1.Rollout) map[string]int {
	rank := make(map[string]int, len(rollout.Status.AvailableReleases))
	for i := range rollout.Status.AvailableReleases {
		rank[rollout.Status.AvailableReleases[i].Tag] = i
	}
	return rank
}

func entryOf(rollout *v1alpha1.Rollout, id int64) *v1alpha1.DeploymentHistoryEntry {
	for i := range rollout.Status.History {
		if entry := &rollout.Status.History[i]; entry.IDOrZero() == id {
			return entry
		}
	}
	return nil
}

// leftAt returns when a promotion was replaced by the next one; zero if that is not known.
func leftAt(rollout *v1alpha1.Rollout, id int64) time.Time {
	for _, entry := range slices.Backward(rollout.Status.History) {
		if entry.IDOrZero() > id {
			return entry.PromotedTime()
		}
	}
	return time.Time{}
}

// by returns who has chosen a release, as the end of a message.
func by(entry *v1alpha1.DeploymentHistoryEntry) string {
	if who := entry.TriggeredBy; who == nil || who.Kind != v1alpha1.TriggeredByUser || who.Name == v1alpha1.UnknownUser {
		return ""
	}
	return ", by " + truncate.Text(entry.TriggeredBy.Name, longestText)
}

// identity returns what a release is recognized by: its digest, or, as long as that is not
// known, its tag.
func identity(r *environmentsv1.Release) string { return identified(r.Digest, r.Tag) }

func identityOf(v *v1alpha1.VersionInfo) string { return identified(orEmpty(v.Digest), v.Tag) }

func identified(digest, tag string) string {
	if digest != "" {
		return digest
	}
	return "tag " + tag
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
