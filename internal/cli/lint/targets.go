// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// targetsOf are the Flux objects that a Rollout writes, or that apply what it writes.
type targetsOf struct {
	repositories   []*object
	kustomizations []*object
	helmReleases   []*object
}

func (t targetsOf) none() bool {
	return len(t.repositories)+len(t.kustomizations)+len(t.helmReleases) == 0
}

// add adds a target, once.
func (t *targetsOf) add(o *object) {
	all := &t.repositories
	switch o.groupKind() {
	case kustomizationKind:
		all = &t.kustomizations
	case helmReleaseKind:
		all = &t.helmReleases
	}
	if !slices.Contains(*all, o) {
		*all = append(*all, o)
	}
}

// targets returns the targets of a Rollout, as the controller finds them.
func (s *set) targets(rollout *object) targetsOf {
	var t targetsOf
	near := func(o *object) bool { return sameNamespace(o.namespace(), rollout.namespace()) != no }
	for _, o := range s.writtenBy[rollout.name()] {
		if near(o) {
			t.add(o)
		}
	}
	for _, repository := range t.repositories {
		for _, o := range s.consumers(repository, rollout) {
			t.add(o)
		}
	}
	return t
}

// nearTargets returns the targets of a Rollout without those of other clusters. To say that
// there is none, one needs all of them.
func (s *set) nearTargets(rollout *object) targetsOf {
	t := s.targets(rollout)
	for _, all := range []*[]*object{&t.repositories, &t.kustomizations, &t.helmReleases} {
		*all = slices.DeleteFunc(*all, func(o *object) bool { return s.separate(o, rollout) })
	}
	return t
}

// indexTargets finds who writes what, and who consumes it.
func (s *set) indexTargets() {
	for _, kind := range writtenKinds {
		for _, o := range s.byKind[kind] {
			for _, rollout := range rolloutsOf(o) {
				s.writtenBy[rollout] = append(s.writtenBy[rollout], o)
			}
			if source, ok := o.source(); ok {
				s.consumersOf[source.name] = append(s.consumersOf[source.name], o)
			}
		}
	}
}

func checkTargets(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		switch {
		case !r.targets(o).none():
		case r.mayBeElsewhere(o):
			r.skip(at{object: o}, "its targets may be elsewhere")
		case r.mayHaveTargets(o):
			r.skip(at{object: o}, unknownName)
		default:
			r.find(at{object: o}, fmt.Sprintf("%s has no target: it writes its version nowhere", o),
				fmt.Sprintf("annotate an OCIRepository in its namespace with %[1]s: %[4]s, a Kustomization with %[2]s: %[4]s, or a HelmRelease with %[3]s: %[4]s",
					rolloutAnnotation, substituteForm, valuesForm, o.name()))
		}
	}
}

// mayBeElsewhere reports whether objects that exist elsewhere could be targets.
func (s *set) mayBeElsewhere(rollout *object) bool {
	return slices.ContainsFunc(writtenKinds, func(kind schema.GroupKind) bool { return s.hasExternal(kind, rollout.namespace()) })
}

// mayHaveTargets reports whether names that are not known could be those of targets.
func (s *set) mayHaveTargets(rollout *object) bool {
	unknown := func(o *object) bool { return o.isUnknown("metadata", "annotations") }
	return rollout.isUnknown("metadata", "name") || slices.ContainsFunc(writtenKinds, func(kind schema.GroupKind) bool {
		return slices.ContainsFunc(s.in(kind, rollout.namespace()), unknown)
	})
}

// waits reports whether a Kustomization or HelmRelease waits until what it applies is
// ready. Helm does, unless it is told not to.
func (o *object) waits() bool {
	if o.groupKind() == helmReleaseKind {
		return !o.isTrue("spec", "install", "disableWait") || !o.isTrue("spec", "upgrade", "disableWait")
	}
	return o.isTrue("spec", "wait") || len(o.items("spec", "healthChecks")) > 0
}

// waitsFor reports whether a Kustomization waits for a Rollout, if it applies it.
func (o *object) waitsFor(rollout *object) bool {
	return o.isTrue("spec", "wait") || slices.ContainsFunc(o.items("spec", "healthChecks"), func(each any) bool {
		ref, _ := each.(map[string]any)
		namespace, _ := ref["namespace"].(string)
		return ref["kind"] == rolloutKind.Kind && ref["name"] == rollout.name() &&
			(namespace == rollout.namespace() || namespace == "" && o.namespace() == rollout.namespace())
	})
}

// checkCycle finds Rollouts that are applied by one of their own targets.
func checkCycle(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		for _, k := range r.nearTargets(o).kustomizations {
			if k.waitsFor(o) && r.applies(k, o) {
				r.find(at{object: o}, fmt.Sprintf("%s applies this Rollout and waits for it, while the Rollout waits for what it applies", k),
					"apply the Rollout from another Kustomization, or set spec.wait to false")
			}
		}
	}
}

// applies reports whether a Kustomization applies an object: Flux has labelled it, or its
// file is below the path.
func (s *set) applies(k, o *object) bool {
	labels := o.labels()
	if labels[kustomizationKind.Group+"/name"] == k.name() && labels[kustomizationKind.Group+"/namespace"] == k.namespace() {
		return true
	}
	files, _ := s.appliedFiles(k)
	return files[o.file]
}

func checkDeployTimeout(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		if o.has("spec", "deployTimeout") {
			continue
		}
		targets := r.nearTargets(o)
		for _, target := range slices.Concat(targets.kustomizations, targets.helmReleases) {
			if target.waits() {
				r.find(at{o, []string{"spec"}}, fmt.Sprintf("spec.deployTimeout is not set, and %s waits: a release that never becomes healthy would never fail", target),
					"set spec.deployTimeout to more than spec.timeout of the "+target.kind())
				break
			}
		}
	}
}
