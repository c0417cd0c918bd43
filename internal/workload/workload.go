// SPDX-License-Identifier: Apache-2.0

// Package workload says of one object how far it is with what its spec wants:
// whether it has got there, is on its way, is held, or has failed. HealthChecks
// and both workload coordinators ask it, so that they cannot disagree.
//
// It is kstatus but for two kinds that kstatus misjudges when their pods are
// rolled out in turn. To it a paused Deployment is in progress for ever, and a
// StatefulSet of the strategy OnDelete is current at once (deployment.go,
// statefulset.go).
//
// It neither reads the API nor writes to it.
package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Phase is how far an object is.
type Phase string

const (
	// Current: the object is what its spec wants.
	Current Phase = "Current"
	// Progressing: it is on its way, or nobody has acted on its spec yet.
	Progressing Phase = "Progressing"
	// Held: it waits until somebody lets it go on.
	Held Phase = "Held"
	// Failed: it does not get there by itself.
	Failed Phase = "Failed"
	// Terminating: it is being deleted.
	Terminating Phase = "Terminating"
	// Unknown: its status cannot be understood.
	Unknown Phase = "Unknown"
)

// State is what one object says of itself.
type State struct {
	// Phase is how far it is.
	Phase Phase
	// Message says why, for people. It does not change without cause.
	Message string
	// Since is when a failure began. It is zero if the object does not say, and
	// in every other phase.
	Since time.Time
	// RecheckAt is when time alone may change the phase; zero means never.
	RecheckAt time.Time
	// ObservedGeneration is the generation that the status is about; zero if the
	// object does not say.
	ObservedGeneration int64

	// Outdated counts the pods that exist and are not of the template that is
	// wanted. It is zero for kinds other than Deployment and StatefulSet.
	Outdated int32
	// Unavailable counts the pods that are wanted and not available. It is zero
	// for kinds other than Deployment and StatefulSet.
	Unavailable int32
}

// Of judges an object of any kind.
func Of(object *unstructured.Unstructured) State {
	switch object.GroupVersionKind().GroupKind() {
	case deploymentKind.GroupKind():
		return readAs(object, Deployment)
	case statefulSetKind.GroupKind():
		return readAs(object, StatefulSet)
	}
	return kstatus(object)
}

func readAs[T any](object *unstructured.Unstructured, judge func(*T) State) State {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return incomprehensible(err)
	}
	return judge(typed)
}

func incomprehensible(err error) State {
	return State{Phase: Unknown, Message: "its status cannot be understood: " + err.Error()}
}

// as is the state with another verdict, which is no failure.
func (s State) as(phase Phase, message string) State {
	s.Phase, s.Message, s.Since = phase, message, time.Time{}
	return s
}
