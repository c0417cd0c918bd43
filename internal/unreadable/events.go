// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// Most of what the controller does in a large cluster is to read events. The decoders of
// client-go search the text of each event and of each object for its kind before they
// decode it, although a watch sends one kind only. That is more than a quarter of the
// work, and the decoders here leave it out.

// SupportedMediaTypes returns the media types with the decoder of events.
func (l lenient) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(l.NegotiatedSerializer.SupportedMediaTypes())
	for i := range all {
		if all[i].MediaType == runtime.ContentTypeJSON && all[i].StreamSerializer != nil {
			stream := *all[i].StreamSerializer
			stream.Serializer = events{stream.Serializer}
			all[i].StreamSerializer = &stream
		}
	}
	return all
}

// events decodes the events of a watch, but not the objects in them.
type events struct{ runtime.Serializer }

// Decode leaves to client-go what is not an event.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(data, defaults, into)
	}
	var read metav1.WatchEvent
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &read) != nil {
		return e.Serializer.Decode(data, defaults, into)
	}
	*event = read
	return event, nil, nil
}

// expected decodes an object of the kind that the decoder expects. It returns nil for any
// other object, as in an event about an error, and for one that cannot be decoded.
func (d decoder) expected(data []byte) runtime.Object {
	if d.expects.Empty() {
		return nil
	}
	o, err := d.scheme.New(d.expects)
	if err != nil {
		return nil
	}
	object, ok := o.(client.Object)
	if !ok || kjson.UnmarshalCaseSensitivePreserveInts(data, object) != nil {
		return nil
	}
	kind := object.GetObjectKind()
	if kind.GroupVersionKind() != d.expects {
		return nil
	}
	kind.SetGroupVersionKind(schema.GroupVersionKind{}) // as all decoders of client-go do
	return object
}
