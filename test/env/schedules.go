// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

// AddSchedule creates a schedule, and returns it. The name of a ClusterRolloutSchedule
// gets the name of the namespace as a suffix, and it is deleted at the end of the test.
func (e *Env) AddSchedule(t *testing.T, o client.Object) client.Object {
	t.Helper()
	if o.GetNamespace() == "" {
		o.SetName(o.GetName() + "-" + e.Namespace)
		t.Cleanup(func() { _ = client.IgnoreNotFound(e.Delete(context.WithoutCancel(e.Ctx), o)) })
	}
	e.Add(o)
	return o
}

// Schedule returns a schedule as it is now.
func (e *Env) Schedule(o client.Object) gather.Schedule {
	now := o.DeepCopyObject().(client.Object)
	e.Expect(e.Get(e.Ctx, client.ObjectKeyFromObject(now), now)).To(gomega.Succeed())
	return gather.ScheduleOf(now)
}

// EditSchedule changes a schedule as a user does.
func (e *Env) EditSchedule(o client.Object, edit func(gather.Schedule)) {
	now := e.Schedule(o)
	edit(now)
	e.Expect(e.Update(e.Ctx, now.Object)).To(gomega.Succeed())
}
