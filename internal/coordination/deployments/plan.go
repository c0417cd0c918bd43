// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Plan is what to do in a namespace now.
type Plan struct {
	// Journals are the next statuses of all coordinations, by name.
	Journals []Journal
	// Writes are what to do to Deployments once the journals of their component are
	// stored, in this order: who has to stop comes before who may go. A plan with
	// writes rests, like one that Begins, on what was read past the cache.
	Writes []Write
	// Begins means that a turn is given, passed on or ended. Such a plan must rest
	// on coordinations and Deployments that were read past the cache.
	Begins bool
	// RecheckAt is when time alone may change the plan; zero means never.
	RecheckAt time.Time
}

// Journal is the next status of a coordination.
type Journal struct {
	Coordination string
	// Component is the same for all coordinations that share Deployments, directly
	// or through others. What cannot be written of one component does not concern
	// another.
	Component string
	Status    coordinationv1.DeploymentCoordinationStatus
	// Notes are told as events once the status is stored.
	Notes []Note
}

// Note is an event. One without a reason is not told.
type Note struct {
	// Reason is one of the event reasons of the API.
	Reason string
	// Warning is the type of the event; otherwise it is Normal.
	Warning bool
	// Message is for people.
	Message string
}

// WriteKind is what to write to a Deployment.
type WriteKind string

const (
	// WriteHold pauses a Deployment and names the coordination in held-by.
	WriteHold WriteKind = "Hold"
	// WriteRelease unpauses a Deployment that may roll. The annotation held-by
	// goes with it.
	WriteRelease WriteKind = "Release"
	// WriteMark puts held-by right and leaves spec.paused as it is: a Deployment that
	// is paused already has to be given back one day.
	WriteMark WriteKind = "Mark"
	// WriteGiveBack removes held-by from a Deployment that no coordination selects,
	// and unpauses it unless somebody holds it by annotation.
	WriteGiveBack WriteKind = "GiveBack"
)

// Write is a change of spec.paused and of the annotation held-by. It is made
// only to the version that was decided upon.
type Write struct {
	Kind WriteKind
	// Component is that of the journals which have to be stored before; empty if no
	// coordination selects the Deployment.
	Component string
	// Stops means that the Deployment rolls out. If it cannot be stopped, nobody of
	// its component is released.
	Stops bool
	// Deployment and UID say which; one with another UID is another.
	Deployment string
	UID        types.UID
	// HeldBy is the annotation's next value; empty removes it.
	HeldBy string
	// Paused is the next value of spec.paused.
	Paused bool
	// Done and Failed are told about these coordinations when the write was made
	// and seen to be, and when it could not be made. The error is added to the
	// message of Failed. There are none to tell when nothing selects the
	// Deployment.
	Coordinations []string
	Done, Failed  Note
}
