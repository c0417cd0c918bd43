// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// observation is the state that one object reports. Its phase is Unknown when the object
// could not be read or understood.
type observation struct {
	name string
	workload.State
	// pods show why the object is in its state; nil if none do.
	pods *workload.Pods
}

// objectName returns "Deployment shop/web", or "Namespace shop" for a cluster-wide
// object.
func objectName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

const (
	// longestMessage is how many characters of the message of an object are kept.
	longestMessage = health.MaxMessageLength
	// longestSelector is how many bytes a selector may have by which pods are found.
	longestSelector = 16 << 10
)

// observe keeps a bounded part of an object: thousands are observed together.
func observe(object *unstructured.Unstructured) observation {
	state := workload.Of(object)
	state.Message = truncate.Text(state.Message, longestMessage)
	pods := workload.PodsOf(object, state)
	if pods != nil && len(pods.Selector.String()) > longestSelector {
		pods = nil
	}
	return observation{objectName(object.GetKind(), object.GetNamespace(), object.GetName()), state, pods}
}

// unseen returns the observation of an object whose state is unknown, and why.
func unseen(name, why string) observation {
	return observation{name: name, State: workload.State{Phase: workload.Unknown, Message: why}}
}
