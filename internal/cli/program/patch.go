// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldChange is a field that a patch sets; removes is true if it removes it.
type fieldChange struct {
	path    []string
	value   any
	removes bool
}

// String returns the field as users write it: an annotation by its key.
func (f fieldChange) String() string {
	name := strings.Join(f.path, ".")
	if len(f.path) == 3 && f.path[1] == "annotations" {
		name = f.path[2]
	}
	if f.removes {
		return name + " removed"
	}
	raw, err := json.Marshal(f.value)
	if err != nil {
		return name
	}
	return name + "=" + strings.Trim(string(raw), `"`)
}

// fieldsIn returns the fields that a patch changes, except the condition on the version
// of the object.
func fieldsIn(patch client.Patch, to client.Object) ([]fieldChange, error) {
	raw, err := patch.Data(to)
	if err != nil {
		return nil, fmt.Errorf("make a patch: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("make a patch: %w", err)
	}
	all := flatten(nil, content)
	all = slices.DeleteFunc(all, func(f fieldChange) bool { return strings.Join(f.path, ".") == "metadata.resourceVersion" })
	slices.SortFunc(all, func(a, b fieldChange) int { return slices.Compare(a.path, b.path) })
	return all, nil
}

func flatten(path []string, value any) []fieldChange {
	fields, isMap := value.(map[string]any)
	if !isMap {
		return []fieldChange{{path: path, value: value, removes: value == nil}}
	}
	var all []fieldChange
	for name, value := range fields {
		all = append(all, flatten(append(slices.Clone(path), name), value)...)
	}
	return all
}

// ChangesIn returns what a patch changes, in words.
func ChangesIn(patch client.Patch, to client.Object) ([]string, error) {
	fields, err := fieldsIn(patch, to)
	var all []string
	for _, field := range fields {
		all = append(all, field.String())
	}
	return all, err
}

// UndoneByGit refuses a change of a field that somebody applies from manifests: Flux would
// set it again at its next interval.
func (p *Program) UndoneByGit(from, to client.Object) error {
	field, manager, err := appliedField(from, to)
	if err != nil || manager == "" {
		return err
	}
	return Refuse("%s of %s %s comes from a manifest, by field manager %s, which would set it again. Change it %s",
		field, KindOf(from), from.GetName(), manager, p.whereToChange(from))
}

// appliedField returns a field that a change sets and that somebody applies from manifests,
// and the field manager who does; empty if there is none.
func appliedField(from, to client.Object) (field, manager string, err error) {
	fields, err := fieldsIn(client.MergeFrom(from), to)
	for _, field := range fields {
		if manager := ManagerOf(from, field.path, applies); manager != "" {
			return strings.Join(field.path, "."), manager, nil
		}
	}
	return "", "", err
}

// applies reports whether a field manager applies manifests, and is not this program.
func applies(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Manager != FieldManager
}

// ManagerOf returns one of these field managers that owns a field; empty if there is none.
func ManagerOf(object client.Object, path []string, is func(metav1.ManagedFieldsEntry) bool) string {
	elements := make([]any, 0, len(path))
	for _, name := range path {
		elements = append(elements, name)
	}
	field := fieldpath.MakePathOrDie(elements...)
	for _, entry := range object.GetManagedFields() {
		if is(entry) && entry.FieldsV1 != nil {
			owned := fieldpath.NewSet()
			if owned.FromJSON(strings.NewReader(string(entry.FieldsV1.GetRawBytes()))) == nil && owned.Has(field) {
				return entry.Manager
			}
		}
	}
	return ""
}

// whereToChange says where the manifest of an object is.
func (p *Program) whereToChange(object client.Object) string {
	if parent := ParentOf(object); parent != "" {
		return fmt.Sprintf("in the source of %s; see: %s", parent,
			p.CommandLineOf("flux", object.GetNamespace(), "trace", strings.ToLower(KindOf(object)), object.GetName()))
	}
	return "there"
}

// ParentOf names what applies an object from Git, by the labels that Flux sets on it; empty if
// nothing does.
func ParentOf(object client.Object) string {
	for _, kind := range []schema.GroupVersionKind{
		kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind),
	} {
		labels := object.GetLabels()
		if name := labels[kind.Group+"/name"]; name != "" {
			return kind.Kind + " " + labels[kind.Group+"/namespace"] + "/" + name
		}
	}
	return ""
}
