// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ client.Reader = (*Snapshot)(nil)

// Get fills an object. It returns a NotFound error if there is none, and the error of the
// kind if that could not be read.
func (s *Snapshot) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	s.prepare()
	of, err := s.kindOf(out)
	if err != nil {
		return err
	}
	if k := s.kinds[of]; k != nil {
		if err := cmp.Or(k.err, k.failed[key]); err != nil {
			return err
		}
		if stored := k.objects[key]; stored != nil {
			return fill(out, stored)
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(of.WithVersion(""))
	return apierrors.NewNotFound(plural.GroupResource(), key.Name)
}

// fill copies an object into another one, which has the same type, no type, or only
// metadata.
func fill(out, from client.Object) error {
	switch into := out.(type) {
	case *metav1.PartialObjectMetadata:
		*into = *metadataOf(from, into.GroupVersionKind())
		return nil
	case *unstructured.Unstructured:
		untyped, err := untypedOf(from, into.GroupVersionKind())
		if err == nil {
			*into = *untyped
		}
		return err
	}
	to, stored := reflect.ValueOf(out), reflect.ValueOf(from.DeepCopyObject())
	if to.Type() != stored.Type() {
		return fmt.Errorf("a %T cannot be read as a %T", from, out)
	}
	to.Elem().Set(stored.Elem())
	return nil
}

func metadataOf(o client.Object, of schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	metadata := meta.AsPartialObjectMetadata(o.DeepCopyObject().(client.Object))
	metadata.SetGroupVersionKind(of)
	return metadata
}

// untypedOf returns an object as it is read without its Go type.
func untypedOf(o client.Object, of schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if untyped, ok := o.(*unstructured.Unstructured); ok {
		return untyped.DeepCopy(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read a %T without its type: %w", o, err)
	}
	untyped := &unstructured.Unstructured{Object: content}
	untyped.SetGroupVersionKind(of)
	return untyped, nil
}

// List fills a list with the objects of a kind, sorted by namespace and name. It serves
// namespaces, labels and the fields of its indexes, and ignores limits.
func (s *Snapshot) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	s.prepare()
	of, err := s.kindOf(out)
	if err != nil {
		return err
	}
	k := s.kinds[of]
	if k == nil {
		return meta.SetList(out, nil)
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	if err := cmp.Or(k.err, k.failedIn[o.Namespace]); err != nil {
		return err
	}
	objects, err := k.matching(o.FieldSelector)
	if err != nil {
		return fmt.Errorf("list %s: %w", of, err)
	}
	return setItems(out, objects, o)
}

// matching returns the objects that a selector of an indexed field selects.
func (k *kind) matching(selector fields.Selector) ([]client.Object, error) {
	if selector == nil || selector.Empty() {
		return k.sorted, nil
	}
	all := selector.Requirements()
	if len(all) != 1 || all[0].Operator != selection.Equals && all[0].Operator != selection.DoubleEquals {
		return nil, fmt.Errorf("%q does not ask for one value of one field", selector)
	}
	found, ok := k.found[all[0].Field]
	if !ok {
		return nil, fmt.Errorf("%s has no index", all[0].Field)
	}
	return found[all[0].Value], nil
}

func setItems(out client.ObjectList, objects []client.Object, o *client.ListOptions) error {
	var items []runtime.Object
	for _, object := range objects {
		if !selected(object, o) {
			continue
		}
		item, err := itemOf(out, object, o)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(out, items)
}

// itemOf returns an object in the form that a list has.
func itemOf(list client.ObjectList, object client.Object, o *client.ListOptions) (runtime.Object, error) {
	switch list := list.(type) {
	case *metav1.PartialObjectMetadataList:
		return metadataOf(object, itemKind(list.GroupVersionKind())), nil
	case *unstructured.UnstructuredList:
		return untypedOf(object, itemKind(list.GroupVersionKind()))
	}
	if o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy {
		return object, nil
	}
	return object.DeepCopyObject(), nil
}

func selected(object client.Object, o *client.ListOptions) bool {
	return (o.Namespace == "" || o.Namespace == object.GetNamespace()) &&
		(o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(object.GetLabels())))
}
