// SPDX-License-Identifier: Apache-2.0

// Package snapshot is a reader of objects in memory: what was listed from a cluster, or
// decoded from files. It evaluates the field indexes of the controller's caches, so that
// package gather reads the same through both.
package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Snapshot has objects, and the errors of what could not be read. It is a [client.Reader]
// and a [client.FieldIndexer]. Indexes and errors must be added before the first read;
// after that, it may be used concurrently.
type Snapshot struct {
	scheme  *runtime.Scheme
	kinds   map[schema.GroupKind]*kind
	indexes map[schema.GroupKind]map[string]client.IndexerFunc
	prepare func()
}

// kind has the objects of one kind, in all its versions.
type kind struct {
	objects map[types.NamespacedName]client.Object
	// err is why the kind could not be read; nil if it could.
	err error
	// failed is why single objects could not be read, and failedIn why those of a namespace
	// could not be listed.
	failed   map[types.NamespacedName]error
	failedIn map[string]error
	// unserved is true if the API server does not serve the kind.
	unserved bool
	// sorted and found are made from objects before the first read.
	sorted []client.Object
	found  map[string]map[string][]client.Object // by field and value
}

// New returns a snapshot of objects whose Go types are in the scheme. Of two objects with
// the same kind and name, the later one counts.
func New(scheme *runtime.Scheme, objects ...client.Object) (*Snapshot, error) {
	s := empty(scheme)
	return s, s.add(objects)
}

func empty(scheme *runtime.Scheme) *Snapshot {
	s := &Snapshot{scheme: scheme, kinds: map[schema.GroupKind]*kind{}, indexes: map[schema.GroupKind]map[string]client.IndexerFunc{}}
	s.prepare = sync.OnceFunc(s.sortAndIndex)
	return s
}

// With returns a snapshot that has these objects as well, in the place of those with the
// same kind and name. The receiver stays as it is.
func (s *Snapshot) With(objects ...client.Object) (*Snapshot, error) {
	next := empty(s.scheme)
	for of, by := range s.indexes {
		next.indexes[of] = maps.Clone(by)
	}
	for of, k := range s.kinds {
		next.kinds[of] = &kind{
			objects: maps.Clone(k.objects), err: k.err, failed: maps.Clone(k.failed), failedIn: maps.Clone(k.failedIn), unserved: k.unserved,
		}
	}
	return next, next.add(objects)
}

// Without returns a snapshot without these objects. The receiver stays as it is.
func (s *Snapshot) Without(objects ...client.Object) (*Snapshot, error) {
	next, err := s.With()
	for _, o := range objects {
		of, kindErr := s.kindOf(o)
		if kindErr != nil {
			return nil, kindErr
		}
		delete(next.kind(of).objects, client.ObjectKeyFromObject(o))
	}
	return next, err
}

// Fail makes all reads of the kind of an object fail with an error, as they did when the
// snapshot was taken.
func (s *Snapshot) Fail(example runtime.Object, err error) error {
	of, kindErr := s.kindOf(example)
	if kindErr != nil {
		return kindErr
	}
	s.kind(of).err = err
	return nil
}

// FailOne makes reads of one object fail with an error. Lists do not contain it.
func (s *Snapshot) FailOne(object client.Object, err error) error {
	of, kindErr := s.kindOf(object)
	if kindErr != nil {
		return kindErr
	}
	s.kind(of).failed[client.ObjectKeyFromObject(object)] = err
	return nil
}

// FailIn makes lists of a kind in one namespace fail with an error. Lists of all namespaces
// do not contain its objects.
func (s *Snapshot) FailIn(namespace string, example runtime.Object, err error) error {
	of, kindErr := s.kindOf(example)
	if kindErr != nil {
		return kindErr
	}
	s.kind(of).failedIn[namespace] = err
	return nil
}

// Serves reports whether the API server serves the kind of an object, or of the items of a
// list. What came from files counts as served.
func (s *Snapshot) Serves(example runtime.Object) bool {
	of, err := s.kindOf(example)
	return err == nil && (s.kinds[of] == nil || !s.kinds[of].unserved || len(s.kinds[of].objects) > 0)
}

// Refused returns those of some kinds that the API server has refused to list.
func (s *Snapshot) Refused(examples ...runtime.Object) []string {
	var all []string
	for _, example := range examples {
		if of, err := s.kindOf(example); err == nil && apierrors.IsForbidden(s.errorOf(example)) {
			all = append(all, of.Kind)
		}
	}
	return all
}

// IndexField adds an index. Lists with the field in [client.MatchingFields] use it.
func (s *Snapshot) IndexField(_ context.Context, example client.Object, field string, values client.IndexerFunc) error {
	of, err := s.kindOf(example)
	if err != nil {
		return err
	}
	if s.indexes[of] == nil {
		s.indexes[of] = map[string]client.IndexerFunc{}
	}
	s.indexes[of][field] = values
	return nil
}

func (s *Snapshot) add(objects []client.Object) error {
	for _, o := range objects {
		of, err := s.kindOf(o)
		if err != nil {
			return err
		}
		s.kind(of).objects[client.ObjectKeyFromObject(o)] = o
	}
	return nil
}

// kindOf returns the kind of an object, or of the items of a list.
func (s *Snapshot) kindOf(o runtime.Object) (schema.GroupKind, error) {
	of, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		return schema.GroupKind{}, fmt.Errorf("find the kind of a %T: %w", o, err)
	}
	if _, isList := o.(client.ObjectList); isList {
		of = itemKind(of)
	}
	return of.GroupKind(), nil
}

// itemKind returns the kind of the items of a list.
func itemKind(list schema.GroupVersionKind) schema.GroupVersionKind {
	list.Kind = strings.TrimSuffix(list.Kind, "List")
	return list
}

// errorOf returns why the kind of an object could not be read; nil if it could.
func (s *Snapshot) errorOf(example runtime.Object) error {
	of, err := s.kindOf(example)
	if err != nil || s.kinds[of] == nil {
		return err
	}
	return s.kinds[of].err
}

// all returns the objects of all kinds.
func (s *Snapshot) all() []client.Object {
	var all []client.Object
	for _, k := range s.kinds {
		all = slices.AppendSeq(all, maps.Values(k.objects))
	}
	return all
}

func (s *Snapshot) kind(of schema.GroupKind) *kind {
	if s.kinds[of] == nil {
		s.kinds[of] = &kind{objects: map[types.NamespacedName]client.Object{}, failed: map[types.NamespacedName]error{}, failedIn: map[string]error{}}
	}
	return s.kinds[of]
}

func (s *Snapshot) sortAndIndex() {
	for of, k := range s.kinds {
		k.sort()
		k.index(s.indexes[of])
	}
}

func (k *kind) sort() {
	k.sorted = slices.SortedFunc(maps.Values(k.objects), func(a, b client.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
}

func (k *kind) index(by map[string]client.IndexerFunc) {
	k.found = map[string]map[string][]client.Object{}
	for field, values := range by {
		k.found[field] = map[string][]client.Object{}
		for _, o := range k.sorted {
			for _, value := range values(o) {
				k.found[field][value] = append(k.found[field][value], o)
			}
		}
	}
}
