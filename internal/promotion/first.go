// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// begun begins a history. If the controller already owns a field of a target, the
// history was lost: the version that runs is taken over, and the normal rules apply from
// then on. Otherwise spec.firstRelease decides: either the version that already runs is
// taken over, or the first release is promoted past the gates.
func begun(in Input, k known) (choice, bool) {
	owned, none := slices.Compact(slices.Sorted(slices.Values(in.Targets.Owned))), choice{}
	switch {
	case len(in.Rollout.Status.History) > 0:
		return none, false
	case in.Policy.Blocking || in.Gates.Problem != nil || in.Targets.Problem != nil || k.problem != nil:
		return none, true
	case in.Targets.Disagree() != nil:
		return choice{problem: in.Targets.Disagree()}, true
	case len(owned) > 1:
		return choice{problem: &verdict.Problem{
			Reason: v1alpha1.TargetsDisagreeReason,
			Message: fmt.Sprintf("the history is lost and the targets carry different versions (%s): set spec.wantedVersion to the right one",
				truncate.List(owned)),
		}}, true
	case len(owned) == 1:
		return adopt(releases.Known(k.ledger, owned[0]), "the history was lost"), true
	case awaited(in, k.ledger) != nil:
		return none, true
	case in.Rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied:
		return chooseApplied(in, k.ledger), true
	}
	return chooseFirstRelease(in, k), true
}

// chooseFirstRelease promotes the newest release that is named by all gates that name some,
// and goes past all else that gates ask for: an environment without any release has nothing
// to protect. But a list of versions is there for the day on which it is built anew.
func chooseFirstRelease(in Input, k known) choice {
	offered := slices.DeleteFunc(slices.Clone(k.candidates), func(v Verdict) bool { return len(firstHolds(k.rules, in.Rollout, in.Gates, v.Release)) > 0 })
	if len(offered) == 0 {
		return choice{}
	}
	at := slices.IndexFunc(offered, func(v Verdict) bool { return v.Release.Tag == Bypassed(in.Rollout, offered) })
	if later := recognizedBy(in.Rollout, k.candidates, offered[0].Release); at < 0 && in.Now.Before(later) {
		return choice{at: later}
	}
	return promoteAutomatically(in, k, offered[max(0, at)].Release, v1alpha1.GroundsFirst)
}

// recognizedWithin is how long the first release waits for the digests of newer ones.
const recognizedWithin = time.Minute

// recognizedBy returns until when a newer release may be recognized as one that the upstreams
// have proven; zero if there is none. The registry says the digests of a new Rollout's releases
// one after the other, and an older one must not be first because its digest came first.
func recognizedBy(rollout *v1alpha1.Rollout, candidates []Verdict, than v1alpha1.VersionInfo) time.Time {
	newer := slices.IndexFunc(candidates, func(v Verdict) bool { return v.Release.Tag == than.Tag })
	unknown := func(v Verdict) bool { return v.HeldBy(environmentsv1.UpstreamUnknownReason) }
	if newer < 0 || !slices.ContainsFunc(candidates[:newer], unknown) {
		return time.Time{}
	}
	return rollout.CreationTimestamp.Add(recognizedWithin)
}

// FirstHolds returns what holds a release while nothing was promoted yet.
func FirstHolds(in Input, release v1alpha1.VersionInfo) []verdict.Hold {
	return firstHolds(promotionChecks(in), in.Rollout, in.Gates, release)
}

func firstHolds(rules []rule, rollout *v1alpha1.Rollout, gates Gates, release v1alpha1.VersionInfo) []verdict.Hold {
	holds := holdsPast(rules, rollout, release, first)
	if requested(rollout, release.Tag)&bypassed == 0 && !namedByGates(gates.Gates, release) {
		holds = append(holds, *everyGateAllows(gates.Gates)(release))
	}
	return holds
}

// chooseApplied takes over the version that all targets have set and applied, no matter
// who has set it.
func chooseApplied(in Input, ledger []v1alpha1.VersionInfo) choice {
	carried, outdated := in.Targets.Carried, in.Targets.Outdated()
	switch problem := in.Targets.UnknownVersion(); {
	case problem != nil:
		return choice{problem: problem}
	case len(carried) == 0:
		return wait(v1alpha1.FirstReleaseNotAppliedReason,
			"spec.firstRelease is Applied, and no Flux object is annotated with this Rollout: annotate the one that runs, or set spec.wantedVersion")
	case len(outdated) > 0:
		return wait(v1alpha1.FirstReleaseNotAppliedReason,
			fmt.Sprintf("spec.firstRelease is Applied: the history begins with %s once every target has applied it; %s; "+
				"if nothing runs yet, set spec.wantedVersion to the first release", carried[0], truncate.Join(outdated, "; ")))
	}
	return adopt(in.Content().AsPulled(releases.Known(ledger, carried[0])), "spec.firstRelease is Applied")
}
