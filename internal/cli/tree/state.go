// SPDX-License-Identifier: Apache-2.0

package tree

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// mostConditions is how many conditions of an object are shown.
const mostConditions = 20

// show fills the node of an object with its state.
func (n *Node) show(object *unstructured.Unstructured) {
	state := workload.Of(object)
	n.Object.UID, n.Object.Version = object.GetUID(), object.GroupVersionKind().Version
	n.Sign, n.Message = phaseSign(state.Phase), truncate.Message(state.Message)
	n.Conditions = conditionsIn(object)
	if n.Sign != Well {
		n.Text = n.Message
	}
	if state.Phase == workload.Held && waitsForTurn(object) {
		n.Sign = Waits
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		n.Sign, n.Text = Suspended, "is suspended: resume it"
	}
}

func phaseSign(p workload.Phase) Sign {
	switch p {
	case workload.Current:
		return Well
	case workload.Progressing, workload.Terminating:
		return Waits
	case workload.Held:
		return Suspended
	case workload.Failed:
		return Failed
	case workload.Unknown:
	}
	return Unknown
}

// waitsForTurn reports whether a coordination has paused a Deployment, and not a user.
func waitsForTurn(object *unstructured.Unstructured) bool {
	annotations := object.GetAnnotations()
	return annotations[coordinationv1.HeldByAnnotation] != "" &&
		annotations[coordinationv1.RolloutPausedAnnotation] != coordinationv1.RolloutPausedValue
}

// conditionsIn returns the conditions of an object of any kind. It skips what cannot be
// decoded as one.
func conditionsIn(object *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var all []metav1.Condition
	for _, item := range list[:min(len(list), mostConditions)] {
		var c metav1.Condition
		fields, ok := item.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
