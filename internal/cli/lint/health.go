// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var selectorPath = []string{"spec", "healthCheckSelector"}

// checkSelection finds Rollouts that are meant to wait for HealthChecks, and wait for
// none.
func checkSelection(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		where := at{o, selectorPath}
		switch {
		case o.fields(selectorPath...) == nil:
		case o.isUnknown(selectorPath...):
			r.skip(where, "spec.healthCheckSelector has variables whose values are not known")
		default:
			r.checkSelected(where)
		}
	}
}

func (r *report) checkSelected(where at) {
	spec := &v1alpha1.HealthCheckSelector{}
	if where.object.decode(where.object.fields(selectorPath...), spec) != nil {
		return // the schema has a finding
	}
	if spec.LabelSelector() == nil {
		r.find(where, "spec.healthCheckSelector has no selector for HealthChecks, so that none is selected",
			"set selector, for example selector: {} for all, or remove spec.healthCheckSelector")
		return
	}
	checks, namespaces, ok := selectorsOf(spec)
	if !ok {
		return // R401 finds it
	}
	switch r.selectsCheck(where.object, checks, namespaces) {
	case maybe:
		r.skip(where, "which HealthChecks it selects depends on labels or objects that are not known")
	case no:
		r.find(where, "spec.healthCheckSelector selects no HealthCheck, so that a release counts as healthy once it is applied",
			"add a HealthCheck with these labels, or correct the selector")
	case yes:
	}
}

// selectorsOf returns the selectors of HealthChecks and of namespaces; namespaces is nil if
// there is none. It returns false if one of them is invalid.
func selectorsOf(spec *v1alpha1.HealthCheckSelector) (checks, namespaces labels.Selector, ok bool) {
	checks, err := metav1.LabelSelectorAsSelector(spec.LabelSelector())
	if err == nil && spec.NamespaceSelector != nil {
		namespaces, err = metav1.LabelSelectorAsSelector(spec.NamespaceSelector)
	}
	return checks, namespaces, err == nil
}

// selectsCheck reports whether a Rollout selects a HealthCheck. Without a selector for
// namespaces, only those of its own namespace count.
func (r *report) selectsCheck(rollout *object, checks, namespaces labels.Selector) certainty {
	answer := no
	candidates := r.byKind[healthCheckKind]
	if namespaces == nil {
		candidates = r.in(healthCheckKind, rollout.namespace())
	}
	for _, check := range candidates {
		matching := sameNamespace(rollout.namespace(), check.namespace())
		if namespaces != nil {
			matching = r.selectsNamespace(namespaces, check.namespace())
		}
		if answer = max(answer, min(matching, selectsLabels(checks, check))); answer == yes {
			return yes
		}
	}
	if !r.live && (namespaces != nil || r.hasExternal(healthCheckKind, rollout.namespace())) {
		answer = max(answer, maybe)
	}
	return answer
}

func selectsLabels(selector labels.Selector, o *object) certainty {
	switch {
	case o.isUnknown("metadata", "labels"):
		return maybe
	case selector.Matches(o.labels()):
		return yes
	}
	return no
}

// givesBothSelectors reports whether a Rollout selects HealthChecks in both forms.
func givesBothSelectors(o *object) bool {
	short := o.has(child(selectorPath, "matchLabels")...) || o.has(child(selectorPath, "matchExpressions")...)
	return short && o.has(child(selectorPath, "selector")...)
}

func checkSelectorForms(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		if givesBothSelectors(o) {
			r.find(at{o, selectorPath}, "spec.healthCheckSelector has selector, and matchLabels or matchExpressions as well: the API server rejects both",
				"move all of it below selector")
		}
	}
}

func checkEvaluated(r *report) {
	for _, o := range r.byKind[healthCheckKind] {
		if o.text("spec", "class") == v1alpha1.HealthCheckClassKustomization {
			r.checkSubject(o)
		}
	}
}

func (r *report) checkSubject(o *object) {
	kind, annotation := kustomizationKind, v1alpha1.KustomizationAnnotation
	both := o.annotation(annotation) != "" && o.annotation(v1alpha1.HelmReleaseAnnotation) != ""
	if o.annotation(v1alpha1.HelmReleaseAnnotation) != "" {
		kind, annotation = helmReleaseKind, v1alpha1.HelmReleaseAnnotation
	}
	where := annotationAt(o, annotation)
	namespace, name := named(o, annotation)
	switch {
	case both:
		r.find(where, fmt.Sprintf("%s names a Kustomization and a HelmRelease", o),
			fmt.Sprintf("remove one of the annotations %s and %s", v1alpha1.KustomizationAnnotation, annotation))
	case name == "":
		r.find(where, fmt.Sprintf("%s has the class kustomization, and names no Kustomization or HelmRelease", o),
			fmt.Sprintf("set the annotation %s to the name of a Kustomization, or %s to that of a HelmRelease", annotation, v1alpha1.HelmReleaseAnnotation))
	case r.missing(where, kind, namespace, name):
		r.find(where, fmt.Sprintf("%s %s, which %s evaluates, does not exist", kind.Kind, keyOf(namespace, name), o),
			r.remedyFor(kind, namespace, name))
	}
}

// named returns what an annotation of a HealthCheck names.
func named(check *object, annotation string) (namespace, name string) {
	text := check.annotation(annotation)
	if before, after, both := strings.Cut(text, "/"); both {
		return before, after
	}
	return check.namespace(), text
}

func checkClass(r *report) {
	for _, o := range r.byKind[healthCheckKind] {
		if o.text("spec", "class") == "" {
			r.find(at{o, []string{"spec"}}, fmt.Sprintf("%s has no class: this controller does not evaluate it, and perhaps no other", o),
				"set spec.class: kustomization for this controller, or a name of your own for the program that writes its status")
		}
	}
}
