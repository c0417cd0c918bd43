// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// TestExpectedKindIsDecodedToTheSame checks that a decoder that expects a kind returns
// the object and the mark of one that looks for the kind first, whatever a field contains.
func TestExpectedKindIsDecodedToTheSame(t *testing.T) {
	plain, scheme := lenientDecoder(t)
	for _, example := range examples() {
		sent := wire(t, scheme, example)
		expecting := plain
		var err error
		if expecting.expects, err = apiutil.GVKForObject(example, scheme); err != nil {
			t.Fatal(err)
		}
		t.Run(expecting.expects.Kind, func(t *testing.T) {
			short := 0
			compare := func(path string) {
				data, err := json.Marshal(sent)
				if err != nil {
					t.Fatal(err)
				}
				want, wantKind, wantErr := plain.Decode(data, nil, nil)
				got, gotKind, gotErr := expecting.Decode(data, nil, nil)
				if diff := cmp.Diff(want, got); diff != "" || (wantErr == nil) != (gotErr == nil) || !cmp.Equal(wantKind, gotKind) {
					t.Errorf("%s: %v, %v instead of %v, %v:\n%s", path, gotKind, gotErr, wantKind, wantErr, diff)
				}
				if expecting.expected(data) != nil {
					short++
				}
			}
			compare("as it is")
			if short != 1 {
				t.Error("the short way is not taken")
			}
			fields("", sent, func(path string, is any, set func(any)) {
				defer set(is)
				for _, odd := range oddValues {
					if _, long := odd.(string); !long || len(odd.(string)) < 1<<10 {
						set(odd)
						compare(path)
					}
				}
			})
		})
	}
}

// streamed returns the decoder of events.
func streamed(t *testing.T, codec runtime.NegotiatedSerializer) runtime.Serializer {
	t.Helper()
	known, ok := runtime.SerializerInfoForMediaType(codec.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("no JSON")
	}
	return known.StreamSerializer.Serializer
}

// TestEventsAreDecodedToTheSame also covers what is no event, and what a connection that
// breaks leaves behind.
func TestEventsAreDecodedToTheSame(t *testing.T) {
	_, scheme := lenientDecoder(t)
	l := lenient{NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(), scheme: scheme}
	plain, decoder := streamed(t, l.NegotiatedSerializer), streamed(t, l)
	if _, own := decoder.(events); !own {
		t.Fatalf("events are decoded by a %T", decoder)
	}
	for _, data := range []string{
		`{"type":"ADDED","object":{"kind":"Rollout","apiVersion":"kuberik.com/v1alpha1","metadata":{"name":"a"}}}`,
		`{"type":"MODIFIED","object": {"a" : [1, 2.50, "\u003c"]} , "more": true}` + "\n",
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}}`,
		`{"type":"BOOKMARK","object":null}`, `{"type":"ADDED"}`, `{"Type":"ADDED","Object":{}}`, `{}`,
		`{"type":1,"object":{}}`, `[]`, `null`, `"text"`, ``, `{"type":"ADDED","object":{"kind":"Rol`, strings.Repeat("[", 100),
	} {
		var want, got metav1.WatchEvent
		_, _, wantErr := plain.Decode([]byte(data), nil, &want)
		_, _, gotErr := decoder.Decode([]byte(data), nil, &got)
		if diff := cmp.Diff(want, got); diff != "" || (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%q: %v instead of %v:\n%s", data, gotErr, wantErr, diff)
		}
	}
}
