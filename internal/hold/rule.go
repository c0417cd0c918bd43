// SPDX-License-Identifier: Apache-2.0

// Package hold keeps Deployments that wait for their turn from rolling at the
// moment somebody creates or changes them: the API server pauses them before it
// stores them.
//
// Rule is what is meant. The webhook asks it, and the MutatingAdmissionPolicy in
// config/coordination says the same in CEL; the cases in test/admission hold all
// of them to each other. Without either, the controller pauses after the fact.
// Admission says which of these is in force.
//
// No form may stand in anybody's way: if one fails, or the controller is down,
// Deployments are stored as they were asked for.
package hold

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Request is a Deployment that somebody asks the API server to store.
type Request struct {
	// Username is who asks.
	Username string
	// Old is what is stored; nil if the Deployment is created.
	Old *appsv1.Deployment
	// New is what is to be stored.
	New *appsv1.Deployment
}

// Rule says which Deployments are to be stored paused.
type Rule struct {
	// Controller is the user name of the controller, which may release what it
	// wants to. If it is empty, nobody may.
	Controller string
}

// HeldBy says whether the Deployment is to be stored paused, and then which
// coordination it is held by. The coordinations are those of its namespace.
//
// What is paused already is left as it is, and nothing is ever released.
func (r Rule) HeldBy(request Request, coordinations []v1.DeploymentCoordination) (string, bool) {
	if request.New.Spec.Paused || r.Controller != "" && request.Username == r.Controller {
		return "", false
	}
	holders := selecting(request.New, coordinations)
	if !isHeldByHand(request.New) {
		if slices.ContainsFunc(holders, request.isActiveIn) {
			return "", false
		}
		holders = slices.DeleteFunc(holders, func(c *v1.DeploymentCoordination) bool { return !request.mustWaitFor(c) })
	}
	if len(holders) == 0 {
		return "", false
	}
	if by := request.New.Annotations[v1.HeldByAnnotation]; by != "" {
		return by, true // as it was: several may hold, and one of them is named
	}
	return slices.MinFunc(holders, byName).Name, true
}

// selecting are the coordinations that select the Deployment. A selector that
// is empty, or cannot be understood, selects nothing.
func selecting(d *appsv1.Deployment, coordinations []v1.DeploymentCoordination) []*v1.DeploymentCoordination {
	var found []*v1.DeploymentCoordination
	for i := range coordinations {
		c := &coordinations[i]
		selector, err := metav1.LabelSelectorAsSelector(&c.Spec.LabelSelector)
		if err == nil && c.Namespace == d.Namespace && !selector.Empty() && selector.Matches(labels.Set(d.Labels)) {
			found = append(found, c)
		}
	}
	return found
}

func byName(a, b *v1.DeploymentCoordination) int { return strings.Compare(a.Name, b.Name) }

// isHeldByHand says whether somebody wants the Deployment to stay paused.
func isHeldByHand(d *appsv1.Deployment) bool {
	return d.Annotations[v1.RolloutPausedAnnotation] == v1.RolloutPausedValue
}

// isActiveIn says whether the Deployment has the turn. One that was created
// anew under its name is another, where the journal says which one is meant.
func (r Request) isActiveIn(c *v1.DeploymentCoordination) bool {
	active := c.Status.ActiveDeployment
	if active != r.New.Namespace+"/"+r.New.Name {
		return false
	}
	return !slices.ContainsFunc(c.Status.DeploymentStates, func(s v1.DeploymentState) bool {
		return s.Name == active && s.UID != "" && s.UID != r.New.UID
	})
}

// mustWaitFor says whether what changes has to wait for a turn. While nothing is
// rolled out, a coordination that pauses idle Deployments lets none of them be
// released. One that does not lets everything pass but a new template, and but what
// it holds already: a full update that leaves out spec.paused would release it.
func (r Request) mustWaitFor(c *v1.DeploymentCoordination) bool {
	return r.Old == nil || c.Spec.IdlePolicy != v1.IdleResume ||
		r.Old.Spec.Paused && r.Old.Annotations[v1.HeldByAnnotation] == c.Name ||
		!equality.Semantic.DeepEqual(r.Old.Spec.Template, r.New.Spec.Template)
}
