// SPDX-License-Identifier: Apache-2.0

// Package deployments decides which Deployment of a namespace may roll out.
//
// [Decide] is given all that is known and returns the whole answer: the journal
// of every coordination, what to write to which Deployment, what to tell, and
// when time alone may change the answer. The caller stores the journals first,
// under optimistic locks, and acts only if all of them were stored.
//
// In the order in which a reader meets them:
//
//	input.go       what is known
//	plan.go        what is to be done
//	decide.go      Decide
//	component.go   who selects whom, and who shares a turn
//	memory.go      what the journals know of a Deployment
//	pending.go     what has something to roll out
//	order.go       who goes first
//	turn.go        who has the turn, where it stands, and the one place where it
//	               changes hands
//	bake.go        when a rollout is complete, and for how long it has been
//	failure.go     when Kubernetes has given it up
//	hold.go        what to write to Deployments
//	leave.go       what to give back
//	journal.go     what is written down
//	conditions.go  what the conditions say
//	notes.go       what is told as events
//	values.go      a plan as keys and values, for a log
//	warn.go        what is told of manifests that go against it
package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Input is what is known of one namespace.
type Input struct {
	// Now is the time that everything is judged at.
	Now time.Time
	// Coordinations are all of the namespace that are not being deleted, in any
	// order.
	Coordinations []Coordination
	// Deployments are all of the namespace but the controller's own and those that
	// are being deleted, in any order, and whether a coordination selects them or
	// not: those that none selects any more are given back.
	Deployments []Deployment
	// HoldMode is the reason and message of the condition HoldMode.
	HoldMode Hold
	// Other names another installed coordinator of the same API; empty if there is
	// none. Nothing is touched while there is one.
	Other string
	// Unreadable says what could not be read; nil if everything could. Nothing
	// is begun while there is something.
	Unreadable error
}

// Hold is the form in which Deployments that wait are kept from rolling.
type Hold struct {
	// Reason is one of those of the condition HoldMode.
	Reason string
	// Message says in a sentence what that means.
	Message string
}

// Coordination is a DeploymentCoordination with its journal.
type Coordination struct {
	Name       string
	Generation int64
	Spec       coordinationv1.DeploymentCoordinationSpec
	// Journal is the status as it is stored.
	Journal coordinationv1.DeploymentCoordinationStatus
}

// Deployment is what is known of a Deployment and its ReplicaSets.
type Deployment struct {
	// Key is the namespace and the name, with a slash between.
	Key    string
	UID    types.UID
	Labels map[string]string

	Generation         int64
	ObservedGeneration int64

	// Paused is spec.paused.
	Paused bool
	// HeldBy is the value of the annotation held-by.
	HeldBy string
	// UserHeld means that the annotation rollout-paused is "true".
	UserHeld bool
	// Order is the annotation order, as it is written; empty if there is none.
	Order string
	// AppliedBy names the Flux object that applies the Deployment, such as
	// "Kustomization flux-system/shop"; empty if none does.
	AppliedBy string
	// PausedBy is the field manager that owns spec.paused, if that is somebody
	// else than the controller; empty otherwise.
	PausedBy string
	// WasHeld: the controller has paused it with the template that it has, and has not
	// unpaused it since. If it is not paused, somebody else has unpaused it.
	WasHeld bool

	// Template identifies the pod template that the Deployment has now.
	Template string
	// TemplateHasSet: an owned ReplicaSet carries that template.
	TemplateHasSet bool
	// OthersUp: an owned ReplicaSet with another template wants replicas.
	OthersUp bool
	// Unfinished: Kubernetes has begun to roll the Deployment out and has not said
	// that it is complete. A Pod that fails later, and a change of replicas, do not
	// change that.
	Unfinished bool
	// RolledOut: not paused, observed, and updated, available and all replicas
	// are as many as are wanted now.
	RolledOut bool
	// Available is the condition of that name.
	Available bool
	// Replicas are those that are wanted now.
	Replicas int32
	// UpdatedReplicas and AvailableReplicas say how far it is.
	UpdatedReplicas, AvailableReplicas int32

	// Failure is what Kubernetes says went wrong, if it does.
	Failure *Failure
	// ProgressDeadline is how long a rollout may make no progress before Kubernetes
	// gives it up; zero if it never does.
	ProgressDeadline time.Duration

	// WriteError says what went wrong with the last write to the Deployment; empty
	// if nothing did. It is shown, and changes nothing else.
	WriteError string
}

// Failure is a rollout that Kubernetes has given up.
type Failure struct {
	// Message is Kubernetes' own.
	Message string
	// At is when the condition was last updated. It may be older than the rollout.
	At time.Time
}
