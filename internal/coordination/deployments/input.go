// SPDX-License-Identifier: Apache-2.0

// Package deployments decides which Deployment of a namespace may roll out.
//
// [Decide] gets all known facts and returns the whole plan: the journal of every
// coordination, the writes to Deployments, the events to emit, and when time alone may
// change the plan. The caller stores the journals first, under optimistic locks. It acts
// on a component only if all journals of that component were stored.
//
// The files in reading order:
//
//	input.go       the known facts
//	plan.go        the plan
//	decide.go      Decide
//	component.go   which coordination selects which Deployment, and which share a turn
//	memory.go      the entries of the journals about a Deployment
//	pending.go     which Deployments have something to roll out
//	order.go       the order of turns
//	turn.go        which Deployment has the turn, its phase, and the one place where
//	               the turn changes hands
//	bake.go        when a rollout is complete, and for how long it has been
//	back.go        which templates need no bake, because they were ready before
//	failure.go     when Kubernetes has given up a rollout
//	hold.go        the writes to Deployments
//	leave.go       which Deployments to unpause
//	journal.go     the next journals
//	conditions.go  the conditions
//	notes.go       the events
//	values.go      a plan as keys and values, for a log
//	warn.go        the events about manifests that conflict with the plan
package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Input contains the known facts about one namespace.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// Coordinations are all of the namespace that are not being deleted, in any order.
	Coordinations []Coordination
	// Deployments are all of the namespace, selected or not, in any order: those that no
	// coordination selects any more are unpaused. The controller's own Deployment and
	// those that are being deleted are left out.
	Deployments []Deployment
	// HoldMode is the reason and message of the condition HoldMode.
	HoldMode AdmissionMode
	// Other describes another installed coordinator of the same API; empty if there is
	// none. Nothing is touched while there is one.
	Other string
	// Unreadable is the error of a read that failed; nil if none did. No turn begins
	// while there is an error.
	Unreadable error
}

// AdmissionMode describes how waiting Deployments are kept from rolling out.
type AdmissionMode struct {
	// Reason is one of the reasons of the condition HoldMode.
	Reason string
	// Message explains the reason in a sentence.
	Message string
}

// Coordination is a DeploymentCoordination with its journal.
type Coordination struct {
	Name       string
	Generation int64
	Spec       coordinationv1.DeploymentCoordinationSpec
	// Journal is the stored status.
	Journal coordinationv1.DeploymentCoordinationStatus
}

// Deployment contains the known facts about a Deployment and its ReplicaSets.
type Deployment struct {
	// Key is namespace/name.
	Key    string
	UID    types.UID
	Labels map[string]string

	Generation         int64
	ObservedGeneration int64

	// Paused is spec.paused.
	Paused bool
	// HeldBy is the value of the annotation held-by.
	HeldBy string
	// UserPaused means that the annotation rollout-paused is "true".
	UserPaused bool
	// Order is the value of the annotation order; empty if there is none.
	Order string
	// AppliedBy names the Flux object that applies the Deployment, such as
	// "Kustomization flux-system/shop"; empty if none does.
	AppliedBy string
	// PausedBy is the field manager that owns spec.paused, if that is not the
	// controller; empty otherwise.
	PausedBy string
	// WasPaused means that the controller has paused the Deployment with its present
	// template, and has not unpaused it since. If it is not paused, another writer has
	// unpaused it.
	WasPaused bool

	// Template identifies the present pod template of the Deployment.
	Template string
	// TemplateHasSet means that an owned ReplicaSet has that template.
	TemplateHasSet bool
	// OthersUp means that an owned ReplicaSet with another template wants replicas.
	OthersUp bool
	// Unfinished means that Kubernetes has begun to roll out the Deployment and has not
	// reported it as complete. A Pod that fails later, and a change of replicas, do not
	// change that.
	Unfinished bool
	// RolledOut means that the Deployment is observed and not paused, and that the
	// updated, the available and all replicas are as many as wanted now.
	RolledOut bool
	// Available is the condition of that name.
	Available bool
	// Replicas is the number of replicas that are wanted now.
	Replicas int32
	// UpdatedReplicas and AvailableReplicas show the progress.
	UpdatedReplicas, AvailableReplicas int32

	// Failure is the failure that Kubernetes reports, if it does.
	Failure *Failure
	// ProgressDeadline is how long a rollout may make no progress before Kubernetes gives
	// it up; zero if it never does.
	ProgressDeadline time.Duration

	// WriteError is the error of the last write to the Deployment; empty if there was
	// none. It is reported, and changes nothing else.
	WriteError string
}

// Failure is a rollout that Kubernetes has given up.
type Failure struct {
	// Message is the message of Kubernetes.
	Message string
	// At is when the condition was last updated. It may be older than the rollout.
	At time.Time
}
