// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// mostMarksAsked is for how many releases the registry is asked at a time whether they
// are forward-only. While there are more, it is not known whether a rollback may go past
// them.
const mostMarksAsked = 20

// barrier is what a rollback would have to cross.
type barrier struct {
	// forwardOnly are the tags of the releases that are marked as forward-only, newest
	// first.
	forwardOnly []string
	// unknown are the releases of which it is not known whether they are, newest first.
	unknown []v1alpha1.VersionInfo
}

// barrierBetween returns what a rollback from the failed tag to the target would have to
// cross.
func barrierBetween(r content.Running, registry releases.Registry, ledger []v1alpha1.VersionInfo, target, failed string) barrier {
	var found barrier
	for _, release := range inRange(r, ledger, target, failed) {
		switch mark := registry.Completed(release).ForwardOnly; {
		case mark == nil:
			found.unknown = append(found.unknown, release)
		case *mark:
			found.forwardOnly = append(found.forwardOnly, release.Tag)
		}
	}
	return found
}

// inRange returns the releases whose changes a rollback from the failed tag to the target
// would take back, newest first, each tag once: the failed one, and the known ones that
// are newer than the target and older than the failed one. A release that was skipped
// counts, because a newer image has its changes, too.
//
// What cannot be compared counts as well: a barrier that is missed does more harm than
// one that is not needed. If the target is newer than the failed release, nothing is
// taken back.
func inRange(r content.Running, ledger []v1alpha1.VersionInfo, target, failed string) []v1alpha1.VersionInfo {
	order, listed := r.Policy.Order, newestFirst(ledger)
	from, to := standOf(order, listed, target), standOf(order, listed, failed)
	if to.upTo(from) {
		return nil
	}
	between := []v1alpha1.VersionInfo{asDeployed(r, listed, failed)}
	for age, release := range listed {
		at := stand{order.Placed(release), age}
		if release.Tag != failed && releases.IsTag(release.Tag) && !at.upTo(from) && !to.upTo(at) {
			between = append(between, release)
		}
	}
	return between
}

// newestFirst returns the known releases in the reverse order, each tag once.
func newestFirst(ledger []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	newest := slices.Clone(ledger)
	slices.Reverse(newest)
	return releases.EachOnce(newest)
}

// stand is where a release stands among the known ones.
type stand struct {
	releases.Placed
	age int // position in the known releases, newest first; -1 if it is not known
}

func standOf(order releases.Order, newestFirst []v1alpha1.VersionInfo, tag string) stand {
	return stand{order.Placed(releases.Known(newestFirst, tag)), releases.Index(newestFirst, tag)}
}

// upTo reports whether the release is certainly the other one, or older. Where the order
// cannot compare, the one that is listed earlier is older.
func (s stand) upTo(other stand) bool {
	if s.Tag == other.Tag {
		return true
	}
	switch s.Relation(other.Placed) {
	case releases.Older, releases.SameRelease:
		return true
	case releases.Unranked:
		return s.Kind == releases.ByAppearance && other.age >= 0 && s.age > other.age
	case releases.Newer, releases.SameVersion:
	}
	return false
}

// asDeployed returns the release of the newest entry with a tag, with the content that it
// was deployed with, and with what is known of that content.
func asDeployed(r content.Running, ledger []v1alpha1.VersionInfo, tag string) v1alpha1.VersionInfo {
	release, history := releases.Known(ledger, tag), r.Rollout.Status.History
	i := slices.IndexFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag == tag })
	if i < 0 {
		return release
	}
	deployed, _ := r.OfEntry(history, i)
	if deployed.Digest != nil && !releases.Equal(deployed.Digest, release.Digest) {
		return deployed
	}
	release.ForwardOnly = cmp.Or(release.ForwardOnly, deployed.ForwardOnly)
	return release
}

// marksToAsk returns the releases that the registry is asked for because the current
// promotion failed and is to be answered by a rollback, and because it is not known
// whether they are forward-only: the newest ones, newest first.
func marksToAsk(in Input) []v1alpha1.VersionInfo {
	current := in.Rollout.Current()
	if current.State() != v1alpha1.BakeFailed || current.RollbackDue == nil || !in.Rollout.Spec.RespectsBarriers() {
		return nil
	}
	proven, _ := provenUntil(in.Rollout, in.Policy, in.holding())
	if proven == nil {
		return nil
	}
	ledger, _ := in.grow()
	unknown := barrierBetween(in.Content(), in.registry(), ledger, proven.Version.Tag, current.Version.Tag).unknown
	return unknown[:min(len(unknown), mostMarksAsked)]
}

// askedWithin is how long a registry may take to say whether releases are forward-only,
// before the status says that it is not known.
const askedWithin = time.Minute

// nothingForwardOnly checks that the rollback crosses no release that cannot be left
// again. While that is not known, it does not happen.
func nothingForwardOnly(a attempt) *verdict.Hold {
	switch {
	case !a.Rollout.Spec.RespectsBarriers():
		return nil
	case a.metadataOff:
		return noMarks()
	}
	switch b := barrierBetween(a.Running, a.registry, a.ledger, a.to.Version.Tag, a.failed.Version.Tag); {
	case len(b.forwardOnly) > 0:
		return &verdict.Hold{
			Reason: v1alpha1.RollbackBarrierReason,
			Message: fmt.Sprintf("rolling back to %s, the last release that succeeded, would cross %s, marked as forward-only: deploy a fix, or pin a version",
				a.to.Version.Tag, truncate.List(b.forwardOnly)),
		}
	case len(b.unknown) > 0:
		return a.marksUnknown(b.unknown)
	}
	return nil
}

// marksUnknown waits for the registry, and says so after a while.
func (a attempt) marksUnknown(releases []v1alpha1.VersionInfo) *verdict.Hold {
	tags := make([]string, len(releases))
	for i := range releases {
		tags[i] = releases[i].Tag
	}
	what := fmt.Sprintf("it is not known whether %s can be left again", truncate.List(tags))
	if late := a.failed.RollbackDue.Add(askedWithin); a.now.Before(late) {
		return &verdict.Hold{
			Reason:  v1alpha1.RollbackDelayedReason,
			Message: fmt.Sprintf("goes back to %s unless that crosses a forward-only release: %s, and the registry is being queried", a.to.Version.Tag, what),
			Until:   late,
		}
	}
	return &verdict.Hold{
		Reason: v1alpha1.RollbackBarrierUnknownReason,
		Message: fmt.Sprintf("would go back to %s, but %s: see why the registry does not say it, pin a version, or remove spec.rollback.barriers",
			a.to.Version.Tag, what),
	}
}

// ofUnknownMark says, before a rollback is needed, that there would be none: nobody knows
// whether the current release can be left again.
func (a attempt) ofUnknownMark() (Rollback, time.Time) {
	current := a.failed
	release := asDeployed(a.Running, newestFirst(a.ledger), current.Version.Tag)
	if a.registry.Completed(release).ForwardOnly != nil {
		return Rollback{}, time.Time{}
	}
	if late := current.PromotedTime().Add(askedWithin); a.now.Before(late) {
		return Rollback{}, late
	}
	return Rollback{Hold: verdict.Hold{
		Reason: v1alpha1.RollbackBarrierUnknownReason,
		Message: fmt.Sprintf("would not go back from %s, because it is not known whether it can be left again: "+
			"see why the registry does not say it, or remove spec.rollback.barriers", current.Version.Tag),
	}}, time.Time{}
}

// noMarks says that no rollback will happen, because the controller cannot know which releases
// are forward-only.
func noMarks() *verdict.Hold {
	return &verdict.Hold{
		Reason: v1alpha1.MetadataDisabledReason,
		Message: "does not go back, because it cannot be known which releases are forward-only: " +
			"enable the feature gate ReleaseMetadata, or remove spec.rollback.barriers",
	}
}
