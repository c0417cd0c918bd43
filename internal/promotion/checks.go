// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Hold is one reason why a candidate is not promoted now.
type Hold struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message says what holds the candidate, and what would let it go.
	Message string
	// Until is when time alone ends the hold; zero is never.
	Until time.Time
}

// Verdict is what the checks say of one candidate.
type Verdict struct {
	// Release that was judged.
	Release v1alpha1.VersionInfo
	// Holds are the reasons against promoting it now, the most telling first.
	Holds []Hold
}

// Eligible reports whether nothing holds the candidate.
func (v Verdict) Eligible() bool { return len(v.Holds) == 0 }

// HeldBy reports whether one of the reasons holds the candidate.
func (v Verdict) HeldBy(reasons ...string) bool {
	for _, hold := range v.Holds {
		for _, reason := range reasons {
			if hold.Reason == reason {
				return true
			}
		}
	}
	return false
}

// check is a proposition that must hold for a release to be promoted without a
// person asking for it; nil means that it holds.
type check func(Input, v1alpha1.VersionInfo) *Hold

// promotionChecks is the whole policy of automatic promotion, in the order in
// which the reasons are told.
var promotionChecks = []check{
	notPinned,
	policyReadable,
	offeredByPolicy,
	notFailedBefore,
	noBakeRunning,
	lastBakeNotFailed,
	nothingUnhealthy,
	everyGateAllows,
	noScheduleSelects,
	intervalOver,
}

// judge gives a verdict for every candidate, newest first.
func judge(in Input, ledger []v1alpha1.VersionInfo) []Verdict {
	candidates := Candidates(ledger, in.Rollout.Status.History, in.Policy.Order)
	verdicts := make([]Verdict, 0, len(candidates))
	for _, release := range candidates {
		verdict := Verdict{Release: release}
		for _, holds := range promotionChecks {
			if hold := holds(in, release); hold != nil {
				verdict.Holds = append(verdict.Holds, *hold)
			}
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// notPinned: spec.wantedVersion leaves the choice to the controller.
func notPinned(in Input, release v1alpha1.VersionInfo) *Hold {
	wanted := in.Rollout.Pinned()
	switch {
	case wanted == "" || wanted == release.Tag:
		return nil
	case !IsTag(wanted):
		problem := invalidPin(wanted)
		return &Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return &Hold{
		Reason:  v1alpha1.PinnedReason,
		Message: fmt.Sprintf("spec.wantedVersion pins %s; remove it to promote by itself again", wanted),
	}
}

// policyReadable: the ImagePolicy could be read and used.
func policyReadable(in Input, _ v1alpha1.VersionInfo) *Hold {
	if in.Policy.Problem == nil || !in.Policy.Blocking {
		return nil
	}
	return &Hold{Reason: in.Policy.Problem.Reason, Message: in.Policy.Problem.Message}
}

// offeredByPolicy: the release is not newer than what the policy names. A
// release that was withdrawn from the registry must not go out.
func offeredByPolicy(in Input, release v1alpha1.VersionInfo) *Hold {
	if in.Policy.Latest == nil {
		return &Hold{
			Reason:  v1alpha1.NotOfferedReason,
			Message: fmt.Sprintf("ImagePolicy %s names no release at present", in.Policy.Name),
		}
	}
	if result, ok := in.Policy.Order.Compare(release.Tag, in.Policy.Latest.Tag); !ok || result <= 0 {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.NotOfferedReason,
		Message: fmt.Sprintf("ImagePolicy %s now names %s, which is older", in.Policy.Name, in.Policy.Latest.Tag),
	}
}

// notFailedBefore: the newest promotion of this release did not fail here.
func notFailedBefore(in Input, release v1alpha1.VersionInfo) *Hold {
	for i := range in.Rollout.Status.History {
		entry := &in.Rollout.Status.History[i]
		if entry.Version.Tag != release.Tag {
			continue
		}
		if entry.State() != v1alpha1.BakeFailed {
			return nil
		}
		return &Hold{
			Reason:  v1alpha1.FailedBeforeReason,
			Message: fmt.Sprintf("%s failed here before; set spec.wantedVersion to try it again", release.Tag),
		}
	}
	return nil
}

// noBakeRunning: the promotion before this one has its outcome. Where nothing
// protects a promotion there is nothing to wait for.
func noBakeRunning(in Input, _ v1alpha1.VersionInfo) *Hold {
	current := in.Rollout.Current()
	if !current.State().Running() || !Protected(&in.Rollout.Spec) {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.BakeRunningReason,
		Message: fmt.Sprintf("%s is still %s", current.Version.Tag, current.State()),
	}
}

// lastBakeNotFailed: the current release is not a failed one.
func lastBakeNotFailed(in Input, release v1alpha1.VersionInfo) *Hold {
	current := in.Rollout.Current()
	if current.State() != v1alpha1.BakeFailed {
		return nil
	}
	return &Hold{
		Reason: v1alpha1.PreviousBakeFailedReason,
		Message: fmt.Sprintf("the bake of %s failed; set spec.wantedVersion to %s, or to an older release, to go on",
			current.Version.Tag, release.Tag),
	}
}

// nothingUnhealthy: no selected HealthCheck says Unhealthy, and all could be
// read.
func nothingUnhealthy(in Input, _ v1alpha1.VersionInfo) *Hold {
	if in.Rollout.Current() == nil {
		return nil // there is nothing yet whose health could be protected
	}
	if in.Health.Problem != nil {
		return &Hold{Reason: in.Health.Problem.Reason, Message: in.Health.Problem.Message}
	}
	if sick := Unhealthy(in.Health.Checks); len(sick) > 0 {
		return &Hold{
			Reason:  v1alpha1.UnhealthyHealthChecksReason,
			Message: "Unhealthy: " + names(sick),
		}
	}
	return nil
}

// intervalOver: spec.releaseUpdateInterval has passed since the promotion
// before.
func intervalOver(in Input, _ v1alpha1.VersionInfo) *Hold {
	current, interval := in.Rollout.Current(), in.Rollout.Spec.ReleaseUpdateInterval
	if current == nil || interval == nil {
		return nil
	}
	next := current.Timestamp.Add(interval.Duration)
	if !in.Now.Before(next) {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.ReleaseIntervalReason,
		Message: fmt.Sprintf("spec.releaseUpdateInterval allows the next promotion at %s", clock(next)),
		Until:   next,
	}
}

// clock shows a moment in a message.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
