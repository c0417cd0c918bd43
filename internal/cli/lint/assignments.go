// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	rolloutAnnotation = v1alpha1.RolloutAnnotation

	// substituteForm and valuesForm are the keys of annotations as a message shows them.
	substituteForm = v1alpha1.SubstituteAnnotationPrefix + "VARIABLE" + v1alpha1.SubstituteAnnotationSuffix
	valuesForm     = v1alpha1.ValuesAnnotationPrefix + "PATH" + v1alpha1.ValuesAnnotationSuffix
)

// writtenKinds are those whose fields annotations assign to Rollouts.
var writtenKinds = []schema.GroupKind{repositoryKind, gitRepositoryKind, kustomizationKind, helmReleaseKind}

// isRepository reports whether others apply what an object has pulled: it is an OCIRepository or
// a GitRepository.
func (o *object) isRepository() bool {
	return o.groupKind() == repositoryKind || o.groupKind() == gitRepositoryKind
}

// assignment is an annotation that assigns a field to a Rollout.
type assignment struct {
	key, rollout string
	// path is the field. It is nil if the annotation names none that can be written.
	path []string
}

// assignments returns the annotations of an object that the controller reads, sorted.
func (o *object) assignments() []assignment {
	kind := o.groupKind()
	if !slices.Contains(writtenKinds, kind) {
		return nil
	}
	var all []assignment
	for _, key := range o.annotationKeys() {
		if path, ok := assignedBy(kind, key); ok {
			all = append(all, assignment{key: key, rollout: o.annotation(key), path: path})
		}
	}
	return all
}

func (o *object) annotationKeys() []string {
	return slices.Sorted(maps.Keys(o.fields("metadata", "annotations")))
}

// assignedBy returns the field that an annotation of a kind assigns, and whether it
// assigns one.
func assignedBy(kind schema.GroupKind, key string) (path []string, ok bool) {
	switch kind {
	case repositoryKind:
		if key == v1alpha1.DigestRefAnnotation {
			return digestPath, true
		}
		return tagPath, key == rolloutAnnotation
	case gitRepositoryKind:
		return tagPath, key == rolloutAnnotation
	case kustomizationKind:
		variable, ok := variableOf(key)
		return substitutePath(variable), ok
	case helmReleaseKind:
		path, ok := pathOfValue(key)
		if !isPathOfValue(path) {
			return nil, ok
		}
		return valuePath(path), ok
	}
	return nil, false
}

// annotationAt returns the place of an annotation.
func annotationAt(o *object, key string) at { return at{o, []string{"metadata", "annotations", key}} }

func checkMisplaced(r *report) {
	for _, kind := range writtenKinds {
		for _, o := range r.byKind[kind] {
			for _, key := range o.annotationKeys() {
				if of, ok := kindOfAnnotation(key); ok && of != kind && (kind != gitRepositoryKind || key != rolloutAnnotation) {
					r.find(annotationAt(o, key), fmt.Sprintf("the annotation %s has no effect on %s: it is for %ss", key, withArticle(kind.Kind), of.Kind),
						remedyOfMisplaced(o, key))
				}
			}
		}
	}
}

// kindOfAnnotation returns the kind on which an annotation assigns a field, and whether
// there is one.
func kindOfAnnotation(key string) (schema.GroupKind, bool) {
	switch {
	case key == rolloutAnnotation, key == v1alpha1.DigestRefAnnotation:
		return repositoryKind, true
	case strings.HasPrefix(key, v1alpha1.SubstituteAnnotationPrefix), strings.HasPrefix(key, v1alpha1.DigestSubstituteAnnotationPrefix):
		return kustomizationKind, true
	case strings.HasPrefix(key, v1alpha1.ValuesAnnotationPrefix), strings.HasPrefix(key, v1alpha1.DigestValuesAnnotationPrefix):
		return helmReleaseKind, true
	}
	return schema.GroupKind{}, false
}

func withArticle(kind string) string {
	if strings.HasPrefix(kind, "O") {
		return "an " + kind
	}
	return "a " + kind
}

// remedyOfMisplaced returns the annotation that has the effect on this kind.
func remedyOfMisplaced(o *object, key string) string {
	rollout := o.annotation(key)
	switch o.groupKind() {
	case gitRepositoryKind:
		return "remove it: Git has commits, and no digests of images; " + fmt.Sprintf("%s: %s makes a Rollout write the tag", rolloutAnnotation, rollout)
	case kustomizationKind:
		return fmt.Sprintf("write %s: %s", substituteForm, rollout)
	case helmReleaseKind:
		return fmt.Sprintf("write %s: %s, with the path of the version in spec.values, such as image.tag; or annotate the OCIRepository of its chart with %s: %s",
			valuesForm, rollout, rolloutAnnotation, rollout)
	}
	return fmt.Sprintf("write %s: %s", rolloutAnnotation, rollout)
}

// mostRollouts is how many Rollouts the controller lets write into one object.
const mostRollouts = 50

func checkWritable(r *report) {
	r.checkPlacesOfValues()
	r.checkMostRollouts()
}

func (r *report) checkMostRollouts() {
	for _, kind := range writtenKinds {
		for _, o := range r.byKind[kind] {
			if n := len(rolloutsOf(o)); n > mostRollouts {
				r.find(at{o, []string{"metadata", "annotations"}},
					fmt.Sprintf("its annotations name %d Rollouts, and at most %d may write into one %s", n, mostRollouts, kind.Kind), "divide it into several")
			}
		}
	}
}

// rolloutsOf returns the Rollouts that the annotations of an object name, sorted.
func rolloutsOf(o *object) []string {
	var all []string
	for _, a := range o.assignments() {
		if a.rollout != "" {
			all = append(all, a.rollout)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
