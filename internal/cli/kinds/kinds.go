// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds that Rollouts depend on. What the command line
// lists, lints and examines comes from it.
package kinds

import (
	"reflect"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Kind is a kind that Rollouts depend on.
type Kind struct {
	schema.GroupVersionKind
	// Object and List are empty, and must not be changed.
	Object client.Object
	List   client.ObjectList
	// Global is true if the objects have no namespace.
	Global bool
	// Optional is true if Rollouts work where the API server does not serve the kind.
	Optional bool
	// Decides is true if objects count for Rollouts of their namespace, or of all
	// namespaces, that no other object names.
	Decides bool
	// OnlyHolds is true if an object can do nothing but hold releases back.
	OnlyHolds bool
	// Once is true if two definitions of one object are a mistake. Of other kinds, overlays
	// often have several.
	Once bool
}

// All are the kinds that the rules of lint are about. Rollouts are the first.
var All = []Kind{
	{GroupVersionKind: ours("Rollout"), Object: &v1alpha1.Rollout{}, List: &v1alpha1.RolloutList{}, Decides: true, Once: true},
	{GroupVersionKind: ours("RolloutGate"), Object: &v1alpha1.RolloutGate{}, List: &v1alpha1.RolloutGateList{}, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("ClusterRolloutGate"), Object: &v1alpha1.ClusterRolloutGate{}, List: &v1alpha1.ClusterRolloutGateList{}, Global: true, Optional: true, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("RolloutApproval"), Object: &v1alpha1.RolloutApproval{}, List: &v1alpha1.RolloutApprovalList{}, Optional: true},
	{GroupVersionKind: ours("RolloutSchedule"), Object: &v1alpha1.RolloutSchedule{}, List: &v1alpha1.RolloutScheduleList{}, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("ClusterRolloutSchedule"), Object: &v1alpha1.ClusterRolloutSchedule{}, List: &v1alpha1.ClusterRolloutScheduleList{}, Global: true, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("ReleaseQuarantine"), Object: &v1alpha1.ReleaseQuarantine{}, List: &v1alpha1.ReleaseQuarantineList{}, Optional: true, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("ClusterReleaseQuarantine"), Object: &v1alpha1.ClusterReleaseQuarantine{}, List: &v1alpha1.ClusterReleaseQuarantineList{}, Global: true, Optional: true, Decides: true, OnlyHolds: true, Once: true},
	{GroupVersionKind: ours("HealthCheck"), Object: &v1alpha1.HealthCheck{}, List: &v1alpha1.HealthCheckList{}, Once: true},
	{GroupVersionKind: environmentsv1.GroupVersion.WithKind("Environment"), Object: &environmentsv1.Environment{}, List: &environmentsv1.EnvironmentList{}, Optional: true, Decides: true, Once: true},
	{GroupVersionKind: coordinationv1.GroupVersion.WithKind("DeploymentCoordination"), Object: &coordinationv1.DeploymentCoordination{}, List: &coordinationv1.DeploymentCoordinationList{}, Optional: true, Once: true},
	{GroupVersionKind: imagev1.GroupVersion.WithKind("ImagePolicy"), Object: &imagev1.ImagePolicy{}, List: &imagev1.ImagePolicyList{}, Decides: true, Once: true},
	{GroupVersionKind: imagev1.GroupVersion.WithKind("ImageRepository"), Object: &imagev1.ImageRepository{}, List: &imagev1.ImageRepositoryList{}},
	{GroupVersionKind: sourcev1.GroupVersion.WithKind("OCIRepository"), Object: &sourcev1.OCIRepository{}, List: &sourcev1.OCIRepositoryList{}, Decides: true, Once: true},
	{GroupVersionKind: sourcev1.GroupVersion.WithKind("GitRepository"), Object: &sourcev1.GitRepository{}, List: &sourcev1.GitRepositoryList{}, Optional: true},
	{GroupVersionKind: kustomizev1.GroupVersion.WithKind("Kustomization"), Object: &kustomizev1.Kustomization{}, List: &kustomizev1.KustomizationList{}, Decides: true, Once: true},
	{GroupVersionKind: helmv2.GroupVersion.WithKind("HelmRelease"), Object: &helmv2.HelmRelease{}, List: &helmv2.HelmReleaseList{}, Optional: true, Decides: true, Once: true},
	{GroupVersionKind: generatorv1.GroupVersion.WithKind(generatorv1.ArtifactGeneratorKind), Object: &generatorv1.ArtifactGenerator{}, List: &generatorv1.ArtifactGeneratorList{}, Optional: true},
	{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Object: &appsv1.Deployment{}, List: &appsv1.DeploymentList{}},
	{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Object: &appsv1.StatefulSet{}, List: &appsv1.StatefulSetList{}},
	{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Object: &corev1.Namespace{}, List: &corev1.NamespaceList{}, Global: true},
}

func ours(kind string) schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(kind) }

// Of returns what is known of a kind, in whatever version.
func Of(kind schema.GroupKind) (Kind, bool) {
	return find(func(k Kind) bool { return k.GroupKind() == kind })
}

// OfObject returns the kind of an object or of the items of a list, by its Go type.
func OfObject(object any) (Kind, bool) {
	of := reflect.TypeOf(object)
	return find(func(k Kind) bool { return reflect.TypeOf(k.Object) == of || reflect.TypeOf(k.List) == of })
}

// Named returns the kind that a user names: in the singular or plural.
func Named(word string) (Kind, bool) {
	return find(func(k Kind) bool { return strings.EqualFold(word, k.Kind) || strings.EqualFold(word, Plural(k.Kind)) })
}

func find(is func(Kind) bool) (Kind, bool) {
	for _, k := range All {
		if is(k) {
			return k, true
		}
	}
	return Kind{}, false
}

// IsGlobal reports whether the objects of a kind have no namespace.
func IsGlobal(kind schema.GroupKind) bool {
	k, _ := Of(kind)
	return k.Global
}

// Plural returns what several objects of a kind are called.
func Plural(kind string) string {
	switch {
	case strings.HasSuffix(kind, "Policy"), strings.HasSuffix(kind, "Repository"):
		return kind[:len(kind)-1] + "ies"
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	}
	return kind + "s"
}
