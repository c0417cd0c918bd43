// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var (
	clusterGateKind = schema.GroupKind{Group: "kuberik.com", Kind: v1alpha1.ClusterRolloutGateKind}
	roleKinds       = []schema.GroupKind{{Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}}
	approvalsPath   = []string{"spec", "approvals"}
	approverPath    = child(approvalsPath, "role")
)

// approverVerb begins the verb of those who approve in a role.
const approverVerb = "approve:"

// eachAsking visits the gates that ask for approvals.
func (s *set) eachAsking(visit func(*object)) {
	for _, kind := range []schema.GroupKind{gateKind, clusterGateKind} {
		for _, o := range s.byKind[kind] {
			if o.has(approvalsPath...) {
				visit(o)
			}
		}
	}
}

// checkApproverRoles finds gates that ask for approvals in a role that nobody has. It needs to
// know such roles: they may all be elsewhere.
func checkApproverRoles(r *report) {
	roles := r.approverRoles()
	if len(roles) == 0 {
		return
	}
	r.eachAsking(func(o *object) {
		role := o.text(approverPath...)
		if role == "" || o.isUnknown(approverPath...) || slices.Contains(roles, role) || slices.Contains(roles, "*") {
			return
		}
		r.find(at{o, approverPath}, fmt.Sprintf("nobody may approve in the role %s: no Role here has the verb %s%s", role, approverVerb, role),
			fmt.Sprintf("correct it, or allow the verb on rollouts; the roles here are %s", strings.Join(roles, ", ")))
	})
}

// approverRoles returns the roles in which some Role lets people approve; "*" is all of them.
func (s *set) approverRoles() []string {
	var all []string
	for _, kind := range roleKinds {
		for _, o := range s.byKind[kind] {
			for _, rule := range o.items("rules") {
				all = append(all, approverRolesIn(rule)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func approverRolesIn(rule any) []string {
	fields, _ := rule.(map[string]any)
	resources, _ := fields["resources"].([]any)
	verbs, _ := fields["verbs"].([]any)
	var all []string
	for _, verb := range verbs {
		text, _ := verb.(string)
		switch role, is := strings.CutPrefix(text, approverVerb); {
		case !slices.Contains(resources, any("rollouts")) && !slices.Contains(resources, any("*")):
		case is:
			all = append(all, role)
		case text == "*":
			all = append(all, "*")
		}
	}
	return all
}

// checkApprovedDigests finds gates that ask for approvals of releases whose ImagePolicy does not
// say which content a tag has: approvals are of content.
func checkApprovedDigests(r *report) {
	for _, o := range r.byKind[gateKind] {
		if !o.has(approvalsPath...) {
			continue
		}
		for _, rollout := range r.byName[rolloutKind][o.text("spec", "rolloutRef", "name")] {
			if sameNamespace(rollout.namespace(), o.namespace()) != yes {
				continue
			}
			for _, policy := range r.withoutDigests(rollout) {
				r.find(at{o, approvalsPath}, fmt.Sprintf("%s asks for approvals of content, and %s does not say which content a tag has", o, policy),
					"set spec.digestReflectionPolicy: Always of the ImagePolicy")
			}
		}
	}
}

// withoutDigests returns the ImagePolicies of a Rollout that do not say the digests of tags.
func (s *set) withoutDigests(rollout *object) []*object {
	var all []*object
	for _, policy := range s.byName[imagePolicyKind][rollout.text("spec", "releasesImagePolicy", "name")] {
		reflects := policy.text("spec", "digestReflectionPolicy")
		if sameNamespace(policy.namespace(), rollout.namespace()) == yes && (reflects == "" || reflects == "Never") && !policy.isUnknown("spec", "digestReflectionPolicy") {
			all = append(all, policy)
		}
	}
	return all
}

// checkWrittenGates finds gates that ask for approvals and that programs write, which may not
// know the field, and then remove it.
func checkWrittenGates(r *report) {
	for _, o := range r.byKind[gateKind] {
		if !o.has(approvalsPath...) {
			continue
		}
		if written := programWriting(o); written != "" {
			r.find(at{o, approvalsPath}, fmt.Sprintf("%s: a program that does not know spec.approvals removes it, and then nobody is asked", written),
				"ask for approvals in a gate of its own")
		}
	}
}

// programWriting says which program writes a gate, or is likely to; empty if none does.
func programWriting(o *object) string {
	switch {
	case o.has("spec", "allowedVersions"):
		return "spec.allowedVersions is written by programs"
	case strings.HasPrefix(o.name(), "schedule-gate-"):
		return "a gate of this name is written by a controller of schedules"
	}
	return ""
}
