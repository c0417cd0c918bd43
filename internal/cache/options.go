// SPDX-License-Identifier: Apache-2.0

// Package cache makes the manager's caches small. They keep only the fields that the
// reconcilers read, share values that many objects have in common, and are filled page by
// page.
package cache

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Setting is what a cache contains.
type Setting struct {
	// Rollouts selects those that the cache contains; nil selects all.
	Rollouts labels.Selector
	// NamespaceMemory is how many bytes the objects of a namespace may take together. Those
	// that do not fit are kept in part, and cannot be read. Zero is no limit.
	NamespaceMemory int
}

// Options returns the options of a cache that keeps only the fields that the reconcilers
// read. Of Flux's objects it keeps the few fields that contain the offered releases, the
// version in the spec and the applied version. Of managedFields it keeps the entries of
// this controller on targets. Where another field matters, the reconcilers read the
// object from the API server.
//
// Never write a whole object from such a cache back.
func Options(of Setting) ctrlcache.Options {
	t := newTrimmer(of.NamespaceMemory)
	return ctrlcache.Options{
		DefaultTransform: t.trim,
		ByObject:         map[client.Object]ctrlcache.ByObject{&v1alpha1.Rollout{}: {Label: of.Rollouts}},
		NewInformer:      t.newInformer,
	}
}

// trimmer makes objects small before they enter a cache.
type trimmer struct {
	words
	budget budget

	mu    sync.Mutex
	lists map[reflect.Type]*relister
}

func newTrimmer(ofNamespace int) *trimmer {
	t := &trimmer{budget: budget{most: ofNamespace}, lists: map[reflect.Type]*relister{}}
	t.budget.again = t.again
	return t
}

func (t *trimmer) trim(o any) (any, error) {
	if o, ok := o.(client.Object); ok {
		trim(o)
		t.admit(o, t.packBounded(o))
		t.share(o)
		t.packPointers(o)
	}
	return o, nil
}

func trim(o client.Object) {
	switch o := o.(type) {
	case *v1alpha1.Rollout:
		trimRollout(o)
	case *v1alpha1.HealthCheck:
		trimOwn(o)
		trimKind(o)
	case *v1alpha1.RolloutGate, *v1alpha1.RolloutSchedule, *v1alpha1.ClusterRolloutSchedule,
		*v1alpha1.ClusterRolloutGate, *v1alpha1.ReleaseQuarantine, *v1alpha1.ClusterReleaseQuarantine:
		trimOwn(o)
	case *v1alpha1.RolloutApproval:
		trimNotes(o)
		o.Annotations, o.Labels, o.OwnerReferences = nil, nil, nil
	case *environmentsv1.Environment:
		trimEnvironment(o)
	case *metav1.PartialObjectMetadata: // a Namespace; only its labels are read
		o.SetAnnotations(nil)
		trimNotes(o)
	default:
		trimFlux(o)
	}
}

// trimFlux trims an object of Flux.
func trimFlux(o client.Object) {
	switch o := o.(type) {
	case *sourcev1.OCIRepository, *sourcev1.GitRepository:
		trimRepository(o)
	case *kustomizev1.Kustomization:
		trimKustomization(o)
	case *helmv2.HelmRelease:
		trimHelmRelease(o)
	case *imagev1.ImagePolicy:
		trimPolicy(o)
	case *imagev1.ImageRepository:
		trimScan(o)
	case *sourcev1.ExternalArtifact:
		trimArtifact(o)
	case *generatorv1.ArtifactGenerator:
		trimGenerator(o)
	default:
		trimNotes(o)
	}
}

func trimRollout(r *v1alpha1.Rollout) {
	trimOwn(r)
	trimKind(r)
	s := &r.Status
	s.Conditions, s.Targets = fitted(s.Conditions), fitted(s.Targets)
	s.AvailableReleases, s.History = fitted(s.AvailableReleases), fitted(s.History)
}

// trimEnvironment replaces the list for dashboards with its digest, which shows whether it
// is still right. It removes the labels, because nothing selects Environments by them.
func trimEnvironment(e *environmentsv1.Environment) {
	trimOwn(e)
	trimKind(e)
	environment.DigestInfos(e)
	e.Labels = nil
	s := &e.Status
	e.Spec.Upstreams, s.Upstreams = fitted(e.Spec.Upstreams), fitted(s.Upstreams)
	s.Releases, s.Conditions = fitted(s.Releases), fitted(s.Conditions)
	for i := range s.Upstreams {
		s.Upstreams[i].Releases = fitted(s.Upstreams[i].Releases)
	}
}

func trimPolicy(p *imagev1.ImagePolicy) {
	p.ManagedFields = nil
	trimMetadata(p)
	p.Status = imagev1.ImagePolicyStatus{LatestRef: p.Status.LatestRef, Conditions: readConditions(p.Status.Conditions)}
}

func trimScan(r *imagev1.ImageRepository) {
	r.ManagedFields = nil
	trimMetadata(r)
	if slices.Equal(r.Spec.ExclusionList, imagev1.ImageRepository{}.GetExclusionList()) {
		r.Spec.ExclusionList = nil // has the same meaning
	}
	r.Status = imagev1.ImageRepositoryStatus{LastScanResult: r.Status.LastScanResult, Conditions: readConditions(r.Status.Conditions)}
}

// fitted returns the elements in a slice without spare capacity. Decoding grows a slice
// by doubling.
func fitted[T any](elements []T) []T {
	if len(elements) == cap(elements) {
		return elements
	}
	return append(make([]T, 0, len(elements)), elements...)
}

func trimRepository(r client.Object) {
	switch r := r.(type) {
	case *sourcev1.OCIRepository:
		trimOCIRepository(r)
	case *sourcev1.GitRepository:
		trimGitRepository(r)
	}
}

func trimOCIRepository(r *sourcev1.OCIRepository) {
	targets.KeepOwnFields(r)
	lastHandled := trimTarget(r, r.Status.LastHandledReconcileAt)
	r.Spec = sourcev1.OCIRepositorySpec{URL: r.Spec.URL, Reference: r.Spec.Reference, Suspend: r.Spec.Suspend}
	status := sourcev1.OCIRepositoryStatus{
		ObservedGeneration: r.Status.ObservedGeneration, Conditions: readConditions(r.Status.Conditions),
	}
	status.LastHandledReconcileAt = lastHandled
	if r.Status.Artifact != nil {
		status.Artifact = &meta.Artifact{Revision: r.Status.Artifact.Revision}
	}
	r.Status = status
}

// trimGitRepository keeps the same fields. Of GitRepositories whose tag no Rollout writes,
// only their existence is kept.
func trimGitRepository(r *sourcev1.GitRepository) {
	if targets.RolloutOf(r) == "" {
		r.ManagedFields = nil
		trimMetadata(r)
		r.Spec, r.Status = sourcev1.GitRepositorySpec{}, sourcev1.GitRepositoryStatus{}
		return
	}
	targets.KeepOwnFields(r)
	lastHandled := trimTarget(r, r.Status.LastHandledReconcileAt)
	r.Spec = sourcev1.GitRepositorySpec{URL: r.Spec.URL, Reference: r.Spec.Reference, Suspend: r.Spec.Suspend}
	status := sourcev1.GitRepositoryStatus{
		ObservedGeneration: r.Status.ObservedGeneration, Conditions: readConditions(r.Status.Conditions),
	}
	status.LastHandledReconcileAt = lastHandled
	if r.Status.Artifact != nil {
		status.Artifact = &meta.Artifact{Revision: r.Status.Artifact.Revision}
	}
	r.Status = status
}

// trimKustomization removes the inventory, and keeps only the digest of the last applied
// build from the history. Until it is Ready, it keeps a request that Flux has handled too:
// that proves which version Flux has found to be unhealthy.
func trimKustomization(k *kustomizev1.Kustomization) {
	targets.KeepOwnFields(k)
	asked, handled := k.Annotations[v1alpha1.ReconcileRequestAnnotation], k.Status.LastHandledReconcileAt
	lastHandled := trimTarget(k, handled)
	if asked != "" && !slices.ContainsFunc(k.Status.Conditions, isWell) {
		metav1.SetMetaDataAnnotation(&k.ObjectMeta, v1alpha1.ReconcileRequestAnnotation, asked)
		lastHandled = handled
	}
	spec := kustomizev1.KustomizationSpec{
		SourceRef: k.Spec.SourceRef, Suspend: k.Spec.Suspend, Wait: k.Spec.Wait, HealthChecks: k.Spec.HealthChecks,
	}
	if k.Spec.Wait || len(k.Spec.HealthChecks) > 0 {
		spec.Timeout = &metav1.Duration{Duration: k.GetTimeout()}
	}
	if k.Spec.PostBuild != nil {
		spec.PostBuild = &kustomizev1.PostBuild{Substitute: targets.WrittenVariables(k)}
	}
	k.Spec = spec
	status := kustomizev1.KustomizationStatus{
		ObservedGeneration: k.Status.ObservedGeneration, Conditions: readConditions(k.Status.Conditions),
		LastAppliedRevision: k.Status.LastAppliedRevision, LastAttemptedRevision: k.Status.LastAttemptedRevision,
	}
	status.LastHandledReconcileAt = lastHandled
	if len(k.Status.History) > 0 {
		status.History = meta.History{{Digest: k.Status.History[0].Digest}}
	}
	k.Status = status
}

// trimMetadata keeps the identity of an object of Flux, and the annotations that name
// Rollouts, or their promotions.
func trimMetadata(o client.Object) {
	trimKind(o)
	o.SetLabels(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	var kept map[string]string
	for key, value := range o.GetAnnotations() {
		if !isReadAnnotation(key) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	o.SetAnnotations(kept)
}

func isReadAnnotation(key string) bool {
	return key == v1alpha1.RolloutAnnotation || key == unreadable.Annotation || targets.IsPromotion(key) || targets.IsDigestAnnotation(key) ||
		strings.HasPrefix(key, v1alpha1.SubstituteAnnotationPrefix) || strings.HasPrefix(key, v1alpha1.ValuesAnnotationPrefix)
}

// trimTarget also keeps a reconcile request until Flux has handled it. It returns the
// request that Flux handled last if that must be kept too.
func trimTarget(o client.Object, lastHandled string) string {
	asked, handled := o.GetAnnotations()[v1alpha1.ReconcileRequestAnnotation], targets.Handled(o, lastHandled)
	trimMetadata(o)
	if handled {
		return ""
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ReconcileRequestAnnotation] = asked
	o.SetAnnotations(annotations)
	return lastHandled
}

// trimKind removes the kind, which is the same for all objects in a cache. A reader of
// the cache knows it anyway.
func trimKind(o client.Object) { o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) }

// trimOwn keeps only the annotations that are read on an object of this API. The number
// and size of other annotations from users and tools is not limited.
func trimOwn(o client.Object) {
	maps.DeleteFunc(o.GetAnnotations(), func(key, _ string) bool { return !isReadOfOwn(key) })
	trimNotes(o)
}

// isReadOfOwn reports whether an annotation belongs to this API or to Flux.
func isReadOfOwn(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return key == v1alpha1.ReconcileRequestAnnotation || strings.HasPrefix(key, eventv1.Group+"/") ||
		domain == v1alpha1.GroupVersion.Group || strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group)
}

// trimNotes removes managedFields and the copy of the whole object that kubectl apply
// stores.
func trimNotes(o client.Object) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
}

// readConditions returns the conditions that show the progress of Flux. It removes the
// message of a success, and the time if the object is only Ready, because nothing reads
// them.
func readConditions(all []metav1.Condition) []metav1.Condition {
	var kept []metav1.Condition
	for _, kind := range []string{meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition} {
		if c := apimeta.FindStatusCondition(all, kind); c != nil {
			kept = append(kept, *c)
			if isWell(*c) {
				kept[len(kept)-1].Message = ""
			}
		}
	}
	if len(kept) == 1 && isWell(kept[0]) {
		kept[0].LastTransitionTime = metav1.Time{}
	}
	return fitted(kept)
}

// isWell reports whether a condition shows that an object of Flux is Ready.
func isWell(c metav1.Condition) bool {
	return c.Type == meta.ReadyCondition && c.Status == metav1.ConditionTrue
}
