// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// floating is the tag that Flux pulls if an OCIRepository names none.
const floating = "latest"

// placeholder is a tag that is never pushed, so that Flux pulls nothing.
const placeholder = "none-yet"

// checkUnpromoted finds what makes Flux deploy the tag latest until the first promotion.
func checkUnpromoted(r *report) {
	for _, field := range r.fieldsOfRollouts() {
		if field.digest || !r.mayBeFirst(field) {
			continue
		}
		switch set := field.object.has(field.path...); {
		case field.object.isRepository() && !set && !field.object.prefersOther():
			r.find(at{field.object, []string{"spec"}}, fmt.Sprintf("%s has no spec.ref.tag: Flux deploys %s until Rollout %s has promoted a release",
				field.object, field.object.pulledWithoutTag(), field.rollout), remedyOfNoTag)
		case set && field.object.text(field.path...) == floating && !r.adopts(field):
			r.find(field.at, fmt.Sprintf("%s is latest, which Flux deploys until Rollout %s has promoted a release",
				fieldName(field.path), field.rollout), "set a version, or "+remedyOfLatest)
		}
	}
	r.checkFloatingDefaults()
}

const (
	remedyOfNoTag = "set it to a tag that does not exist, such as " + placeholder + ", and let Flux leave it alone: with the annotation " +
		"kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, or with spec.ignore of the Kustomization that applies it (Flux 2.9)"
	remedyOfLatest = "set spec.firstRelease of the Rollout to Applied if the history should begin with it"
)

// prefersOther reports whether a field of a repository is set that Flux prefers to the tag.
// Another rule is about that.
func (o *object) prefersOther() bool {
	return slices.ContainsFunc(preferred[o.groupKind()], func(name string) bool { return o.text("spec", "ref", name) != "" })
}

// pulledWithoutTag names what Flux pulls if a repository names no tag.
func (o *object) pulledWithoutTag() string {
	if o.groupKind() == gitRepositoryKind {
		return "a branch"
	}
	return floating
}

// mayBeFirst reports whether the Rollout of a field may not have promoted anything yet. In
// files that is always so: they may be applied to a new cluster.
func (r *report) mayBeFirst(field written) bool {
	rollout := r.rolloutOf(field)
	return rollout == nil || len(rollout.items("status", "history")) == 0
}

// adopts reports whether the history of a Rollout is to begin with the value of its fields.
func (r *report) adopts(field written) bool {
	rollout := r.rolloutOf(field)
	return rollout != nil && rollout.text("spec", "firstRelease") == string(v1alpha1.FirstReleaseApplied)
}

// rolloutOf returns the Rollout of a field; nil if it is not among the objects.
func (s *set) rolloutOf(field written) *object {
	for _, rollout := range s.byName[rolloutKind][field.rollout] {
		if sameNamespace(rollout.namespace(), field.object.namespace()) != no {
			return rollout
		}
	}
	return nil
}

// checkFloatingDefaults finds variables whose default is latest, as far as the manifests
// that use them are among the files.
func (r *report) checkFloatingDefaults() {
	for _, k := range r.byKind[kustomizationKind] {
		variables := k.assignments()
		files, _ := r.appliedFiles(k)
		if len(variables) == 0 || len(files) == 0 {
			continue
		}
		uses := r.usesBelow(files)
		for _, a := range variables {
			for _, u := range uses[a.variable()] {
				if u.fallback == floating && !k.has(a.path...) {
					r.find(u.at, fmt.Sprintf("the default of ${%s} is latest, which Flux deploys until Rollout %s has promoted a release",
						a.variable(), a.rollout), "write a version that exists as the default")
				}
			}
		}
	}
}
