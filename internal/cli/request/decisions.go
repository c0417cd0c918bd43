// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// shownOverride is how long an override lasts in a command that is suggested.
const shownOverride = time.Hour

// ApproveAs approves a release as a user in a role. The role is typed if there are several to
// choose from.
func ApproveAs(user, role string, release v1alpha1.VersionInfo, named bool) Request {
	r := Request{Verb: "approve", Args: []string{"--version", release.Tag}, Tag: release.Tag, Decision: decisionOf(user, release)}
	r.Decision.Spec.Decision, r.Decision.Spec.Role = v1alpha1.DecisionApprove, role
	if named && role != "" {
		r.Args = append(r.Args, "--role", role)
	}
	return r
}

// OverrideAs lets a release go past the approvals that are missing. The reason is left to the
// user.
func OverrideAs(user string, release v1alpha1.VersionInfo) Request {
	r := Request{Verb: "override", Args: []string{"--version", release.Tag, "--for", "1h", "-m", ""}, Tag: release.Tag, Decision: decisionOf(user, release)}
	r.Decision.Spec.Decision, r.Decision.Spec.For = v1alpha1.DecisionOverride, &metav1.Duration{Duration: shownOverride}
	return r
}

func decisionOf(user string, release v1alpha1.VersionInfo) *v1alpha1.RolloutApproval {
	made := &v1alpha1.RolloutApproval{}
	made.Name, made.UID = "new", "new"
	made.Spec.Version, made.Spec.By.Username = release.Tag, user
	if release.Digest != nil {
		made.Spec.Digest = *release.Digest
	}
	return made
}

// Right returns the verb on Rollouts that a decision needs.
func Right(decision v1alpha1.Decision, role string) string {
	switch {
	case decision == v1alpha1.DecisionOverride:
		return "override"
	case role == "":
		return "approve"
	}
	return "approve:" + role
}

// given returns decisions of people, and that of the request as the API server would store it
// now.
func (r Request) given(before []v1alpha1.RolloutApproval, in promotion.Input) []v1alpha1.RolloutApproval {
	if r.Decision == nil {
		return before
	}
	made := r.Decision.DeepCopy()
	made.CreationTimestamp = metav1.NewTime(in.Now)
	return append(slices.Clone(before), *made)
}

// requesters returns who has asked for releases after the request: the user who makes it, if
// the API server checks that name.
func (r Request) requesters(in promotion.Input) map[string]string {
	user := in.Rollout.Annotations[v1alpha1.DeployUserAnnotation]
	if r.Tag == "" || user == "" || !in.Approvals.Identity.Choosers {
		return nil
	}
	tag, _, _ := strings.Cut(r.Tag, "@")
	return map[string]string{tag: user}
}

// RolesAsked returns the roles that gates ask for, each once; the empty one if a gate asks for
// approvals of any role.
func RolesAsked(gates promotion.Gates) []string {
	var all []string
	for i := range gates.Gates {
		if asks := gates.Gates[i].Spec.Approvals; asks != nil {
			all = append(all, asks.Role)
		}
	}
	for i := range gates.Cluster {
		if asks := gates.Cluster[i].Spec.Approvals; asks != nil {
			all = append(all, asks.Role)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
