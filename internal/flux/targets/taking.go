// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fluxApplier is the field manager of Flux's Kustomizations.
const fluxApplier = "kustomize-controller"

// takenBack is part of every description of a Taking.
const takenBack = " taken back by "

// Taking says who took fields of a target away from its Rollout.
type Taking struct {
	// Fields that do not carry the version, as paths.
	Fields []string
	// Managers that own them now, sorted. Empty if they belong to nobody, as
	// after a removal.
	Managers []string
	// Applied is true if one of the managers owns them by server-side apply: it
	// takes them whenever it applies again.
	Applied bool
	// Parent is the Kustomization, "namespace/name", that applied the target;
	// empty if none of the managers is Flux's.
	Parent string
}

// Taken looks up who owns the fields of the target that should carry the
// version and do not. The object must have been read with its managedFields.
func (t Target) Taken(version string) Taking {
	var taking Taking
	for _, lost := range t.lost(version) {
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
	if slices.Contains(taking.Managers, fluxApplier) {
		taking.Parent = parentOf(t.Object())
	}
	return taking
}

// lost are the fields that should carry the version and do not.
func (t Target) lost(version string) []fieldpath.Path {
	if t.Repository != nil {
		if t.Carries(version) {
			return nil
		}
		return []fieldpath.Path{tagPath}
	}
	var lost []fieldpath.Path
	for _, variable := range t.writable() {
		if substitutes(t.Kustomization)[variable] != version {
			lost = append(lost, variablePath(variable))
		}
	}
	return lost
}

// wrote reports whether another writer owns the field. What this controller
// writes it owns by Update; by Apply its name was used by another one.
func wrote(entry metav1.ManagedFieldsEntry, field fieldpath.Path) bool {
	if isOwn(entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate {
		return false
	}
	return entry.Subresource == "" && fieldsOf(entry).Has(field)
}

// parentOf returns the Kustomization whose labels an object carries, as
// "namespace/name".
func parentOf(object metav1.Object) string {
	group := kustomizev1.GroupVersion.Group
	labels := object.GetLabels()
	if labels[group+"/name"] == "" {
		return ""
	}
	return labels[group+"/namespace"] + "/" + labels[group+"/name"]
}

// Named reports whether anybody is known to have taken the fields.
func (x Taking) Named() bool { return len(x.Managers) > 0 }

// String says who takes the fields, and how to make an end of it. It is the
// same each time that the same happens.
func (x Taking) String() string {
	fields := strings.Join(x.Fields, " and ")
	is := " is"
	if len(x.Fields) > 1 {
		is = " are"
	}
	switch {
	case x.Parent != "":
		return fmt.Sprintf("%s%s%s%s for Kustomization %s: remove it from the manifest that this Kustomization applies, "+
			"or name it in its spec.ignore", fields, is, takenBack, strings.Join(x.Managers, " and "), x.Parent)
	case x.Named():
		return fmt.Sprintf("%s%s%s%s: remove it from what that field manager writes",
			fields, is, takenBack, strings.Join(x.Managers, " and "))
	}
	return fmt.Sprintf("%s%s%sa writer that removes it and leaves no name: find it in the audit log of the API server",
		fields, is, takenBack)
}

// IsTaking reports whether a message describes a Taking. In the status of a
// Rollout that is what outlives the process of who takes a target back.
func IsTaking(message string) bool { return strings.Contains(message, takenBack) }
