// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
)

// pageSize is how many objects are requested at a time.
const pageSize = 500

// Options change what is read. The zero value is usable.
type Options struct {
	// QuarantinesEverywhere reads the ReleaseQuarantines of all namespaces, and not only
	// those of the namespace.
	QuarantinesEverywhere bool
}

// Take reads what the decisions about the Rollouts of a namespace need; of all namespaces
// if the name is empty. All lists are requested at once, and after them only what they
// refer to. What is laid over the snapshot later, see [Snapshot.With], may refer to more:
// those objects are given here too, and are not part of the result.
//
// For one Rollout whose objects are in its namespace, that is fourteen requests.
// Environments of other namespaces are read one namespace after another, as upstreams name
// them.
//
// A kind that may not be read, or could not be, fails in the snapshot as it did now. It
// fails here only if the Rollouts themselves could not be read.
func (o Options) Take(ctx context.Context, from client.Reader, scheme *runtime.Scheme, namespace string, laid ...client.Object) (*Snapshot, error) {
	t := &taker{from: from, snapshot: empty(scheme)}
	for _, kind := range kinds.All {
		if kind.Decides {
			t.listAll(ctx, o.where(kind, namespace), kind.List)
		}
	}
	if namespace == "" {
		t.listAll(ctx, nil, &v1alpha1.RolloutApprovalList{}, &v1alpha1.HealthCheckList{}, &imagev1.ImageRepositoryList{}, namespaces())
	}
	t.wait()
	objects := append(t.snapshot.all(), laid...)
	if (references{objects: objects}).gitRepositories() {
		t.listAll(ctx, client.InNamespace(namespace), &sourcev1.GitRepositoryList{})
	}
	if (references{objects: objects}).asksForApprovals() {
		t.getPolicies(ctx)
	}
	if namespace != "" {
		t.follow(ctx, references{namespace: namespace, objects: objects})
		t.followUpstreams(ctx, namespace, objects)
	}
	t.wait()
	switch err := t.snapshot.errorOf(&v1alpha1.Rollout{}); {
	case !t.snapshot.Serves(&v1alpha1.Rollout{}):
		return nil, ErrNoRollouts
	case err != nil:
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	return t.snapshot, t.err
}

// ErrNoRollouts: the API server does not serve Rollouts.
var ErrNoRollouts = errors.New("the API server serves no Rollouts")

// where returns which objects of a kind count for the Rollouts of a namespace.
func (o Options) where(kind kinds.Kind, namespace string) client.ListOption {
	if kind.Global || kind.Kind == v1alpha1.ReleaseQuarantineKind && o.QuarantinesEverywhere {
		return nil
	}
	return client.InNamespace(namespace)
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
		case isAbsent(err):
		case err != nil:
			t.failed(t.snapshot.FailOne(object, err))
		default:
			t.failed(t.snapshot.add([]client.Object{object}))
		}
	})
}

// getPolicies reads the policies that vouch for the names in approvals, and their bindings.
func (t *taker) getPolicies(ctx context.Context) {
	for _, name := range identity.Names {
		of := metav1.ObjectMeta{Name: name}
		t.get(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: of})
		t.get(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: of})
	}
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
			return nil, err
		}
		err := meta.EachListItem(page, func(item runtime.Object) error {
			all = append(all, withKind(item.(client.Object), list))
			return nil
		})
		if next = page.GetContinue(); err != nil || next == "" {
			return all, err
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

// took adds what was read of a kind. A kind that is not served has no objects: then the
// client does not know it, or the API server does not find the list.
func (t *taker) took(example runtime.Object, objects []client.Object, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case isAbsent(err):
		of, kindErr := t.snapshot.kindOf(example)
		t.failed(kindErr)
		t.snapshot.kind(of).unserved = true
	case err != nil:
		t.failed(t.snapshot.Fail(example, err))
	default:
		t.failed(t.snapshot.add(objects))
	}
}

// failed notes that an object has no place in the snapshot.
func (t *taker) failed(err error) { t.err = cmp.Or(t.err, err) }

// isAbsent reports whether an object does not exist, or its kind is not served.
func isAbsent(err error) bool {
	return meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err) || apierrors.IsNotFound(err)
}

// follow reads what objects refer to.
func (t *taker) follow(ctx context.Context, r references) {
	if some := r.repositories(); len(some) == 1 {
		t.get(ctx, some[0])
	} else if len(some) > 1 {
		t.listAll(ctx, client.InNamespace(r.namespace), &imagev1.ImageRepositoryList{})
	}
	for _, object := range r.elsewhere() {
		t.get(ctx, object)
	}
	if r.takeArtifacts() {
		t.listAll(ctx, client.InNamespace(r.namespace), &generatorv1.ArtifactGeneratorList{}, &sourcev1.ExternalArtifactList{})
	}
	if r.asksForApprovals() {
		t.listAll(ctx, client.InNamespace(r.namespace), &v1alpha1.RolloutApprovalList{})
	}
	switch near, far := r.checks(); {
	case far:
		t.listAll(ctx, nil, &v1alpha1.HealthCheckList{}, namespaces())
		return
	case near:
		t.listAll(ctx, client.InNamespace(r.namespace), &v1alpha1.HealthCheckList{})
	}
	if r.needsNamespace() {
		t.get(ctx, namespaceOf(r.namespace))
	}
}
