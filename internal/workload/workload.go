// SPDX-License-Identifier: Apache-2.0

// Package workload judges the state of one object relative to its spec: whether it has
// reached it, is progressing, is paused, or has failed. HealthChecks and
// DeploymentCoordinations both use it, and so cannot disagree.
//
// It uses kstatus, except for two kinds that kstatus misjudges when their pods are rolled
// out in turn. For kstatus a paused Deployment is in progress for ever, and a StatefulSet
// of the strategy OnDelete is current at once (deployment.go, statefulset.go).
//
// Neither says whether what is missing has run and failed. The pods show that (pods.go).
//
// It neither reads the API nor writes to it.
package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Phase is the state of an object relative to its spec.
type Phase string

const (
	// Current means that the object is as its spec wants.
	Current Phase = "Current"
	// Progressing means that it is changing, or that its spec has not been observed yet.
	Progressing Phase = "Progressing"
	// Held means that it is paused until a user or a controller resumes it.
	Held Phase = "Held"
	// Failed means that it does not become Current by itself.
	Failed Phase = "Failed"
	// Terminating means that it is being deleted.
	Terminating Phase = "Terminating"
	// Unknown means that its status cannot be understood.
	Unknown Phase = "Unknown"
)

// State is the state that one object reports.
type State struct {
	// Phase is the state relative to the spec.
	Phase Phase
	// Message explains the phase to users. It does not change without a cause.
	Message string
	// Since is when a failure began. It is zero if the object does not report it, and in
	// every other phase.
	Since time.Time
	// RecheckAt is when time alone may change the phase; zero means never.
	RecheckAt time.Time
	// NotStarted is true if what is missing was not started, and nothing that has run has
	// failed. It is known only after [State.ByPods] or [State.WithoutPods].
	NotStarted bool
	// ObservedGeneration is the generation that the status is about; zero if the object
	// does not report it.
	ObservedGeneration int64

	// Outdated counts the pods that exist and do not have the wanted template. It is zero
	// for kinds other than Deployment and StatefulSet.
	Outdated int32
	// Unavailable counts the wanted pods that are not available. It is zero for kinds
	// other than Deployment and StatefulSet.
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
	if err := fromUnstructured(object, typed); err != nil {
		return incomprehensible(err)
	}
	return judge(typed)
}

func fromUnstructured(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

func incomprehensible(err error) State {
	return State{Phase: Unknown, Message: "its status cannot be understood: " + err.Error()}
}

// as returns the state with another verdict, which is not a failure.
func (s State) as(phase Phase, message string) State {
	s.Phase, s.Message, s.Since = phase, message, time.Time{}
	return s
}
