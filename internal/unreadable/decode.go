// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/fluxrollouts/rollout-controller/internal/brief"
)

// longestCause is how many characters of what a decoder says are kept: it quotes what was
// written.
const longestCause = 200

// lenient is a serializer that decodes what it can.
type lenient struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// DecoderToVersion returns a decoder that fails for no object of a kind that is known.
func (l lenient) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return decoder{Decoder: l.NegotiatedSerializer.DecoderToVersion(d, version), scheme: l.scheme}
}

type decoder struct {
	runtime.Decoder
	scheme *runtime.Scheme
}

// Decode decodes an object or a list. Only if that fails it takes the data apart.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
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
		return object, d.eachOf(data, object)
	}
	readable, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no object", kind)
	}
	return readable, keep(data, readable, because)
}

// eachOf decodes the items of a list one by one.
func (d decoder) eachOf(data []byte, list runtime.Object) error {
	var raw struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decode a list: %w", err)
	}
	items := make([]runtime.Object, 0, len(raw.Items))
	for _, item := range raw.Items {
		object, _, err := d.Decode(item, nil, nil)
		if err != nil {
			return err
		}
		items = append(items, object)
	}
	accessor, err := apimeta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("read a list: %w", err)
	}
	accessor.SetResourceVersion(raw.Metadata.ResourceVersion)
	accessor.SetContinue(raw.Metadata.Continue)
	accessor.SetRemainingItemCount(raw.Metadata.RemainingItemCount)
	if err := apimeta.SetList(list, items); err != nil {
		return fmt.Errorf("fill a list: %w", err)
	}
	return nil
}

// keep fills in what can be decoded of an object, and marks it: its metadata, by which it
// is found and selected, and each field of its spec, by which it refers to others. Nothing
// of its status is worth anything without the rest.
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
	if !merge(object, map[string]any{"metadata": raw.Metadata}) { // which the API server has decoded itself
		return errors.New("its metadata cannot be decoded")
	}
	var spec map[string]json.RawMessage
	_ = kjson.UnmarshalCaseSensitivePreserveInts(raw.Spec, &spec) // what is no object has no fields
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		merge(object, map[string]any{"spec": map[string]json.RawMessage{field: spec[field]}})
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = brief.Text(because.Error(), longestCause)
	object.SetAnnotations(annotations)
	return nil
}

// merge decodes a part into an object, or leaves it as it is and reports false.
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
