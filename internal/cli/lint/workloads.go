// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

var labelSelectorPath = []string{"spec", "labelSelector"}

// selectsNoDeployment reports whether the selector of a DeploymentCoordination is empty.
func selectsNoDeployment(o *object) bool {
	return o.groupKind() == coordinationKind && len(o.fields(child(labelSelectorPath, "matchLabels")...)) == 0 &&
		len(o.items(child(labelSelectorPath, "matchExpressions")...)) == 0
}

func checkCoordinationSelector(r *report) {
	for _, o := range r.byKind[coordinationKind] {
		if o.isUnknown(labelSelectorPath...) || !selectsNoDeployment(o) {
			continue
		}
		r.find(at{o, labelSelectorPath}, "spec.labelSelector is empty: it would select every Deployment of the namespace, so the controller changes nothing",
			"name a label of the Deployments that roll out one at a time")
	}
}

func checkWorkloads(r *report) {
	if !r.live { // there, the controller has paused it
		r.checkPaused()
	}
	for _, o := range r.byKind[statefulSetKind] {
		group := o.labels()[rolloutgroup.Label]
		where := at{o, []string{"spec", "updateStrategy", "type"}}
		if group != "" && o.text(where.path...) != "OnDelete" && !o.isUnknown("spec", "updateStrategy") {
			r.find(where, fmt.Sprintf("%s is in the rollout group %s, and its update strategy is not OnDelete: no pod of the group would be replaced", o, group),
				"set spec.updateStrategy.type: OnDelete, or remove the label "+rolloutgroup.Label)
		}
	}
}

// checkPaused finds Deployments whose manifest sets what a coordination writes.
func (r *report) checkPaused() {
	for _, o := range r.byKind[deploymentKind] {
		where := at{o, []string{"spec", "paused"}}
		if !o.has(where.path...) {
			continue
		}
		if coordination := r.coordinationOf(o); coordination != nil {
			r.find(where, fmt.Sprintf("%s sets spec.paused, which %s writes: Flux would take it back at each interval", o, coordination),
				"remove the field; to pause the Deployment, set the annotation apps.containerinfra.nl/rollout-paused")
		}
	}
}

// coordinationOf returns a DeploymentCoordination that selects a Deployment, or nil.
func (s *set) coordinationOf(deployment *object) *object {
	for _, o := range s.in(coordinationKind, deployment.namespace()) {
		selector, err := o.compiled(labelSelectorPath)
		if err == nil && !selector.Empty() && !o.isUnknown(labelSelectorPath...) && selectsLabels(selector, deployment) == yes {
			return o
		}
	}
	return nil
}
