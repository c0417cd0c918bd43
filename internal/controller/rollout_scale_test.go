// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestNeighboursCostAPassNothing: what a pass reads, and whom an event wakes,
// is the same beside twenty other Rollouts.
func TestNeighboursCostAPassNothing(t *testing.T) {
	s := openStage(t)
	objects := 0
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := c.List(ctx, list, options...)
				objects += 1 + apimeta.LenList(list)
				return err
			},
		})
	}
	s.restart()
	s.add(shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("shop", "shop").Obj())...)
	s.deploy("shop")
	read := func() int {
		objects = 0
		s.reconcile("shop")
		return objects
	}
	alone := read()
	s.Expect(alone).To(BeNumerically(">", 0))
	for i := range 20 {
		name := fmt.Sprintf("other-%d", i)
		s.add(fixture.MakeScan(name).Obj(), fixture.MakePolicy(name).Latest("1.0.0").Obj(), fixture.MakeRollout(name).Obj(),
			fixture.MakeRepository(name).DrivenBy(name).Obj(), fixture.MakeKustomization(name).Obj(), fixture.MakeGate(name, name).Obj())
	}
	s.Expect(read()).To(Equal(alone))

	policy := fixture.MakePolicy("shop").Obj()
	s.Expect(s.Get(s.ctx, s.key("shop"), policy)).To(Succeed())
	s.Expect(s.reconciler.rolloutsOfPolicy(s.ctx, policy)).To(HaveLen(1))
}
