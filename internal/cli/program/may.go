// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// May asks the API server whether the user has a verb on a Rollout. It answers everybody.
func (c Cluster) May(ctx context.Context, verb string, rollout *v1alpha1.Rollout) (bool, error) {
	return c.Allows(ctx, authorizationv1.ResourceAttributes{
		Namespace: rollout.Namespace, Verb: verb, Group: v1alpha1.GroupVersion.Group, Resource: "rollouts", Name: rollout.Name,
	})
}

// Allows asks the API server whether the user has a right. It answers everybody.
func (c Cluster) Allows(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.Spec.ResourceAttributes = &right
	if err := c.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether you may %s: %w", right.Verb, err)
	}
	return review.Status.Allowed, nil
}

// MayList asks the API server whether the user may list the Rollouts of a namespace; of all
// namespaces if it has no name.
func (c Cluster) MayList(ctx context.Context, namespace string) (bool, error) {
	return c.May(ctx, "list", &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
}

// Person is a user, and what that user may decide of a Rollout.
type Person struct {
	// Name is how the API server knows the user; empty if it does not say.
	Name string
	// Rights are verbs on the Rollout, and whether the user has them; nil if nobody asked.
	Rights map[string]bool
}

// PersonOf returns who the user is, if gates of the Rollout ask for approvals.
func (p *Program) PersonOf(ctx context.Context, v View) (Person, error) {
	asked := v.RolesAsked()
	if len(asked) == 0 {
		return Person{}, nil
	}
	c, err := p.Connect(ctx)
	if err != nil {
		return Person{}, err
	}
	who := &authenticationv1.SelfSubjectReview{}
	_ = c.Client.Create(ctx, who) // who has no name can decide nothing
	person := Person{Name: who.Status.UserInfo.Username, Rights: map[string]bool{}}
	rights := []string{request.Right(v1alpha1.DecisionOverride, "")}
	for _, role := range asked {
		rights = append(rights, request.Right(v1alpha1.DecisionApprove, role))
	}
	for _, right := range rights {
		if person.Rights[right], err = c.May(ctx, right, v.Rollout); err != nil {
			return person, err
		}
	}
	return person, nil
}

// RolesAsked returns the roles that the gates of the Rollout ask for. Of gates that the user
// may not read, only their names are known, by the status.
func (v View) RolesAsked() []string {
	all := request.RolesAsked(v.Gates)
	if _, unread := v.Unread["ClusterRolloutGates"]; unread {
		for _, gate := range v.Rollout.Status.Gates {
			if strings.HasPrefix(gate.Name, "cluster/") {
				all = append(all, "")
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// MayApprove reports whether the user can approve a release, in any role that is asked for.
func (v View) MayApprove(release v1alpha1.VersionInfo) bool {
	return slices.ContainsFunc(v.RolesAsked(), func(role string) bool {
		return v.Person.may(request.ApproveAs(v.Person.Name, role, release, false).Decision, v.Approvals.Given)
	})
}

// may reports whether the user can make a decision that was not made yet.
func (p Person) may(made *v1alpha1.RolloutApproval, given []v1alpha1.RolloutApproval) bool {
	return p.Rights == nil || p.Name != "" && p.Rights[request.Right(made.Spec.Decision, made.Spec.Role)] &&
		!slices.ContainsFunc(given, func(g v1alpha1.RolloutApproval) bool {
			return g.Spec.By.Username == p.Name && g.Spec.Decision == made.Spec.Decision && g.Spec.Role == made.Spec.Role &&
				g.Spec.Version == made.Spec.Version && g.Spec.Digest == made.Spec.Digest
		})
}

// Lacks returns the verbs that approvals of the Rollout need and that the user does not have.
func (p Person) Lacks() []string {
	var all []string
	for right, has := range p.Rights {
		if !has && right != request.Right(v1alpha1.DecisionOverride, "") {
			all = append(all, right)
		}
	}
	slices.Sort(all)
	return all
}

// User is the user, and what of a Rollout that user can change.
func (v View) User() explain.User { return explain.User{Name: v.Person.Name, Possible: v.Possible} }
