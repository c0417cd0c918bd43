// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"

	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// perPage is how many objects one request for all of them asks for.
const perPage = 500

// Reader reads typed objects past the caches, and keeps of each what a cache keeps,
// before it reads the next. So a decision reads the same fields from both, and an object
// that a cache cannot keep is unreadable here too. Lists end at a limit that the caller
// gives; without one, they have all objects.
type Reader struct {
	// Objects reads the objects.
	Objects *Objects

	scheme *runtime.Scheme
	mapper meta.RESTMapper
	usual  toolscache.TransformFunc
	keep   map[reflect.Type]toolscache.TransformFunc
}

var _ client.Reader = &Reader{}

// NewReader returns a Reader that keeps what caches with these options keep.
func NewReader(objects *Objects, scheme *runtime.Scheme, mapper meta.RESTMapper, caches ctrlcache.Options) *Reader {
	usual := caches.DefaultTransform
	if usual == nil {
		usual = func(o any) (any, error) { return o, nil }
	}
	r := &Reader{Objects: objects, scheme: scheme, mapper: mapper, usual: usual}
	return r.Keeping(caches.ByObject)
}

// Keeping returns a Reader that keeps of some kinds what the given transforms keep of
// them.
func (r *Reader) Keeping(kinds map[client.Object]ctrlcache.ByObject) *Reader {
	copied := *r
	copied.keep = maps.Clone(r.keep)
	if copied.keep == nil {
		copied.keep = map[reflect.Type]toolscache.TransformFunc{}
	}
	for kind, by := range kinds {
		if by.Transform != nil {
			copied.keep[reflect.TypeOf(kind)] = by.Transform
		}
	}
	return &copied
}

// Get reads an object.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind, err := r.kindOf(into)
	if err != nil {
		return err
	}
	request := r.request(into, kind, key.Namespace).Name(key.Name)
	err = r.Objects.get(ctx, request, kind, func(raw json.RawMessage) error { return r.decode(raw, into, alsoIn(options)) })
	if err != nil {
		return err
	}
	return unreadable.Of(into)
}

// List reads objects. If one of them is unreadable, it returns an [unreadable.Error],
// unless it is called with [unreadable.Left].
func (r *Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, err := r.kindOf(list)
	if err != nil {
		return err
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	page := asked.AsListOptions().DeepCopy()
	isAll := page.Limit == 0
	if isAll {
		page.Limit = perPage
	}
	var objects []runtime.Object
	do := func(raw json.RawMessage) error {
		object, err := r.item(raw, list, isLeft(options))
		objects = append(objects, object)
		return err
	}
	for {
		request := r.request(list, kind, asked.Namespace).VersionedParams(page, metav1.ParameterCodec)
		metadata, err := r.Objects.list(ctx, request, kind, do)
		if err != nil {
			return err
		}
		if page.Continue = metadata.Continue; !isAll || page.Continue == "" {
			return fill(list, metadata, objects)
		}
	}
}

// item decodes an object of a list. It can be put into the list.
func (r *Reader) item(raw json.RawMessage, list client.ObjectList, left bool) (client.Object, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("fill a list: %w", err)
	}
	object, ok := reflect.New(reflect.TypeOf(items).Elem().Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("fill a list: %T has no objects", list)
	}
	if err := r.decode(raw, object, nil); err != nil || left {
		return object, err
	}
	return object, unreadable.Of(object)
}

func fill(list client.ObjectList, metadata metav1.ListMeta, objects []runtime.Object) error {
	list.SetResourceVersion(metadata.ResourceVersion)
	list.SetContinue(metadata.Continue)
	list.SetRemainingItemCount(metadata.RemainingItemCount)
	if err := meta.SetList(list, objects); err != nil {
		return fmt.Errorf("fill a list: %w", err)
	}
	return nil
}

func isLeft(options []client.ListOption) bool {
	return slices.ContainsFunc(options, func(o client.ListOption) bool {
		_, left := o.(unreadable.Left)
		return left
	})
}

// kindOf returns how the kind of an object, or of the objects of a list, is served.
func (r *Reader) kindOf(o runtime.Object) (*meta.RESTMapping, error) {
	kind, err := apiutil.GVKForObject(o, r.scheme)
	if err != nil {
		return nil, err
	}
	mapping, err := r.mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: strings.TrimSuffix(kind.Kind, "List")}, kind.Version)
	return mapping, err
}

// request asks for no more than the metadata if the object, or the list, has nothing else.
func (r *Reader) request(of runtime.Object, kind *meta.RESTMapping, namespace string) *rest.Request {
	const format = "application/json;as=%s;g=meta.k8s.io;v=v1"
	request := r.Objects.request(kind, namespace)
	switch of.(type) {
	case *metav1.PartialObjectMetadata:
		return request.SetHeader("Accept", fmt.Sprintf(format, "PartialObjectMetadata"))
	case *metav1.PartialObjectMetadataList:
		return request.SetHeader("Accept", fmt.Sprintf(format, "PartialObjectMetadataList"))
	}
	return request
}

// decode decodes an object, and keeps what is to be kept of it.
func (r *Reader) decode(raw json.RawMessage, into client.Object, also Also) error {
	whole := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.Object)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, whole); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	restore := func(client.Object) {}
	if also != nil {
		restore = also(whole)
	}
	kept, err := r.transform(whole)
	if err != nil {
		return fmt.Errorf("reduce %T: %w", into, err)
	}
	kind := into.GetObjectKind().GroupVersionKind() // of an object of which only metadata is read
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(kept).Elem())
	into.GetObjectKind().SetGroupVersionKind(kind)
	restore(into)
	return nil
}

func (r *Reader) transform(whole client.Object) (any, error) {
	if keep, ok := r.keep[reflect.TypeOf(whole)]; ok {
		return keep(whole)
	}
	return r.usual(whole)
}

// Also keeps more of an object than a Reader usually does. It is called with the whole
// object, and the function that it returns with what is kept of it. Other readers than
// this one ignore it, and return the whole object.
type Also func(whole client.Object) func(kept client.Object)

// ApplyToGet does nothing.
func (Also) ApplyToGet(*client.GetOptions) {}

func alsoIn(options []client.GetOption) Also {
	for _, option := range options {
		if also, ok := option.(Also); ok {
			return also
		}
	}
	return nil
}
