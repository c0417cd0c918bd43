// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// observation is what one object says of itself. Its phase is Unknown when it
// could not be read or understood.
type observation struct {
	name string
	workload.State
}

// objectName reads "Deployment shop/web", or "Namespace shop" outside of one.
func objectName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

func observe(object *unstructured.Unstructured) observation {
	return observation{objectName(object.GetKind(), object.GetNamespace(), object.GetName()), workload.Of(object)}
}

// unseen is an object of which nothing is known, and why.
func unseen(name, why string) observation {
	return observation{name, workload.State{Phase: workload.Unknown, Message: why}}
}
