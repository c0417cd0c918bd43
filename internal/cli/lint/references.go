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

func checkImagePolicy(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		where := at{o, []string{"spec", "releasesImagePolicy", "name"}}
		name := o.text(where.path...)
		switch {
		case !o.has("spec", "releasesImagePolicy"): // the schema requires it
		case name == "":
			r.find(where, "spec.releasesImagePolicy names no ImagePolicy", "set spec.releasesImagePolicy.name")
		case r.missing(where, imagePolicyKind, o.namespace(), name):
			r.find(where, fmt.Sprintf("ImagePolicy %s does not exist%s", keyOf(o.namespace(), name), r.elsewhere(imagePolicyKind, o.namespace(), name)),
				r.remedyFor(imagePolicyKind, o.namespace(), name))
		}
	}
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
	switch {
	case name == "":
		r.find(where, fmt.Sprintf("the annotation %s names no Rollout", annotation), "write the name of a Rollout in the same namespace")
	case r.missing(where, rolloutKind, o.namespace(), name):
		r.find(where, fmt.Sprintf("the annotation names Rollout %s, which does not exist%s", keyOf(o.namespace(), name), r.elsewhere(rolloutKind, o.namespace(), name)),
			r.remedyFor(rolloutKind, o.namespace(), name))
	}
}

func checkGatesAndDuplicates(r *report) {
	r.checkGates()
	r.checkDuplicates()
}

func (r *report) checkGates() {
	for _, o := range r.byKind[gateKind] {
		where := at{o, []string{"spec", "rolloutRef", "name"}}
		name := o.text(where.path...)
		switch {
		case !o.has("spec", "rolloutRef"): // the schema requires it
		case name == "":
			r.find(where, "spec.rolloutRef names no Rollout", "set spec.rolloutRef.name")
		case r.missing(where, rolloutKind, o.namespace(), name):
			r.find(where, fmt.Sprintf("the gate is for Rollout %s, which does not exist%s", keyOf(o.namespace(), name), r.elsewhere(rolloutKind, o.namespace(), name)),
				r.remedyFor(rolloutKind, o.namespace(), name))
		}
	}
}
