// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	unknownName      = "a name has variables whose values are not known"
	unknownNamespace = "an object that may be meant has no namespace, or a name that is not known"
)

// missing looks for an object that a field names. It returns true if there is certainly
// none. What is not certain is reported as not checked.
func (r *report) missing(where at, kind schema.GroupKind, namespace, name string) bool {
	switch r.exists(kind, namespace, name) {
	case no:
		return true
	case maybe:
		reason := unknownNamespace
		if hasVariable(name) || hasVariable(namespace) {
			reason = unknownName
		}
		r.skip(where, fmt.Sprintf("%s %s: %s", kind.Kind, keyOf(namespace, name), reason))
	case yes:
	}
	return false
}

// remedyFor returns what to do about an object that does not exist.
func (r *report) remedyFor(kind schema.GroupKind, namespace, name string) string {
	if r.live || namespace == "" {
		return "create it, or correct the name"
	}
	return fmt.Sprintf("create it, or correct the name; if it is elsewhere, add --external %s/%s/%s", kind.Kind, namespace, name)
}

// checkField finds where a field of a kind, which its schema requires, names no object, or
// one that does not exist.
func (r *report) checkField(of schema.GroupKind, field string, kind schema.GroupKind, absent string) {
	for _, o := range r.byKind[of] {
		where := at{o, []string{"spec", field, "name"}}
		switch name := o.text(where.path...); {
		case !o.has("spec", field):
		case name == "":
			r.find(where, fmt.Sprintf("spec.%s names no %s", field, kind.Kind), fmt.Sprintf("set spec.%s.name", field))
		default:
			r.checkExists(where, kind, name, absent)
		}
	}
}

// checkExists reports whether an object exists in the namespace of another one that names
// it, or that cannot be known. Otherwise the finding says so: absent has places for the
// object, and for where else there is one of its name.
func (r *report) checkExists(where at, kind schema.GroupKind, name, absent string) bool {
	namespace := where.object.namespace()
	if !r.missing(where, kind, namespace, name) {
		return true
	}
	r.find(where, fmt.Sprintf(absent, kind.Kind+" "+keyOf(namespace, name), r.elsewhere(kind, namespace, name)), r.remedyFor(kind, namespace, name))
	return false
}

func checkImagePolicy(r *report) {
	r.checkField(rolloutKind, "releasesImagePolicy", imagePolicyKind, "%s does not exist%s")
}

// elsewhere says where there is an object of that name.
func (r *report) elsewhere(kind schema.GroupKind, namespace, name string) string {
	others := r.byName[kind][name]
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(" (one of that name is in %s, and must be in %s)", others[0].namespace(), namespace)
}

func checkAnnotations(r *report) {
	for _, kind := range writtenKinds {
		for _, o := range r.byKind[kind] {
			for _, a := range o.assignments() {
				r.checkRolloutName(o, a.key)
			}
		}
	}
}

func (r *report) checkRolloutName(o *object, annotation string) {
	where := annotationAt(o, annotation)
	name := o.annotation(annotation)
	if name == "" {
		r.find(where, fmt.Sprintf("the annotation %s names no Rollout", annotation), "write the name of a Rollout in the same namespace")
		return
	}
	r.checkExists(where, rolloutKind, name, "the annotation names %s, which does not exist%s")
}

func checkGatesAndDuplicates(r *report) {
	r.checkField(gateKind, "rolloutRef", rolloutKind, "the gate is for %s, which does not exist%s")
	r.checkDuplicates()
}
