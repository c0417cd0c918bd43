// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

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

// appliedComesFirst holds every release if spec.firstRelease is Applied and the history
// is empty: the history must begin with the version that already runs.
func appliedComesFirst(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	if in.Rollout.Current() != nil || in.Rollout.Spec.FirstRelease != v1alpha1.FirstReleaseApplied {
		return nil
	}
	if problem := in.Targets.UnknownVersion(); problem != nil {
		return &verdict.Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return &verdict.Hold{
		Reason:  v1alpha1.FirstReleaseNotAppliedReason,
		Message: "spec.firstRelease is Applied: the history begins with what the targets carry, once Flux has applied it",
	}
}
