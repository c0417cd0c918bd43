// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// Kinds that rules are about.
var (
	rolloutKind           = schema.GroupKind{Group: "kuberik.com", Kind: "Rollout"}
	gateKind              = schema.GroupKind{Group: "kuberik.com", Kind: "RolloutGate"}
	healthCheckKind       = schema.GroupKind{Group: "kuberik.com", Kind: "HealthCheck"}
	scheduleKind          = schema.GroupKind{Group: "kuberik.com", Kind: "RolloutSchedule"}
	clusterScheduleKind   = schema.GroupKind{Group: "kuberik.com", Kind: "ClusterRolloutSchedule"}
	quarantineKind        = schema.GroupKind{Group: "kuberik.com", Kind: "ReleaseQuarantine"}
	clusterQuarantineKind = schema.GroupKind{Group: "kuberik.com", Kind: "ClusterReleaseQuarantine"}
	coordinationKind      = schema.GroupKind{Group: "apps.containerinfra.nl", Kind: "DeploymentCoordination"}
	imageRepositoryKind   = schema.GroupKind{Group: "image.toolkit.fluxcd.io", Kind: "ImageRepository"}
	imagePolicyKind       = schema.GroupKind{Group: "image.toolkit.fluxcd.io", Kind: "ImagePolicy"}
	repositoryKind        = schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}
	gitRepositoryKind     = schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}
	kustomizationKind     = schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	helmReleaseKind       = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}
	generatorKind         = schema.GroupKind{Group: "source.extensions.fluxcd.io", Kind: "ArtifactGenerator"}
	environmentKind       = schema.GroupKind{Group: "environments.kuberik.com", Kind: "Environment"}
	namespaceKind         = schema.GroupKind{Kind: "Namespace"}
	deploymentKind        = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSetKind       = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// External names an object that exists, but is not among those that are linted.
type External struct{ Kind, Namespace, Name string }

// ParseExternal reads KIND/NAMESPACE/NAME.
func ParseExternal(text string) (External, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return External{}, fmt.Errorf("%q names no object: write KIND/NAMESPACE/NAME, such as ImagePolicy/shop/shop", text)
	}
	return External{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}

// set has all objects that are linted together.
type set struct {
	// live is true if the objects are those of a cluster.
	live     bool
	all      []*object
	texts    []File
	external map[External]bool
	unlisted map[schema.GroupKind]bool
	// externalIn is the same without names.
	externalIn map[External]bool
	byKind     map[schema.GroupKind][]*object
	// byNamespace has the objects of a kind by their namespace. Those whose namespace is
	// not known are under the empty text.
	byNamespace map[schema.GroupKind]map[string][]*object
	byName      map[schema.GroupKind]map[string][]*object
	// unnamed have a name that is not known.
	unnamed map[schema.GroupKind][]*object
	// writtenBy has the objects whose annotations name a Rollout, by the Rollout's name.
	// consumersOf has the Kustomizations and HelmReleases of a repository, by its name.
	writtenBy, consumersOf map[string][]*object
	// applied are sets of files that are applied together; nil until they are asked for.
	applied []map[string]bool
	// together are objects that something applies twice, differently; apart are those that
	// are defined for different clusters.
	together, apart []definition
	// variables are those in the text of a file, by the file's name.
	variables map[string]map[string]bool
	// schedules and openings are what was evaluated: nil is a schedule that cannot be.
	schedules map[*object]*schedule.Schedule
	openings  map[string]opening
	// environments are those whose spec is known; nil until they are asked for.
	environments []parsedEnvironment
	now          time.Time
	skipped      []NotChecked
}

func newSet(o Options) *set {
	s := &set{
		now: o.Now, schedules: map[*object]*schedule.Schedule{}, openings: map[string]opening{},
		writtenBy: map[string][]*object{}, consumersOf: map[string][]*object{},
		external: map[External]bool{}, unlisted: map[schema.GroupKind]bool{}, externalIn: map[External]bool{}, variables: map[string]map[string]bool{},
		byKind: map[schema.GroupKind][]*object{}, byNamespace: map[schema.GroupKind]map[string][]*object{},
		byName: map[schema.GroupKind]map[string][]*object{}, unnamed: map[schema.GroupKind][]*object{},
	}
	for _, kind := range o.Unlisted {
		s.unlisted[kind] = true
	}
	for _, e := range o.External {
		s.external[e] = true
		s.externalIn[External{Kind: e.Kind, Namespace: e.Namespace}] = true
	}
	return s
}

// add adds an object. It leaves out content that is no object.
func (s *set) add(o *object) {
	if o.kind() != "" && (o.apiVersion() != "" || isOurs(o.kind())) {
		s.all = append(s.all, o)
	}
}

// index prepares the set for queries.
func (s *set) index() {
	for _, o := range s.all {
		kind := o.groupKind()
		s.byKind[kind] = append(s.byKind[kind], o)
		if o.isUnknown("metadata", "name") {
			s.unnamed[kind] = append(s.unnamed[kind], o)
		}
		if s.byName[kind] == nil {
			s.byName[kind], s.byNamespace[kind] = map[string][]*object{}, map[string][]*object{}
		}
		s.byName[kind][o.name()] = append(s.byName[kind][o.name()], o)
		namespace := knownOrEmpty(o.namespace())
		s.byNamespace[kind][namespace] = append(s.byNamespace[kind][namespace], o)
		o.problems = schemaProblems(o)
	}
	s.indexTargets()
	s.together, s.apart = s.definitions()
}

func knownOrEmpty(namespace string) string {
	if hasVariable(namespace) {
		return ""
	}
	return namespace
}

// certainty is an answer that may depend on values that are not known.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// sameNamespace reports whether two objects are in one namespace. One that is not written
// down is decided elsewhere, and can be any.
func sameNamespace(a, b string) certainty {
	switch {
	case a == b:
		return yes
	case a == "" || b == "" || hasVariable(a) || hasVariable(b):
		return maybe
	}
	return no
}

// exists reports whether an object exists.
func (s *set) exists(kind schema.GroupKind, namespace, name string) certainty {
	if s.external[External{Kind: kind.Kind, Namespace: namespace, Name: name}] {
		return yes
	}
	if s.unlisted[kind] {
		return yes // for all one knows
	}
	answer := no
	for _, o := range s.byName[kind][name] {
		answer = max(answer, sameNamespace(namespace, o.namespace()))
	}
	if answer == no && hasVariable(name) {
		answer = maybe
	}
	for _, o := range s.unnamed[kind] {
		answer = max(answer, min(maybe, sameNamespace(namespace, o.namespace())))
	}
	return answer
}

// in returns the objects of a kind that are, or may be, in a namespace.
func (s *set) in(kind schema.GroupKind, namespace string) []*object {
	if namespace = knownOrEmpty(namespace); namespace == "" {
		return s.byKind[kind]
	}
	return slices.Concat(s.byNamespace[kind][namespace], s.byNamespace[kind][""])
}

// hasExternal reports whether objects of a kind in a namespace are elsewhere.
func (s *set) hasExternal(kind schema.GroupKind, namespace string) bool {
	return s.externalIn[External{Kind: kind.Kind, Namespace: namespace}]
}

// selectsNamespace reports whether a selector matches the labels of a namespace. Only the
// labels of namespaces in the set are known.
func (s *set) selectsNamespace(selector labels.Selector, name string) certainty {
	if selector.Empty() {
		return yes
	}
	known := s.byName[namespaceKind][name]
	switch {
	case len(known) == 0 || known[0].isUnknown("metadata", "labels"):
		return maybe
	case selector.Matches(namespaceLabels(known[0])):
		return yes
	}
	return no
}

// nameLabel is a label that each namespace has: its name.
const nameLabel = "kubernetes.io/metadata.name"

// namespaceLabels returns the labels of a namespace, with the one that Kubernetes adds.
func namespaceLabels(o *object) labels.Set {
	all := o.labels()
	all[nameLabel] = o.name()
	return all
}
