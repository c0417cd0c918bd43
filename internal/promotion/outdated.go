// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// A promotion is recorded before any target is written, and each write of a target carries
// the id of its entry. So a target that carries a higher id than the history shows that an
// old status was restored. What such a history names is not what should run: to follow it
// would take the targets back, past everything that has been decided since.

// adopted takes over what the targets carry, if a user requests it. Otherwise nothing
// happens while the history is outdated: what it says of the current promotion is about
// another one.
func adopted(in Input, k known) (choice, bool) {
	carried := adoptable(in.Targets)
	switch {
	case !in.Targets.Outdate(in.Rollout.Status.History):
		return choice{}, false
	case k.problem != nil: // a choice of a user comes first, and has to be corrected
		return choice{}, true
	case carried != "" && in.Rollout.AsksToAdopt():
		return adopt(releases.Known(k.ledger, carried), "requested with "+v1alpha1.AdoptAnnotation), true
	}
	return choice{problem: historyOutdated(in.Rollout, in.Targets)}, true
}

// adoptable returns the version that all targets carry; empty if they carry different ones,
// or one that cannot be a tag.
func adoptable(targets content.Targets) string {
	if carried := targets.Carried; len(carried) == 1 && releases.IsTag(carried[0]) {
		return carried[0]
	}
	return ""
}

// historyOutdated says that the history is older than the targets, and what a user can do.
func historyOutdated(rollout *v1alpha1.Rollout, targets content.Targets) *verdict.Problem {
	newest, current := targets.Newest(), rollout.Current()
	return &verdict.Problem{
		Reason: v1alpha1.HistoryOutdatedReason,
		Message: fmt.Sprintf("the history ends with %s, but promotion #%d has written %s, and the targets carry %s: "+
			"an old status was restored, so nothing is written; %s",
			nameOf(current), newest.Promotion, newest, listOf(targets.Carried), waysOut(rollout, targets)),
	}
}

func listOf(versions []string) string {
	if len(versions) == 0 {
		return "no version"
	}
	shown := slices.Clone(versions)
	for i, version := range shown {
		if !releases.IsTag(version) {
			shown[i] = verdict.Quote(version)
		}
	}
	return truncate.List(shown)
}

// waysOut says how to go on.
func waysOut(rollout *v1alpha1.Rollout, targets content.Targets) string {
	adopt := fmt.Sprintf(`annotate the Rollout with %s: "true" to `, v1alpha1.AdoptAnnotation)
	switch pinned := rollout.Pinned(); {
	case pinned != "" && releases.Name(pinned).Is(rollout.Current().Version):
		return fmt.Sprintf("%sdeploy %s, which spec.wantedVersion pins as it did then, or pin another version", adopt, pinned)
	case adoptable(targets) == "":
		return "set spec.wantedVersion to the right one"
	}
	return fmt.Sprintf("%sgo on from %s, or set spec.wantedVersion", adopt, adoptable(targets))
}
