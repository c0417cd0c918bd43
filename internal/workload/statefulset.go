// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// StatefulSet judges a StatefulSet. With the strategy OnDelete it is Current only when
// all the wanted pods exist, have the wanted revision, are ready and available, and there
// are no others. Its status has to be of the present generation: until then its revision
// has no meaning.
//
// It is Held while pods are outdated and its owner has paused its part in a rollout
// group. A StatefulSet of another strategy is as kstatus judges it.
func StatefulSet(s *appsv1.StatefulSet) State {
	state := kstatusOf(s, statefulSetKind)
	wanted := ptr.Deref(s.Spec.Replicas, unsaidReplicas)
	state.Outdated = max(s.Status.Replicas-s.Status.UpdatedReplicas, 0)
	state.Unavailable = max(wanted-s.Status.AvailableReplicas, 0)
	if s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType || state.Phase != Current {
		return state
	}
	return onDelete(s, wanted, state)
}

func onDelete(s *appsv1.StatefulSet, wanted int32, state State) State {
	status := s.Status
	switch {
	case status.ObservedGeneration < s.Generation:
		return state.as(Progressing, fmt.Sprintf("StatefulSet generation is %d, but latest observed generation is %d",
			s.Generation, status.ObservedGeneration))
	case status.Replicas < wanted:
		return state.as(Progressing, fmt.Sprintf("Replicas: %d/%d", status.Replicas, wanted))
	case status.UpdatedReplicas < wanted && isPausedInGroup(s):
		return state.as(Held, fmt.Sprintf("held by the annotation %s (updated: %d/%d)", rolloutgroup.PausedAnnotation, status.UpdatedReplicas, wanted))
	case status.UpdatedReplicas < wanted:
		return state.as(Progressing, fmt.Sprintf("Updated: %d/%d", status.UpdatedReplicas, wanted))
	case status.Replicas > wanted:
		return state.as(Progressing, fmt.Sprintf("Pending termination: %d", status.Replicas-wanted))
	case status.ReadyReplicas < wanted:
		return state.as(Progressing, fmt.Sprintf("Ready: %d/%d", status.ReadyReplicas, wanted))
	case status.AvailableReplicas < wanted:
		return state.as(Progressing, fmt.Sprintf("Available: %d/%d", status.AvailableReplicas, wanted))
	}
	return state.as(Current, fmt.Sprintf("All pods are updated and available. Replicas: %d", wanted))
}

func isPausedInGroup(s *appsv1.StatefulSet) bool {
	return s.Labels[rolloutgroup.Label] != "" && s.Annotations[rolloutgroup.PausedAnnotation] == rolloutgroup.PausedValue
}
