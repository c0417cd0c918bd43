// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// The message of an entry follows from its facts, and nothing decides by it. So it may be
// worded differently at any time: see groundsOf for entries of other clients.

// automatic are the grounds on which the controller chooses a release by itself.
var automatic = []v1alpha1.Grounds{v1alpha1.GroundsNewest, v1alpha1.GroundsNext, v1alpha1.GroundsFirst}

// groundsText begins the message of an entry that the controller chose by itself. The name
// of the ImagePolicy follows.
func groundsText(grounds v1alpha1.Grounds) string {
	switch grounds {
	case v1alpha1.GroundsNext:
		return "the next release of ImagePolicy "
	case v1alpha1.GroundsFirst:
		return "the first release of this environment, from ImagePolicy "
	default:
		return "the newest eligible release of ImagePolicy "
	}
}

// liftable are the holds that a user can lift, in the order in which messages name them.
var liftable = []v1alpha1.LiftedHold{v1alpha1.LiftedGates, v1alpha1.LiftedFailure, v1alpha1.LiftedUpstreams}

// liftedText follows, for each of these holds that a user has lifted.
func liftedText(hold v1alpha1.LiftedHold) string {
	switch hold {
	case v1alpha1.LiftedFailure:
		return "; a failure bypassed manually"
	case v1alpha1.LiftedUpstreams:
		return "; Environments bypassed manually"
	default:
		return "; gates bypassed manually"
	}
}

const (
	// pinnedText is the message of an entry that a user pinned, without words of their own.
	pinnedText = "pinned manually in spec.wantedVersion"
	// forcedText is that of one that a user forced.
	forcedText = "requested with " + v1alpha1.ForceDeployAnnotation
	// carriedText ends the message of an adoption.
	carriedText = "; the targets carry this version"
	// atDeadline begins the message of a promotion that failed at its deadline.
	atDeadline = "not applied and healthy within"
	// rolledBackFrom begins the message of a rollback.
	rolledBackFrom = "rolled back from "
)

// choiceMessage says why the controller promotes a release of an ImagePolicy, what its
// upstreams have not checked, and who has let it go past them, or past gates alone.
func choiceMessage(o Outcome, policy, unchecked, byWhom string) string {
	text := groundsText(o.Grounds) + policy
	pastUpstreams := o.hasLifted(v1alpha1.LiftedUpstreams) // by the annotation that lifts the gates
	if o.hasLifted(v1alpha1.LiftedGates) {
		text += liftedText(v1alpha1.LiftedGates)
		if !pastUpstreams {
			text += byWhom
		}
	}
	if o.hasLifted(v1alpha1.LiftedFailure) {
		text += liftedText(v1alpha1.LiftedFailure)
	}
	text += unchecked
	if pastUpstreams {
		text += liftedText(v1alpha1.LiftedUpstreams) + byWhom
	}
	return text
}

// entryMessage returns why a release was promoted, for the history: the user's message,
// or else the message of the decision.
func entryMessage(rollout *v1alpha1.Rollout, foreign map[string]bool, o Outcome) string {
	words := words(rollout, foreign, v1alpha1.DeployMessageAnnotation)
	switch {
	case o.Manual && words != "":
		return truncate.Text(words, verdict.LongestMessage)
	case o.Manual || !o.usesUpWords() || o.hasLifted(v1alpha1.LiftedGates):
		return o.Message
	}
	return o.Message + notHeeded(rollout, foreign)
}

// words returns the text that a user gave for this choice in an annotation.
func words(rollout *v1alpha1.Rollout, foreign map[string]bool, annotation string) string {
	if foreign[annotation] {
		return ""
	}
	return strings.TrimSpace(rollout.Annotations[annotation])
}

// byItself are the beginnings of messages that kuberik's dashboard writes by itself, next to a
// pin and when it removes one. Nobody has given them as a reason.
var byItself = []string{"Cleared version pin", "Pinned to version "}

// hasReason reports whether a user says why the release goes past an Environment.
func hasReason(rollout *v1alpha1.Rollout, foreign map[string]bool) bool {
	why := words(rollout, foreign, v1alpha1.DeployMessageAnnotation)
	return why != "" && !slices.ContainsFunc(byItself, func(text string) bool { return strings.HasPrefix(why, text) })
}

func requestDigest(rollout *v1alpha1.Rollout, foreign map[string]bool) string {
	return RequestDigest(words(rollout, foreign, v1alpha1.DeployUserAnnotation), words(rollout, foreign, v1alpha1.DeployMessageAnnotation))
}

// RequestDigest identifies the user name and the message for a choice. It is empty if both
// are.
func RequestDigest(user, message string) string {
	if user == "" && message == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(user + "\x00" + message))
	return hex.EncodeToString(sum[:8])
}

// notHeeded returns the end of the message of an automatic promotion: the texts that a
// user has written are not about it, but about a later promotion. It is empty if there
// are none.
func notHeeded(rollout *v1alpha1.Rollout, foreign map[string]bool) string {
	user := truncate.Text(words(rollout, foreign, v1alpha1.DeployUserAnnotation), verdict.LongestName)
	switch {
	case user != "":
		return "; not requested by " + user
	case words(rollout, foreign, v1alpha1.DeployMessageAnnotation) != "":
		return "; not requested by a user"
	}
	return ""
}

// wordsOf returns who has let a release go past gates or Environments, and why, as the end
// of a message.
func wordsOf(rollout *v1alpha1.Rollout, foreign map[string]bool) string {
	text := ""
	if user := words(rollout, foreign, v1alpha1.DeployUserAnnotation); user != "" {
		text += " by " + truncate.Text(user, verdict.LongestName)
	}
	if hasReason(rollout, foreign) {
		text += ": " + truncate.Text(words(rollout, foreign, v1alpha1.DeployMessageAnnotation), verdict.LongestComplaint)
	}
	return text
}

// nameOf returns the tag and the id of an entry.
func nameOf(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.ID == nil {
		return entry.Version.Tag
	}
	return fmt.Sprintf("%s (#%d)", entry.Version.Tag, *entry.ID)
}

// RecoveryMessage says why the promotion of the newest entry cannot fail.
func RecoveryMessage(history []v1alpha1.DeploymentHistoryEntry) string {
	current, before := &history[0], v1alpha1.DeploymentHistoryEntry{}
	if len(history) > 1 {
		before = history[1]
	}
	return recoveryMessage(current.Recovery, current.Version.Tag, &before)
}

func recoveryMessage(why v1alpha1.Recovery, tag string, before *v1alpha1.DeploymentHistoryEntry) string {
	text := "failure detection is off for " + tag + ": "
	switch {
	case why == v1alpha1.RecoveryWhileUnhealthy:
		return text + "it was promoted manually while a HealthCheck was Unhealthy"
	case before.IsRollback():
		return text + "it replaces a rollback to " + before.Version.Tag + " that has not succeeded"
	}
	return text + "it replaces " + before.Version.Tag + ", which failed"
}

// StateMessage says how the current promotion of a Rollout is doing; empty if that is not
// known. An entry that succeeded while there was no target says that there is nothing to
// deploy. Once there are targets, they are described instead.
func StateMessage(rollout *v1alpha1.Rollout) string {
	entry := rollout.Current()
	switch {
	case entry == nil:
		return ""
	case !hasLateTargets(rollout, entry):
		return releases.OrEmpty(entry.BakeStatusMessage)
	case slices.ContainsFunc(rollout.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.State != v1alpha1.TargetApplied }):
		return "succeeded before its targets were annotated"
	}
	return "applied; its targets were annotated after it had succeeded"
}

// hasLateTargets reports whether a promotion succeeded without a target, and the Rollout has
// targets now.
func hasLateTargets(rollout *v1alpha1.Rollout, entry *v1alpha1.DeploymentHistoryEntry) bool {
	withoutTarget := entry.ProvenBy != nil && entry.ProvenBy.Targets == 0
	return entry.State() == v1alpha1.BakeSucceeded && withoutTarget && len(rollout.Status.Targets) > 0
}
