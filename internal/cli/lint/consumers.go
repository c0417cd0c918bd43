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

// consumerKinds are those that apply what an OCIRepository has pulled, and that a Rollout
// waits for.
var consumerKinds = []schema.GroupKind{kustomizationKind, helmReleaseKind}

// source returns the OCIRepository that a Kustomization or HelmRelease consumes, and
// whether it consumes one. In a cluster, it may be one that Flux has made of the template
// of a chart.
func (o *object) source() (namespace, name string, ok bool) {
	path := o.sourcePath()
	switch {
	case path == nil:
		return "", "", false
	case o.has(path...):
		isRepository := o.text(child(path, "kind")...) == repositoryKind.Kind
		return cmp.Or(o.text(child(path, "namespace")...), o.namespace()), o.text(child(path, "name")...), isRepository
	}
	parts := strings.Split(o.text("status", "helmChart"), "/")
	if len(parts) != 3 || parts[0] != repositoryKind.Kind {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// sourcePath returns the field of a Kustomization or HelmRelease that refers to its
// source. It is nil for others.
func (o *object) sourcePath() []string {
	switch o.groupKind() {
	case kustomizationKind:
		return []string{"spec", "sourceRef"}
	case helmReleaseKind:
		return []string{"spec", "chartRef"}
	}
	return nil
}

// consumesFrom reports whether the source of an object is in a namespace.
func (o *object) consumesFrom(namespace string) bool {
	from, _, _ := o.source()
	return sameNamespace(from, namespace) != no
}

// eachWritten calls a function for each OCIRepository that a Rollout writes.
func (r *report) eachWritten(visit func(rollout, repository *object)) {
	for _, rollout := range r.byKind[rolloutKind] {
		for _, repository := range r.targets(rollout).repositories {
			visit(rollout, repository)
		}
	}
}

// checkConsumed finds OCIRepositories that nothing applies.
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

// consumers returns what applies an OCIRepository in the namespace of a Rollout.
func (s *set) consumers(repository, rollout *object) []*object {
	var all []*object
	for _, o := range s.consumersOf[repository.name()] {
		if sameNamespace(o.namespace(), rollout.namespace()) != no && o.consumesFrom(repository.namespace()) {
			all = append(all, o)
		}
	}
	return all
}

// mayBeConsumed reports whether objects that are not known could apply an OCIRepository.
// Files without any object that could are a part of something larger.
func (s *set) mayBeConsumed(repository *object) bool {
	if repository.isUnknown("metadata", "name") {
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

// checkFollowed finds OCIRepositories that something takes for which no Rollout waits.
func checkFollowed(r *report) {
	r.eachWritten(func(rollout, repository *object) {
		for _, message := range r.notFollowed(repository, rollout) {
			r.find(annotationAt(repository, rolloutAnnotation), message,
				"put the Rollout, the OCIRepository and a Kustomization or HelmRelease that applies it into one namespace; if it need not be waited for, disable this rule")
		}
	})
}

// notFollowed says what takes an OCIRepository without being followed: Kustomizations and
// HelmReleases of other namespaces, and ArtifactGenerators.
func (s *set) notFollowed(repository, rollout *object) []string {
	var all []string
	add := func(o *object) {
		all = append(all, fmt.Sprintf("%s takes %s, and %s does not wait for it", o, repository, rollout))
	}
	for _, o := range s.consumersOf[repository.name()] {
		from, _, _ := o.source()
		if sameNamespace(o.namespace(), rollout.namespace()) == no && sameNamespace(from, repository.namespace()) == yes {
			add(o)
		}
	}
	for _, o := range s.byKind[generatorKind] {
		if o.generatesFrom(repository) {
			add(o)
		}
	}
	if message := recordedElsewhere(rollout, repository); len(all) == 0 && message != "" {
		all = append(all, fmt.Sprintf("%s: %s", repository, message))
	}
	return all
}

// generatesFrom reports whether an ArtifactGenerator has an OCIRepository among its
// sources.
func (o *object) generatesFrom(repository *object) bool {
	return slices.ContainsFunc(o.items("spec", "sources"), func(each any) bool {
		source, _ := each.(map[string]any)
		namespace, _ := source["namespace"].(string)
		return source["kind"] == repositoryKind.Kind && source["name"] == repository.name() &&
			sameNamespace(cmp.Or(namespace, o.namespace()), repository.namespace()) == yes
	})
}

// recordedElsewhere returns what the controller has recorded of consumers in other
// namespaces, which may not have been read here.
func recordedElsewhere(rollout, repository *object) string {
	for _, each := range rollout.items("status", "targets") {
		target, _ := each.(map[string]any)
		if target["kind"] == repositoryKind.Kind && target["name"] == repository.name() && target["reason"] == string(v1alpha1.TargetConsumerElsewhere) {
			message, _ := target["message"].(string)
			return message
		}
	}
	return ""
}
