// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Taking describes who overwrote fields of a target that belong to its Rollout.
type Taking struct {
	// Fields are the paths of the fields that do not have the version.
	Fields []string
	// Managers are the field managers that own them now, sorted. It is empty if nobody
	// owns them, for example after a removal.
	Managers []string
	// Applied is true if one of the managers owns them by server-side apply: it
	// overwrites them whenever it applies again.
	Applied bool
	// Parent is the object for which one of the managers applied the target; empty if that
	// is not known.
	Parent Parent
}

// Taken returns who owns the fields of the target that should have the release but do
// not. The object must have been read with its managedFields.
func (t Target) Taken(release Release) Taking {
	var taking Taking
	for _, lost := range t.lost(release) {
		taking.Fields = append(taking.Fields, lost.String()[1:]) // without the leading dot
		for _, entry := range t.Object().GetManagedFields() {
			if wrote(entry, lost) {
				taking.Managers = append(taking.Managers, entry.Manager)
				taking.Applied = taking.Applied || entry.Operation == metav1.ManagedFieldsOperationApply
			}
		}
	}
	slices.Sort(taking.Managers)
	taking.Managers = slices.Compact(taking.Managers)
	taking.Parent = parentOf(t.Object(), taking.Managers)
	return taking
}

// lost returns the fields that should have the release but do not.
func (t Target) lost(release Release) []fieldpath.Path {
	var lost []fieldpath.Path
	for _, f := range t.fields() {
		if f.value != f.wanted(release) {
			lost = append(lost, t.pathOf(f))
		}
	}
	return lost
}

// wrote reports whether another writer owns the field. This controller owns its fields by
// Update. An entry with its name and Apply was written by another controller.
func wrote(entry metav1.ManagedFieldsEntry, field fieldpath.Path) bool {
	if isOwn(entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate {
		return false
	}
	return entry.Subresource == "" && fieldsOf(entry).Has(field)
}

// Named reports whether the managers that own the fields are known.
func (x Taking) Named() bool { return len(x.Managers) > 0 }

// String describes who overwrites the fields and how to stop it. It is always the same
// for the same cause.
func (x Taking) String() string {
	fields := strings.Join(x.Fields, " and ")
	are := "is"
	if len(x.Fields) > 1 {
		are = "are"
	}
	switch {
	case x.Parent.Name != "":
		return fmt.Sprintf("%s %s overwritten by %s for %s %s: %s",
			fields, are, strings.Join(x.Managers, " and "), x.Parent.Kind, x.Parent.Name, x.Parent.Remedy)
	case x.Named():
		return fmt.Sprintf("%s %s overwritten by %s: remove it from what that field manager writes",
			fields, are, strings.Join(x.Managers, " and "))
	}
	return fmt.Sprintf("%s %s overwritten by a writer that removes it and leaves no name: find it in the audit log of the API server",
		fields, are)
}
