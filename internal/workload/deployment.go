// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// unsaidReplicas is the wanted number if spec.replicas is not set, as in Kubernetes.
const unsaidReplicas = 1

// reasonTimedOut is the reason that Kubernetes sets when a Deployment has not progressed
// within spec.progressDeadlineSeconds.
const reasonTimedOut = "ProgressDeadlineExceeded"

// Deployment judges a Deployment. A paused Deployment is
//
//   - Current if all the wanted pods have its template and are available;
//   - Held if not all of its pods have its template;
//   - otherwise as kstatus judges it, such as while it is being scaled.
//
// Every other Deployment is as kstatus judges it. The message of a failure is the one of
// Kubernetes, which names the ReplicaSet.
//
// The status does not show whether the template of a paused Deployment without replicas
// is rolled out. It is then assumed to be.
func Deployment(d *appsv1.Deployment) State {
	state := kstatusOf(d, deploymentKind)
	wanted := ptr.Deref(d.Spec.Replicas, unsaidReplicas)
	state.Outdated = max(d.Status.Replicas-d.Status.UpdatedReplicas, 0)
	state.Unavailable = max(wanted-d.Status.AvailableReplicas, 0)
	switch {
	case state.Phase == Terminating, d.Status.ObservedGeneration < d.Generation:
		return state
	case d.Spec.Paused && !isOnAllPods(d.Status, wanted):
		return state.as(Held, fmt.Sprintf("%s (updated: %d/%d)", holder(d), d.Status.UpdatedReplicas, wanted))
	case d.Spec.Paused && isComplete(d.Status, wanted):
		return state.as(Current, fmt.Sprintf("Deployment is paused, rolled out and available. Replicas: %d", wanted))
	case state.Phase == Failed:
		state.Message = failure(d, state.Message)
	}
	return state
}

// isOnAllPods reports whether every existing pod has the Deployment's template. A
// Deployment that wants pods and has none waits for its first one.
func isOnAllPods(s appsv1.DeploymentStatus, wanted int32) bool {
	return s.UpdatedReplicas == s.Replicas && (s.Replicas > 0 || wanted == 0)
}

func isComplete(s appsv1.DeploymentStatus, wanted int32) bool {
	return s.UpdatedReplicas == wanted && s.Replicas == wanted && s.AvailableReplicas == wanted
}

// holder returns who has to act before the Deployment continues. The annotation of a user
// is named first: the turn alone would not end the pause.
func holder(d *appsv1.Deployment) string {
	switch coordination := d.Annotations[coordinationv1.HeldByAnnotation]; {
	case d.Annotations[coordinationv1.RolloutPausedAnnotation] == coordinationv1.RolloutPausedValue:
		return "held by the annotation " + coordinationv1.RolloutPausedAnnotation
	case coordination != "":
		return "held by DeploymentCoordination " + coordination + " until its turn"
	}
	return "paused by spec.paused"
}

// failure returns the message of Kubernetes about a missed deadline.
func failure(d *appsv1.Deployment, otherwise string) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == reasonTimedOut && c.Message != "" {
			return c.Message
		}
	}
	return otherwise
}
