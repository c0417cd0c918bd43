// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// chooseFirst begins a history. If the controller already owns a field of a target, the
// history was lost: the version that runs is taken over, and the normal rules apply from
// then on. Otherwise spec.firstRelease decides: either the version that already runs is
// taken over, or the first release is promoted past the gates.
func (d *Decision) chooseFirst(in Input) {
	switch owned := in.Targets.ownedVersions(); {
	case in.Policy.Blocking || in.Gates.Problem != nil || in.Targets.Problem != nil || d.Problem != nil:
	case in.Targets.disagree() != nil:
		d.Problem = in.Targets.disagree()
	case len(owned) > 1:
		d.Problem = &Problem{
			Reason: v1alpha1.TargetsDisagreeReason,
			Message: fmt.Sprintf("the history is lost and the targets carry different versions (%s): set spec.wantedVersion to the right one",
				truncate.List(owned)),
		}
	case len(owned) == 1:
		d.Action, d.Grounds, d.Release = Adopt, v1alpha1.GroundsAdopted, known(d.Ledger, owned[0])
		d.Reason = v1alpha1.ReleaseAdoptedReason
		d.Message = "the history was lost" + carriedText
	case in.Rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied:
		d.chooseApplied(in)
	default:
		d.chooseFirstRelease(in)
	}
}

// chooseFirstRelease promotes the newest release that the gates allow. If they allow
// none, it promotes the newest of all: an environment without any release has nothing to
// protect.
func (d *Decision) chooseFirstRelease(in Input) {
	offered := slices.DeleteFunc(slices.Clone(d.Candidates), func(v Verdict) bool { return held(in, v.Release, first) })
	if len(offered) == 0 {
		return
	}
	at := slices.IndexFunc(offered, func(v Verdict) bool { return v.Release.Tag == Bypassed(in, offered) })
	if at < 0 {
		at = slices.IndexFunc(offered, func(v Verdict) bool { return allowedByVersion(in.Gates.Gates, v.Release.Tag) })
	}
	d.promoteAutomatically(in, offered[max(0, at)].Release, v1alpha1.GroundsFirst)
}

func allowedByVersion(gates []v1alpha1.RolloutGate, tag string) bool {
	for i := range gates {
		if gates[i].IsPassing() && !allowsVersion(&gates[i], tag) {
			return false
		}
	}
	return true
}
