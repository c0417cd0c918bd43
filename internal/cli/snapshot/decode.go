// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	yamljson "sigs.k8s.io/yaml"
)

// mostBytes is how large a document may be: larger than any object that an API server
// stores.
const mostBytes = 8 << 20

// Decode returns the objects of YAML or JSON documents. Lists are taken apart. Objects of
// a kind that the scheme does not know are left out. The version of a known kind does not
// matter: it is decoded as the version that the scheme knows.
//
// An error names the document by its number, and the objects of the documents before it
// are returned.
func Decode(scheme *runtime.Scheme, content []byte) ([]client.Object, error) {
	var all []client.Object
	documents := yaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(content), 4096))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil && len(document) > mostBytes {
			err = fmt.Errorf("it has %d bytes, at most %d are read", len(document), mostBytes)
		}
		var some []client.Object
		if err == nil {
			some, err = decodeOne(scheme, document)
		}
		if err != nil {
			return all, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, some...)
	}
}

func decodeOne(scheme *runtime.Scheme, document []byte) ([]client.Object, error) {
	content := map[string]any{}
	if err := yamljson.Unmarshal(document, &content); err != nil {
		return nil, fmt.Errorf("it is no YAML object: %w", err)
	}
	if len(content) == 0 {
		return nil, nil // only comments
	}
	object := &unstructured.Unstructured{Object: content}
	if !object.IsList() {
		return typed(scheme, object)
	}
	var all []client.Object
	err := object.EachListItem(func(item runtime.Object) error {
		some, err := typed(scheme, item.(*unstructured.Unstructured))
		all = append(all, some...)
		return err
	})
	return all, err
}

// typed returns the object as its Go type, or nothing if the scheme has none.
func typed(scheme *runtime.Scheme, object *unstructured.Unstructured) ([]client.Object, error) {
	kind := object.GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" {
		return nil, errors.New("it has no apiVersion, or no kind")
	}
	known, ok := versionOf(scheme, kind)
	if !ok {
		return nil, nil
	}
	into, err := scheme.New(known)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", known.Kind, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
	return []client.Object{into.(client.Object)}, nil
}

// versionOf returns a version of the kind that the scheme knows, if there is one.
func versionOf(scheme *runtime.Scheme, kind schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	if scheme.Recognizes(kind) {
		return kind, true
	}
	for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		if other := version.WithKind(kind.Kind); scheme.Recognizes(other) {
			return other, true
		}
	}
	return kind, false
}
