// SPDX-License-Identifier: Apache-2.0

package crashscenario

import (
	"fmt"
	"maps"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// State is what must not depend on crashes of the controller.
type State struct {
	// History has the promotions, newest first, each as "id version state" and who
	// requested it, with the cause of a failure, who let it go, and what a rollback is about.
	History []string
	// Carried has what the targets get: the tag, the digest if there is one, and the variables.
	Carried map[string]string
	// Generations are how often the specs of the targets were written, by kind.
	Generations map[string]int64
	// Ledger has the tags that are known as releases.
	Ledger []string
	// Quarantines are the ReleaseQuarantines, each with its tags, its phase, and what failed.
	Quarantines []string
	// Requests are the annotations of the Rollout that are left.
	Requests map[string]string
}

// See returns the state of the Rollout, its targets, and the quarantines of its namespace.
func See(rollout *v1alpha1.Rollout, repository *sourcev1.OCIRepository, kustomization *kustomizev1.Kustomization,
	quarantines []v1alpha1.ReleaseQuarantine) State {
	s := State{
		Carried:     map[string]string{"tag": repository.Spec.Reference.Tag},
		Generations: map[string]int64{"OCIRepository": repository.Generation, "Kustomization": kustomization.Generation},
		Requests:    maps.Clone(rollout.Annotations),
	}
	if digest := repository.Spec.Reference.Digest; digest != "" {
		s.Carried["digest"] = digest
	}
	if build := kustomization.Spec.PostBuild; build != nil {
		maps.Copy(s.Carried, build.Substitute)
	}
	for i := range rollout.Status.History {
		s.History = append(s.History, describe(&rollout.Status.History[i]))
	}
	for _, release := range rollout.Status.AvailableReleases {
		s.Ledger = append(s.Ledger, release.Tag)
	}
	for i := range quarantines {
		s.Quarantines = append(s.Quarantines, describeQuarantine(&quarantines[i]))
	}
	return s
}

func describeQuarantine(q *v1alpha1.ReleaseQuarantine) string {
	text := fmt.Sprintf("%s %s:", q.Spec.Tags, q.Status.Phase)
	for _, failure := range q.Status.Failures {
		text += fmt.Sprintf(" #%d %s", failure.EntryID, failure.Cause)
	}
	return text
}

func describe(e *v1alpha1.DeploymentHistoryEntry) string {
	by := e.TriggeredBy.Name
	if e.TriggeredBy.Kind == v1alpha1.TriggeredByUser && by != user {
		by = "of a field manager" // the name of a program that tests
	}
	text := fmt.Sprintf("%d %s %s %s %s", *e.ID, e.Version.Tag, e.State(), e.TriggeredBy.Kind, by)
	if e.Cause != "" {
		text += fmt.Sprintf(", %s", e.Cause)
	}
	if e.Quarantine != "" {
		text += ", reported"
	}
	if e.Approval != nil {
		text += ", " + string(e.Approval.Outcome)
		for i, by := range e.Approval.By {
			text += []string{" by ", " "}[min(i, 1)] + by.Username
		}
	}
	if back := e.Rollback; back != nil {
		text += fmt.Sprintf(", from %s #%d to #%d", back.From, back.FromID, back.ToID)
	}
	return text
}
