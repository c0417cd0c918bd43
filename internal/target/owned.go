// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Owned returns the versions in those of the target's fields that the
// controller's field manager owns: what it wrote, even if nothing else
// remembers. The object must have been read with its managedFields.
func (t Target) Owned() []string {
	var versions []string
	for _, entry := range t.Object().GetManagedFields() {
		if entry.Manager == FieldManager && entry.Subresource == "" {
			versions = append(versions, t.ownedIn(entry)...)
		}
	}
	return versions
}

func (t Target) ownedIn(entry metav1.ManagedFieldsEntry) []string {
	if t.Repository != nil {
		if owns(entry, "f:spec", "f:ref", "f:tag") && t.Repository.Spec.Reference != nil {
			return []string{t.Repository.Spec.Reference.Tag}
		}
		return nil
	}
	var versions []string
	for _, variable := range t.Variables {
		value, ok := substitutes(t.Kustomization)[variable]
		if ok && owns(entry, "f:spec", "f:postBuild", "f:substitute", "f:"+variable) {
			versions = append(versions, value)
		}
	}
	return versions
}

// owns walks the set of owned fields (FieldsV1: nested objects whose keys are
// "f:" and the field's name).
func owns(entry metav1.ManagedFieldsEntry, path ...string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	raw := json.RawMessage(entry.FieldsV1.GetRawBytes())
	for _, step := range path {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return false
		}
		next, ok := fields[step]
		if !ok {
			return false
		}
		raw = next
	}
	return true
}
