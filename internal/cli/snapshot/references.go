// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"maps"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// references are what objects of a namespace refer to.
type references struct {
	namespace string
	objects   []client.Object
}

// repositories returns the ImageRepositories of the namespace that ImagePolicies name.
func (r references) repositories() []client.Object {
	return r.named(func(key client.ObjectKey, o client.Object) bool {
		_, scans := o.(*imagev1.ImageRepository)
		return scans && key.Namespace == r.namespace
	})
}

// elsewhere returns the objects of other namespaces that ImagePolicies, Kustomizations
// and HelmReleases name.
func (r references) elsewhere() []client.Object {
	return r.named(func(key client.ObjectKey, _ client.Object) bool { return key.Namespace != r.namespace })
}

// named returns the objects that others name, each once, if they are wanted.
func (r references) named(wanted func(client.ObjectKey, client.Object) bool) []client.Object {
	found := map[string]client.Object{}
	for _, o := range r.objects {
		named, key := nameIn(o)
		if named == nil || !wanted(key, named) {
			continue
		}
		named.SetNamespace(key.Namespace)
		named.SetName(key.Name)
		found[fmt.Sprintf("%T %s", named, key)] = named
	}
	return slices.Collect(maps.Values(found))
}

// nameIn returns the key of the object that another one names, and an empty object of its
// kind; nil if it names none.
func nameIn(o client.Object) (client.Object, client.ObjectKey) {
	switch o := o.(type) {
	case *imagev1.ImagePolicy:
		return &imagev1.ImageRepository{}, imagepolicy.RepositoryOf(o)
	case *kustomizev1.Kustomization:
		if ref, ok := targets.SourceOf(o); ok && ref.Kind == sourcev1.OCIRepositoryKind {
			return &sourcev1.OCIRepository{}, ref.NamespacedName
		}
	case *helmv2.HelmRelease:
		if ref, ok := targets.ChartOf(o); ok && ref.Kind == sourcev1.OCIRepositoryKind {
			return &sourcev1.OCIRepository{}, ref.NamespacedName
		}
	}
	return nil, client.ObjectKey{}
}

// gitRepositories reports whether a Rollout writes a GitRepository, as its status shows. Most
// GitRepositories have nothing to do with Rollouts, and not everybody may read them.
func (r references) gitRepositories() bool {
	return slices.ContainsFunc(r.objects, func(o client.Object) bool {
		rollout, ok := o.(*v1alpha1.Rollout)
		return ok && slices.ContainsFunc(rollout.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.Kind == sourcev1.GitRepositoryKind })
	})
}

// takeArtifacts reports whether a Kustomization or HelmRelease takes an ExternalArtifact.
func (r references) takeArtifacts() bool {
	return slices.ContainsFunc(r.objects, func(o client.Object) bool {
		_, takes := targets.ArtifactOf(o)
		return takes
	})
}

// checks reports whether Rollouts select HealthChecks of their own namespace, or own some,
// and of others.
func (r references) checks() (near, far bool) {
	for _, o := range r.objects {
		rollout, ok := o.(*v1alpha1.Rollout)
		if !ok {
			continue
		}
		selector := rollout.Spec.HealthCheckSelector
		near = near || selector != nil || rollout.Spec.TargetHealth != ""
		far = far || selector != nil && selector.NamespaceSelector != nil
	}
	return near, far
}

// needsNamespace reports whether a decision depends on the labels of the namespace.
func (r references) needsNamespace() bool {
	return slices.ContainsFunc(r.objects, func(o client.Object) bool {
		switch o := o.(type) {
		case *v1alpha1.ClusterRolloutSchedule:
			return o.Spec.NamespaceSelector != nil
		case *v1alpha1.ClusterReleaseQuarantine:
			return o.Spec.NamespaceSelector != nil
		case *v1alpha1.ClusterRolloutGate:
			return o.Spec.NamespaceSelector != nil
		case *imagev1.ImagePolicy:
			return imagepolicy.RepositoryOf(o).Namespace != r.namespace
		case *environmentsv1.Environment:
			return o.Namespace == r.namespace && len(upstreamNamespaces(o)) > 0
		}
		return false
	})
}

// asksForApprovals reports whether a gate asks for approvals. Only then they are read.
func (r references) asksForApprovals() bool {
	return slices.ContainsFunc(r.objects, func(o client.Object) bool {
		switch o := o.(type) {
		case *v1alpha1.RolloutGate:
			return o.Spec.Approvals != nil
		case *v1alpha1.ClusterRolloutGate:
			return o.Spec.Approvals != nil
		}
		return false
	})
}

// upstreamNamespaces returns the other namespaces in which an Environment has upstreams.
func upstreamNamespaces(e *environmentsv1.Environment) []string {
	var all []string
	for _, u := range e.GetUpstreams() {
		if u.Namespace != e.Namespace && !u.IsRemote() && e.Spec.Backend.Type != environmentsv1.BackendGitHub {
			all = append(all, u.Namespace)
		}
	}
	return all
}
