// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// consumerKinds are those that apply what a repository has pulled, and that a Rollout
// waits for.
var consumerKinds = []schema.GroupKind{kustomizationKind, helmReleaseKind}

// reference is what a Kustomization or HelmRelease consumes.
type reference struct{ kind, namespace, name string }

// source returns the repository or ExternalArtifact that a Kustomization or HelmRelease consumes,
// and whether it consumes one. In a cluster, it may be an OCIRepository that Flux has made of
// the template of a chart.
func (o *object) source() (reference, bool) {
	path := o.sourcePath()
	switch {
	case path == nil:
		return reference{}, false
	case o.has(path...):
		kind := o.text(child(path, "kind")...)
		return reference{kind, cmp.Or(o.text(child(path, "namespace")...), o.namespace()), o.text(child(path, "name")...)},
			kind == repositoryKind.Kind || kind == gitRepositoryKind.Kind || kind == externalArtifact
	}
	parts := strings.Split(o.text("status", "helmChart"), "/")
	if len(parts) != 3 || parts[0] != repositoryKind.Kind {
		return reference{}, false
	}
	return reference{parts[0], parts[1], parts[2]}, true
}

// sourcePath returns the field of a Kustomization or HelmRelease that refers to its
// source. It is nil for others.
func (o *object) sourcePath() []string {
	switch o.groupKind() {
	case kustomizationKind:
		return []string{"spec", "sourceRef"}
	case helmReleaseKind:
		if inGit := []string{"spec", "chart", "spec", "sourceRef"}; o.text(child(inGit, "kind")...) == gitRepositoryKind.Kind {
			return inGit
		}
		return []string{"spec", "chartRef"}
	}
	return nil
}

// consumes reports whether the source of an object may be a repository, whose name is known
// to be the same.
func (o *object) consumes(repository *object) bool {
	from, _ := o.source()
	return from.kind == repository.kind() && sameNamespace(from.namespace, repository.namespace()) != no
}

// eachWritten calls a function for each repository that a Rollout writes.
func (r *report) eachWritten(visit func(rollout, repository *object)) {
	for _, rollout := range r.byKind[rolloutKind] {
		for _, repository := range r.targets(rollout).repositories {
			visit(rollout, repository)
		}
	}
}

// checkConsumed finds repositories that nothing applies.
func checkConsumed(r *report) {
	r.eachWritten(func(rollout, repository *object) {
		where := annotationAt(repository, rolloutAnnotation)
		switch {
		case len(r.consumers(repository, rollout)) > 0, len(r.notFollowed(repository, rollout)) > 0:
		case r.mayBeConsumed(repository):
			r.skip(where, "what applies it may be in files that are not given, or has a name that is not known")
		default:
			r.find(where, fmt.Sprintf("no Kustomization or HelmRelease in namespace %s applies %s, so its releases count as applied once Flux has pulled them",
				repository.namespace(), repository), r.remedyOfUnconsumed(repository))
		}
	})
}

func (r *report) remedyOfUnconsumed(repository *object) string {
	remedy := "correct the sourceRef or chartRef of what should apply it"
	if r.live || repository.namespace() == "" {
		return remedy
	}
	return fmt.Sprintf("%s; if that is elsewhere, add --external Kustomization/%s/NAME", remedy, repository.namespace())
}

// consumers returns what applies a repository in the namespace of a Rollout.
func (s *set) consumers(repository, rollout *object) []*object {
	var all []*object
	for _, o := range s.consumersOf[repository.name()] {
		if sameNamespace(o.namespace(), rollout.namespace()) != no && o.consumes(repository) {
			all = append(all, o)
		}
	}
	for _, o := range s.takersOf(repository) {
		if sameNamespace(o.namespace(), rollout.namespace()) != no {
			all = append(all, o)
		}
	}
	return all
}

// mayBeConsumed reports whether objects that are not known could apply a repository.
// Files without any object that could are a part of something larger.
func (s *set) mayBeConsumed(repository *object) bool {
	if repository.isUnknown("metadata", "name") || s.mayBeTaken(repository) {
		return true
	}
	var near []*object
	for _, kind := range consumerKinds {
		if s.hasExternal(kind, repository.namespace()) {
			return true
		}
		near = append(near, s.in(kind, repository.namespace())...)
	}
	unknown := func(o *object) bool { return o.isUnknown(child(o.sourcePath(), "name")...) }
	return !s.live && len(near) == 0 || slices.ContainsFunc(near, unknown)
}

// checkFollowed finds repositories that something takes for which no Rollout waits.
func checkFollowed(r *report) {
	r.eachWritten(func(rollout, repository *object) {
		for _, message := range r.notFollowed(repository, rollout) {
			r.find(annotationAt(repository, rolloutAnnotation), message,
				"put the Rollout, the "+repository.kind()+" and a Kustomization or HelmRelease that applies it into one namespace; if it need not be waited for, disable this rule")
		}
	})
}

// notFollowed says what takes a repository without being followed: Kustomizations and
// HelmReleases of other namespaces.
func (s *set) notFollowed(repository, rollout *object) []string {
	var all []string
	add := func(o *object) {
		all = append(all, fmt.Sprintf("%s takes %s, and %s does not wait for it", o, repository, rollout))
	}
	for _, o := range s.consumersOf[repository.name()] {
		from, _ := o.source()
		if sameNamespace(o.namespace(), rollout.namespace()) == no && o.consumes(repository) && sameNamespace(from.namespace, repository.namespace()) == yes {
			add(o)
		}
	}
	for _, o := range s.takersOf(repository) {
		if sameNamespace(o.namespace(), rollout.namespace()) == no {
			add(o)
		}
	}
	if message := recordedElsewhere(rollout, repository); len(all) == 0 && message != "" {
		all = append(all, fmt.Sprintf("%s: %s", repository, message))
	}
	return all
}

// recordedElsewhere returns what the controller has recorded of consumers in other
// namespaces, which may not have been read here.
func recordedElsewhere(rollout, repository *object) string {
	for _, each := range rollout.items("status", "targets") {
		target, _ := each.(map[string]any)
		if target["kind"] == repository.kind() && target["name"] == repository.name() && target["reason"] == string(v1alpha1.TargetConsumerElsewhere) {
			message, _ := target["message"].(string)
			return message
		}
	}
	return ""
}
