// SPDX-License-Identifier: Apache-2.0

package destination

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
)

// Kept returns what [Services] have to know of EndpointSlices. All those of a Service are
// read at once, and there may be thousands of Pods in them.
func Kept() map[client.Object]ctrlcache.ByObject {
	return map[client.Object]ctrlcache.ByObject{
		&discoveryv1.EndpointSlice{}: {Transform: cache.Bounded(func(o any) (any, error) {
			if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
				return reduced(slice), nil
			}
			return o, nil
		})},
	}
}

// reduced returns the ports, and one address of each Pod that is ready.
func reduced(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	kept := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name},
		AddressType: slice.AddressType, Ports: slice.Ports,
	}
	for _, endpoint := range slice.Endpoints {
		if isReadyPod(endpoint, slice.Namespace) && len(endpoint.Addresses) > 0 {
			kept.Endpoints = append(kept.Endpoints, discoveryv1.Endpoint{
				Addresses: endpoint.Addresses[:1:1], TargetRef: &corev1.ObjectReference{Kind: endpoint.TargetRef.Kind},
			})
		}
	}
	return kept
}
