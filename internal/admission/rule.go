// SPDX-License-Identifier: Apache-2.0

// Package admission pauses Deployments that wait for their turn when they are created or
// changed: the API server stores them paused, so they do not start to roll out.
//
// Rule decides which Deployments these are. The webhook calls it. The
// MutatingAdmissionPolicy in config/coordination implements the same rule in CEL. The
// cases in test/admission run against both. Without a webhook or a policy, the controller
// pauses a Deployment after it was stored. Installed reports which of these is in force.
//
// Admission fails open: if the webhook or the policy fails, or the controller is down,
// Deployments are stored unchanged.
package admission

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Request is a Deployment that a client asks the API server to store.
type Request struct {
	// Username is the user who sends the request.
	Username string
	// Old is the stored Deployment. It is nil if the Deployment is created.
	Old *appsv1.Deployment
	// New is the Deployment to store.
	New *appsv1.Deployment
}

// Rule decides which Deployments are stored paused.
type Rule struct {
	// Controller is the user name of the controller. The rule does not change what
	// this user writes. If it is empty, the rule applies to every user.
	Controller string
}

// PausedBy returns the name of the coordination for which the Deployment must be stored
// paused, and whether there is one. The coordinations are those of its namespace.
//
// A Deployment that is paused already stays unchanged. The rule never unpauses one.
func (r Rule) PausedBy(request Request, coordinations []v1.DeploymentCoordination) (string, bool) {
	if request.New.Spec.Paused || r.Controller != "" && request.Username == r.Controller {
		return "", false
	}
	waiting := selecting(request.New, coordinations)
	if !isPausedByUser(request.New) {
		if slices.ContainsFunc(waiting, request.hasTurnIn) {
			return "", false
		}
		waiting = slices.DeleteFunc(waiting, func(c *v1.DeploymentCoordination) bool { return !request.mustWaitFor(c) })
	}
	if len(waiting) == 0 {
		return "", false
	}
	if by := request.New.Annotations[v1.HeldByAnnotation]; by != "" {
		return by, true // several coordinations may pause it; keep the name that is stored
	}
	return slices.MinFunc(waiting, byName).Name, true
}

// selecting returns the coordinations that select the Deployment. An empty or invalid
// selector selects nothing.
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

// isPausedByUser reports whether a user wants the Deployment to stay paused.
func isPausedByUser(d *appsv1.Deployment) bool {
	return d.Annotations[v1.RolloutPausedAnnotation] == v1.RolloutPausedValue
}

// hasTurnIn reports whether the Deployment has the turn for what is requested. A
// Deployment that was deleted and created again is a different one, if the coordination has
// stored the UID. The turn is for one template, until that is rolled out and stays so: the
// next template needs a turn of its own. Otherwise a release that comes during a bake would
// start the Deployment that bakes, first and without waiting for anyone.
func (r Request) hasTurnIn(c *v1.DeploymentCoordination) bool {
	name := r.New.Namespace + "/" + r.New.Name
	if !c.Status.HasTurn(name) {
		return false
	}
	return !slices.ContainsFunc(c.Status.DeploymentStates, func(s v1.DeploymentState) bool {
		return s.Name == name && (s.UID != "" && s.UID != r.New.UID || s.IsRolledOut() && r.changesTemplate())
	})
}

// changesTemplate reports whether a stored Deployment gets another Pod template.
func (r Request) changesTemplate() bool {
	return r.Old != nil && !equality.Semantic.DeepEqual(r.Old.Spec.Template, r.New.Spec.Template)
}

// mustWaitFor reports whether the change has to wait for a turn. A coordination with the
// idle policy Pause pauses every Deployment that does not have the turn. With Resume, it
// pauses only new Deployments, changes of the Pod template, and Deployments that it has
// already paused: an update of the whole object without spec.paused would unpause those.
func (r Request) mustWaitFor(c *v1.DeploymentCoordination) bool {
	return r.Old == nil || c.Spec.IdlePolicy != v1.IdleResume ||
		r.Old.Spec.Paused && r.Old.Annotations[v1.HeldByAnnotation] == c.Name ||
		r.changesTemplate()
}
