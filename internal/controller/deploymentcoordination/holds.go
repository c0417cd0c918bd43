// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// holds contains the Deployments that this controller has paused, and with which
// template, until it unpauses them. The zero value is ready to use. It serves to warn
// users about others who unpause them; after a restart the warning comes one round later.
type holds struct {
	mu   sync.Mutex
	held map[string]held // by namespace/name
}

// held is the state of a Deployment when it was paused.
type held struct {
	uid      types.UID
	template string
}

// wrote records whether a write paused a Deployment, which must be trimmed.
func (h *holds) wrote(d *appsv1.Deployment, paused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := client.ObjectKeyFromObject(d).String()
	if !paused {
		delete(h.held, key)
		return
	}
	if h.held == nil {
		h.held = map[string]held{}
	}
	h.held[key] = held{d.UID, d.Spec.Template.Name}
}

// has reports whether a Deployment was paused here with the UID and the template that it
// has now.
func (h *holds) has(d *appsv1.Deployment) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.held[client.ObjectKeyFromObject(d).String()]
	return ok && found == held{d.UID, d.Spec.Template.Name}
}

// keep forgets the Deployments of a namespace that do not exist any more.
func (h *holds) keep(namespace string, there map[string]*appsv1.Deployment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.held {
		if strings.HasPrefix(key, namespace+"/") && there[key] == nil {
			delete(h.held, key)
		}
	}
}
