// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// manifest is an object as it is sent and printed: without a status, and without what the API
// server has added.
type manifest struct{ *unstructured.Unstructured }

// String returns the kind and the name, as messages have them.
func (m manifest) String() string {
	return m.GetKind() + " " + strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/")
}

// manifestOf returns the manifest of an object.
func (w *world) manifestOf(object client.Object) (manifest, error) {
	kind, err := apiutil.GVKForObject(object, w.scheme)
	if err != nil {
		return manifest{}, fmt.Errorf("find the kind of a %T: %w", object, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return manifest{}, fmt.Errorf("encode %s %s: %w", kind.Kind, object.GetName(), err)
	}
	m := manifest{&unstructured.Unstructured{Object: content}}
	m.SetGroupVersionKind(kind)
	delete(content, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return m, nil
}

// manifestsOf returns the manifests of objects.
func (w *world) manifestsOf(objects []client.Object) ([]manifest, error) {
	var all []manifest
	for _, object := range objects {
		m, err := w.manifestOf(object)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// sent returns what is sent to the API server: the target first, so that the Rollout finds it.
func (w *world) sent(p *plan) ([]manifest, error) {
	all, err := w.manifestsOf(p.objects)
	if err == nil && p.annotation != nil {
		all = append([]manifest{*p.annotation}, all...)
	}
	return all, err
}

// covers reports whether what was found has all that is wanted. An empty map is wanted empty:
// a selector without labels selects all.
func covers(wanted, found any) bool {
	fields, isMap := wanted.(map[string]any)
	others, _ := found.(map[string]any)
	if !isMap || len(fields) == 0 {
		return equality.Semantic.DeepEqual(wanted, found)
	}
	for name := range fields {
		if !covers(fields[name], others[name]) {
			return false
		}
	}
	return true
}

// yamlOf returns manifests as documents of one file.
func yamlOf(all []manifest) ([]byte, error) {
	var file []byte
	for _, each := range all {
		document, err := yaml.Marshal(each.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", each, err)
		}
		file = append(append(file, "---\n"...), document...)
	}
	return file, nil
}
