// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// pageSize is how many objects are requested at a time.
const pageSize = 500

// Take reads what the decisions about the Rollouts of a namespace need; of all namespaces
// if the name is empty. All lists are requested at once, and after them only what they
// refer to in other namespaces.
//
// A kind that may not be read, or could not be, fails in the snapshot as it did now. It
// fails here only if the Rollouts themselves could not be read.
func Take(ctx context.Context, from client.Reader, scheme *runtime.Scheme, namespace string) (*Snapshot, error) {
	t := &taker{from: from, snapshot: empty(scheme)}
	t.listAll(ctx, client.InNamespace(namespace), namespaced()...)
	t.listAll(ctx, nil, &v1alpha1.ClusterRolloutScheduleList{})
	if namespace == "" {
		t.listAll(ctx, nil, namespaces())
	} else {
		t.get(ctx, namespaceOf(namespace))
	}
	t.wait()
	t.follow(ctx, namespace)
	t.wait()
	if err := t.snapshot.errorOf(&v1alpha1.Rollout{}); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	return t.snapshot, t.err
}

// namespaced returns the kinds of which the objects in the namespace of a Rollout count.
func namespaced() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.RolloutList{}, &v1alpha1.RolloutGateList{}, &v1alpha1.RolloutScheduleList{}, &v1alpha1.HealthCheckList{},
		&imagev1.ImagePolicyList{}, &imagev1.ImageRepositoryList{},
		&sourcev1.OCIRepositoryList{}, &kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{},
	}
}

func namespaces() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return list
}

func namespaceOf(name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// taker reads in parallel and adds what it has read to a snapshot.
type taker struct {
	from     client.Reader
	group    sync.WaitGroup
	mu       sync.Mutex
	snapshot *Snapshot
	err      error
}

func (t *taker) wait() { t.group.Wait() }

func (t *taker) listAll(ctx context.Context, where client.ListOption, lists ...client.ObjectList) {
	for _, list := range lists {
		t.group.Go(func() {
			objects, err := t.pages(ctx, where, list)
			t.took(list, objects, err)
		})
	}
}

// get reads one object.
func (t *taker) get(ctx context.Context, object client.Object) {
	t.group.Go(func() {
		err := t.from.Get(ctx, client.ObjectKeyFromObject(object), object)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case apierrors.IsNotFound(err), isNotServed(err):
		case err != nil:
			t.failed(t.snapshot.FailOne(object, err))
		default:
			t.failed(t.snapshot.add([]client.Object{object}))
		}
	})
}

func (t *taker) pages(ctx context.Context, where client.ListOption, list client.ObjectList) ([]client.Object, error) {
	var all []client.Object
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		options := []client.ListOption{client.Limit(pageSize), client.Continue(next)}
		if where != nil {
			options = append(options, where)
		}
		if err := t.from.List(ctx, page, options...); err != nil {
			return nil, err //nolint:wrapcheck // it becomes the error of the kind, which readers of a cluster know
		}
		err := meta.EachListItem(page, func(item runtime.Object) error {
			all = append(all, withKind(item.(client.Object), list))
			return nil
		})
		if next = page.GetContinue(); err != nil || next == "" {
			return all, err //nolint:wrapcheck // as above
		}
	}
}

// withKind gives metadata the kind that items of a list do not have.
func withKind(item client.Object, list client.ObjectList) client.Object {
	if metadata, ok := item.(*metav1.PartialObjectMetadata); ok {
		metadata.SetGroupVersionKind(itemKind(list.GetObjectKind().GroupVersionKind()))
	}
	return item
}

// took adds what was read of a kind. A kind that is not served has no objects.
func (t *taker) took(example runtime.Object, objects []client.Object, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case isNotServed(err):
	case err != nil:
		t.failed(t.snapshot.Fail(example, err))
	default:
		t.failed(t.snapshot.add(objects))
	}
}

// failed notes that an object has no place in the snapshot.
func (t *taker) failed(err error) { t.err = cmp.Or(t.err, err) }

func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err)
}

// follow reads what the objects of the namespace refer to in others.
func (t *taker) follow(ctx context.Context, namespace string) {
	if namespace == "" {
		return
	}
	// Both look at the snapshot, so no read may add to it yet.
	foreign, elsewhere := t.foreign(namespace), t.selectsElsewhere()
	for _, object := range foreign {
		t.get(ctx, object)
	}
	if elsewhere {
		t.listAll(ctx, nil, &v1alpha1.HealthCheckList{}, namespaces())
	}
}

// foreign returns the objects of other namespaces that ImagePolicies, Kustomizations and
// HelmReleases name, each once.
func (t *taker) foreign(namespace string) []client.Object {
	found := map[string]client.Object{}
	add := func(o client.Object, key client.ObjectKey) {
		if key.Namespace != namespace {
			o.SetNamespace(key.Namespace)
			o.SetName(key.Name)
			found[fmt.Sprintf("%T %s", o, key)] = o
		}
	}
	for _, o := range t.snapshot.all() {
		switch o := o.(type) {
		case *imagev1.ImagePolicy:
			add(&imagev1.ImageRepository{}, imagepolicy.RepositoryOf(o))
		case *kustomizev1.Kustomization:
			if key, ok := targets.SourceOf(o); ok {
				add(&sourcev1.OCIRepository{}, key)
			}
		case *helmv2.HelmRelease:
			if key, ok := targets.ChartOf(o); ok {
				add(&sourcev1.OCIRepository{}, key)
			}
		}
	}
	all := make([]client.Object, 0, len(found))
	for _, o := range found {
		all = append(all, o)
	}
	return all
}

// selectsElsewhere reports whether a Rollout selects HealthChecks of other namespaces.
func (t *taker) selectsElsewhere() bool {
	return slices.ContainsFunc(t.snapshot.all(), func(o client.Object) bool {
		rollout, ok := o.(*v1alpha1.Rollout)
		return ok && rollout.Spec.HealthCheckSelector != nil && rollout.Spec.HealthCheckSelector.NamespaceSelector != nil
	})
}
