// SPDX-License-Identifier: Apache-2.0

package env

import (
	"slices"
	"strings"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Gates returns the gates of the namespace, sorted by Rollout and name.
func (e *Env) Gates() []v1alpha1.RolloutGate {
	list := &v1alpha1.RolloutGateList{}
	e.Expect(e.List(e.Ctx, list, client.InNamespace(e.Namespace))).To(gomega.Succeed())
	slices.SortFunc(list.Items, func(a, b v1alpha1.RolloutGate) int {
		return strings.Compare(a.RolloutName()+" "+a.Name, b.RolloutName()+" "+b.Name)
	})
	return list.Items
}

// Gate returns the only gate of the namespace.
func (e *Env) Gate() *v1alpha1.RolloutGate {
	gates := e.Gates()
	e.Expect(gates).To(gomega.HaveLen(1))
	return &gates[0]
}

// Passing returns for each Rollout with a gate whether the gate passes, as in "shop
// open".
func (e *Env) Passing() []string {
	var all []string
	for _, gate := range e.Gates() {
		state := " closed"
		if gate.IsPassing() {
			state = " open"
		}
		all = append(all, gate.RolloutName()+state)
	}
	return all
}

// Relabel replaces the labels of a Rollout.
func (e *Env) Relabel(rollout string, labels map[string]string) {
	e.Change(fixture.MakeRollout(rollout).Obj(), func(o client.Object) { o.SetLabels(labels) })
}
