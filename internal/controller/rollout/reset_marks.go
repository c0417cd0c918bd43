// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// fewMarks is the number of marks up to which their Rollouts are not looked up.
const fewMarks = 20

// markCounts remembers, for HealthChecks with many marks, how many marks there may be
// before the controller looks again for marks of deleted Rollouts.
type markCounts struct {
	mu   sync.Mutex
	most map[types.UID]int
}

func (m *markCounts) areMany(check types.UID, count int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return count > max(fewMarks, m.most[check])
}

// left records how many marks are of existing Rollouts. The next check is at twice as
// many, which keeps the work for each mark constant.
func (m *markCounts) left(check types.UID, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.most == nil {
		m.most = map[types.UID]int{}
	}
	if m.most[check] = 2 * count; 2*count <= fewMarks {
		delete(m.most, check)
	}
}

// forgetGone forgets deleted HealthChecks. It passes all events.
func (m *markCounts) forgetGone() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.most, e.Object.GetUID())
		return true
	}}
}

// dropMarks removes the marks of deleted Rollouts from a check that is about to be
// marked: the API server accepts 256 KiB of annotations in total, which the marks of a
// few thousand preview environments would fill. If the controller may not list all
// Rollouts, it cannot know which to remove, and leaves them.
func (r resetter) dropMarks(ctx context.Context, check *v1alpha1.HealthCheck) {
	count := 0
	for key := range check.Annotations {
		if strings.HasPrefix(key, v1alpha1.ResetAnnotationPrefix) {
			count++
		}
	}
	if !r.marks.areMany(check.UID, count) {
		return
	}
	exist, err := r.existingRollouts(ctx)
	if err != nil {
		r.marks.left(check.UID, count)
		ctrl.LoggerFrom(ctx).V(1).Info("it is not known which marks of resets are of Rollouts that exist", "reason", err.Error())
		return
	}
	left := 0
	check.Annotations = maps.Clone(check.Annotations)
	maps.DeleteFunc(check.Annotations, func(key, _ string) bool {
		uid, isMark := strings.CutPrefix(key, v1alpha1.ResetAnnotationPrefix)
		if isMark && exist[types.UID(uid)] {
			left++
		}
		return isMark && !exist[types.UID(uid)]
	})
	r.marks.left(check.UID, left)
}

// Kept returns what a Reconciler has to know of the metadata that it reads past the caches:
// which Rollouts exist. Their labels may be large.
func Kept() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&metav1.PartialObjectMetadata{}: {Transform: func(o any) (any, error) {
		if rollout, ok := o.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: rollout.UID}}, nil
		}
		return o, nil
	}}}
}

// existingRollouts returns the UIDs of all Rollouts in all namespaces and shards,
// uncached.
func (r resetter) existingRollouts(ctx context.Context) (map[types.UID]bool, error) {
	const page = 500
	exist := map[types.UID]bool{}
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind + "List"))
		if err := r.live.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			exist[list.Items[i].UID] = true
		}
		if next = list.Continue; next == "" {
			return exist, nil
		}
	}
}
