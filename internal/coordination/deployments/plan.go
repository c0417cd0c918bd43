// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Plan contains what to do in a namespace now.
type Plan struct {
	// Journals are the next statuses of all coordinations, by name.
	Journals []Journal
	// Writes are the writes to Deployments once the journals of their component are
	// stored. Those that pause come before those that unpause. A plan with writes must be
	// made from reads without the cache, like one that Begins.
	Writes []Write
	// Begins means that a turn is given, passed on or ended. Such a plan must be made
	// from coordinations and Deployments that were read without the cache.
	Begins bool
	// RecheckAt is when time alone may change the plan; zero means never.
	RecheckAt time.Time
}

// Journal is the next status of a coordination.
type Journal struct {
	Coordination string
	// Component is the same for all coordinations that share Deployments, directly or
	// through others. A failed write in one component does not affect another.
	Component string
	Status    coordinationv1.DeploymentCoordinationStatus
	// Notes are emitted as events once the status is stored.
	Notes []Note
}

// Note is an event. A note without a reason is not emitted.
type Note struct {
	// Reason is one of the event reasons of the API.
	Reason string
	// Warning sets the type of the event to Warning; otherwise it is Normal.
	Warning bool
	// Message is the message for users.
	Message string
}

// WriteKind is the kind of a write to a Deployment.
type WriteKind string

const (
	// WritePause pauses a Deployment and names the coordination in held-by.
	WritePause WriteKind = "Pause"
	// WriteUnpause unpauses a Deployment that may roll out, and removes held-by.
	WriteUnpause WriteKind = "Unpause"
	// WriteMark corrects held-by and leaves spec.paused as it is: a Deployment that is
	// already paused has to be restored later.
	WriteMark WriteKind = "Mark"
	// WriteRestore removes held-by from a Deployment that no coordination selects, and
	// unpauses it unless a user has paused it by annotation.
	WriteRestore WriteKind = "Restore"
)

// Write is a change of spec.paused and of the annotation held-by. It is applied only to
// the version that was decided upon.
type Write struct {
	Kind WriteKind
	// Component is the component whose journals have to be stored before; empty if no
	// coordination selects the Deployment.
	Component string
	// Stops means that the Deployment rolls out. If it cannot be paused, no other
	// Deployment of its component is unpaused.
	Stops bool
	// Deployment and UID identify the Deployment; one with another UID is another one.
	Deployment string
	UID        types.UID
	// HeldBy is the next value of the annotation; empty removes it.
	HeldBy string
	// Paused is the next value of spec.paused.
	Paused bool
	// Done is emitted about the Coordinations when the write was made and verified, and
	// Failed when it failed. The error is added to the message of Failed. There are no
	// Coordinations if none selects the Deployment.
	Coordinations []string
	Done, Failed  Note
}
