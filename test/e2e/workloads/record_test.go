// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientwatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
)

// recorded contains the kinds of which every state is recorded.
var recorded = []client.ObjectList{
	&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}, &coordinationv1.DeploymentCoordinationList{},
	&v1alpha1.RolloutList{}, &kustomizev1.KustomizationList{},
}

// sight is a state of an object.
type sight struct {
	// at is the resourceVersion of the state. It is an etcd revision, and all kinds are
	// in one etcd. So it gives one order for all states.
	at     uint64
	object client.Object
	// gone is true if the object was deleted in this state.
	gone bool
}

// record contains every state of the objects of a namespace. Watches of its own see the
// states, which are sorted afterwards.
type record struct {
	t         *testing.T
	client    client.WithWatch
	namespace string

	mu     sync.Mutex
	seen   []sight
	latest map[types.UID]uint64
	err    error
}

// newRecord begins to record a namespace. An empty text means all namespaces.
func newRecord(t *testing.T, plane *stage.Plane, namespace string) *record {
	t.Helper()
	c, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	r := &record{t: t, client: c, namespace: namespace, latest: map[types.UID]uint64{}}
	for _, kind := range recorded {
		if err := r.follow(kind); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// follow notes the present state of the objects of a kind, and then each of their
// changes.
func (r *record) follow(kind client.ObjectList) error {
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := r.client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("list %T: %w", kind, err)
	}
	if err := r.noteAll(list); err != nil {
		return err
	}
	watcher, err := clientwatch.NewRetryWatcherWithContext(r.t.Context(), list.GetResourceVersion(), watchOf{r, kind})
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	go func() {
		for event := range watcher.ResultChan() {
			r.note(event)
		}
	}()
	return nil
}

func (r *record) noteAll(list client.ObjectList) error {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read %T: %w", list, err)
	}
	for _, object := range objects {
		r.note(watch.Event{Type: watch.Added, Object: object})
	}
	return nil
}

func (r *record) note(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	object, isObject := event.Object.(client.Object)
	if event.Type == watch.Error || !isObject {
		r.err = fmt.Errorf("a watch failed, so states may be missing: %w", apierrors.FromObject(event.Object))
		return
	}
	at, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		r.err = fmt.Errorf("read a resourceVersion: %w", err)
		return
	}
	r.seen = append(r.seen, sight{at, object, event.Type == watch.Deleted})
	r.latest[object.GetUID()] = at
}

// watchOf watches a kind.
type watchOf struct {
	*record
	kind client.ObjectList
}

// WatchWithContext begins a watch. It is called again each time a watch ends.
func (w watchOf) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list := w.kind.DeepCopyObject().(client.ObjectList)
	return w.client.Watch(ctx, list, &client.ListOptions{Namespace: w.namespace, Raw: &options})
}

// sights returns all states so far, in their order, once the record contains the present
// state of all objects.
func (r *record) sights() []sight {
	r.t.Helper()
	for _, kind := range recorded {
		stage.Eventually(r.t, fmt.Sprintf("a complete record of %T", kind), func() (bool, string) { return r.hasCaughtUp(kind) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		r.t.Fatal(r.err)
	}
	seen := slices.Clone(r.seen)
	slices.SortStableFunc(seen, func(a, b sight) int { return cmp.Compare(a.at, b.at) })
	return seen
}

func (r *record) hasCaughtUp(kind client.ObjectList) (done bool, lacks string) {
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := r.client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		return false, err.Error()
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return false, err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range objects {
		o := object.(client.Object)
		if at := r.latest[o.GetUID()]; strconv.FormatUint(at, 10) != o.GetResourceVersion() {
			return r.err != nil, fmt.Sprintf("%s at %s, seen at %d", o.GetName(), o.GetResourceVersion(), at)
		}
	}
	return true, ""
}
