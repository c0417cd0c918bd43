// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// longestCause is how many characters of a decoder's message are stored, because the
// message quotes user input.
const longestCause = 200

// lenient is a serializer that decodes as much as it can.
type lenient struct {
	runtime.NegotiatedSerializer
	scheme  *runtime.Scheme
	expects schema.GroupVersionKind // nearly all objects are of this kind; may be empty
}

// ofJSON returns the decoder of JSON.
func (l lenient) ofJSON(version runtime.GroupVersioner) decoder {
	known, _ := runtime.SerializerInfoForMediaType(l.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return l.DecoderToVersion(known.Serializer, version).(decoder)
}

// DecoderToVersion returns a decoder that does not fail for objects of known kinds.
func (l lenient) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return decoder{Decoder: l.NegotiatedSerializer.DecoderToVersion(d, version), scheme: l.scheme, expects: l.expects}
}

type decoder struct {
	runtime.Decoder
	scheme  *runtime.Scheme
	expects schema.GroupVersionKind
}

// Decode decodes an object or a list. If that fails, it decodes the parts separately.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if object := d.expected(data); object != nil {
			return object, &d.expects, nil
		}
	}
	found, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil || kind == nil {
		return found, kind, err
	}
	apart, failed := d.apart(data, *kind, err)
	if failed != nil {
		return found, kind, err
	}
	if into == nil {
		return apart, kind, nil
	}
	if reflect.TypeOf(into) != reflect.TypeOf(apart) {
		return found, kind, err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(apart).Elem())
	return into, kind, nil
}

func (d decoder) apart(data []byte, kind schema.GroupVersionKind, because error) (runtime.Object, error) {
	object, err := d.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("of no known kind: %w", err)
	}
	if apimeta.IsListType(object) {
		return object, d.each(bytes.NewReader(data), object, nil)
	}
	readable, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", kind)
	}
	return readable, keep(data, readable, because)
}

// each decodes the items of a list one by one, and transforms each before the next.
func (d decoder) each(data io.Reader, list runtime.Object, transform toolscache.TransformFunc) error {
	var items []runtime.Object
	metadata, err := EachItem(data, func(item json.RawMessage) error {
		object, _, err := d.Decode(item, nil, nil)
		if err == nil && transform != nil {
			_, err = transform(object)
		}
		items = append(items, object)
		return err
	})
	if err != nil {
		return fmt.Errorf("decode a list: %w", err)
	}
	accessor, err := apimeta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("fill a list: %w", err)
	}
	accessor.SetResourceVersion(metadata.ResourceVersion)
	accessor.SetContinue(metadata.Continue)
	accessor.SetRemainingItemCount(metadata.RemainingItemCount)
	if err := apimeta.SetList(list, items); err != nil {
		return fmt.Errorf("fill a list: %w", err)
	}
	return nil
}

// keep sets the parts of an object that can be decoded, and marks it. These are its
// metadata, by which it is found and selected, and each field of its spec, because a
// field may refer to other objects. The status is useless without the rest.
func keep(data []byte, object client.Object, because error) error {
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        json.RawMessage `json:"metadata"`
		Spec            json.RawMessage `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decode an object: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(raw.GroupVersionKind())
	if !merge(object, map[string]any{"metadata": raw.Metadata}) { // the API server itself decodes metadata, so this should not fail
		return errors.New("its metadata cannot be decoded")
	}
	var spec map[string]json.RawMessage
	_ = kjson.UnmarshalCaseSensitivePreserveInts(raw.Spec, &spec) // a value that is not an object has no fields
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		merge(object, map[string]any{"spec": map[string]json.RawMessage{field: spec[field]}})
	}
	Mark(object, because.Error())
	return nil
}

// merge decodes a part into an object. If it cannot, it leaves the object unchanged and
// returns false.
func merge(object client.Object, part map[string]any) bool {
	data, err := json.Marshal(part)
	if err != nil {
		return false
	}
	scratch := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	if kjson.UnmarshalCaseSensitivePreserveInts(data, scratch) != nil {
		return false
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, object) == nil
}
