// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
)

// targetsOf are the Flux objects that a Rollout writes, or that apply what it writes.
type targetsOf struct {
	repositories   []*object
	kustomizations []*object
}

func (t targetsOf) none() bool { return len(t.repositories)+len(t.kustomizations) == 0 }

// targets returns the targets of a Rollout, as the controller finds them.
func (s *set) targets(rollout *object) targetsOf {
	var t targetsOf
	near := func(o *object) bool { return sameNamespace(o.namespace(), rollout.namespace()) != no }
	for _, o := range s.writtenBy[rollout.name()] {
		switch {
		case !near(o):
		case o.groupKind() == repositoryKind:
			t.repositories = append(t.repositories, o)
		default:
			t.kustomizations = append(t.kustomizations, o)
		}
	}
	for _, repository := range t.repositories {
		for _, o := range s.consumersOf[repository.name()] {
			if near(o) && o.consumesFrom(repository.namespace()) && !slices.Contains(t.kustomizations, o) {
				t.kustomizations = append(t.kustomizations, o)
			}
		}
	}
	return t
}

// indexTargets finds who writes what, and who consumes it.
func (s *set) indexTargets() {
	for _, o := range s.byKind[repositoryKind] {
		if rollout := o.annotation(rolloutAnnotation); rollout != "" {
			s.writtenBy[rollout] = append(s.writtenBy[rollout], o)
		}
	}
	for _, o := range s.byKind[kustomizationKind] {
		var rollouts []string
		for _, a := range substituteAnnotations(o) {
			rollouts = append(rollouts, a.rollout)
		}
		slices.Sort(rollouts)
		for _, rollout := range slices.Compact(rollouts) {
			s.writtenBy[rollout] = append(s.writtenBy[rollout], o)
		}
		if o.text("spec", "sourceRef", "kind") == repositoryKind.Kind {
			source := o.text("spec", "sourceRef", "name")
			s.consumersOf[source] = append(s.consumersOf[source], o)
		}
	}
}

// consumesFrom reports whether the source of a Kustomization is in a namespace.
func (o *object) consumesFrom(namespace string) bool {
	from := o.text("spec", "sourceRef", "namespace")
	if from == "" {
		from = o.namespace()
	}
	return sameNamespace(from, namespace) != no
}

func checkTargets(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		switch {
		case !r.targets(o).none():
		case r.hasExternal(repositoryKind, o.namespace()) || r.hasExternal(kustomizationKind, o.namespace()):
			r.skip(at{object: o}, "its targets may be elsewhere")
		case r.mayHaveTargets(o):
			r.skip(at{object: o}, unknownName)
		default:
			r.find(at{object: o}, fmt.Sprintf("%s has no target: it writes its version nowhere", o),
				fmt.Sprintf("annotate an OCIRepository in its namespace with %s: %s, or a Kustomization with rollout.kuberik.com/substitute.VARIABLE.from: %s",
					rolloutAnnotation, o.name(), o.name()))
		}
	}
}

// mayHaveTargets reports whether names that are not known could be those of targets.
func (s *set) mayHaveTargets(rollout *object) bool {
	unknown := func(o *object) bool { return o.isUnknown("metadata", "annotations") }
	return rollout.isUnknown("metadata", "name") ||
		slices.ContainsFunc(s.in(repositoryKind, rollout.namespace()), unknown) ||
		slices.ContainsFunc(s.in(kustomizationKind, rollout.namespace()), unknown)
}

// waits reports whether a Kustomization waits until what it applies is ready.
func (o *object) waits() bool {
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
		for _, k := range r.targets(o).kustomizations {
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
		for _, k := range r.targets(o).kustomizations {
			if k.waits() {
				r.find(at{o, []string{"spec"}}, fmt.Sprintf("spec.deployTimeout is not set, and %s waits: a release that never becomes healthy would never fail", k),
					"set spec.deployTimeout to more than spec.timeout of the Kustomization")
				break
			}
		}
	}
}
