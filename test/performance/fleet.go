// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// variable is the substitute that contains the version in each Kustomization.
const variable = "VERSION"

// checkClass is the class of the HealthChecks. The benchmark writes their status.
const checkClass = "benchmark"

// fleet is a number of applications, spread evenly over namespaces. Each has a Rollout
// with an ImagePolicy and its ImageRepository, two targets and a HealthCheck. The targets
// are an OCIRepository and the Kustomization that consumes it, which has the version as a
// variable.
type fleet struct {
	rollouts, namespaces int
	// host is the host of the registry with the images.
	host string
}

// namespace returns the namespace of an application.
func (f fleet) namespace(i int) string { return fmt.Sprintf("team-%03d", i%f.namespaces) }

// name returns the name of an application and of all its objects.
func (f fleet) name(i int) string { return fmt.Sprintf("app-%05d", i) }

// indexOf returns the number of the application that an object with this name belongs to.
func indexOf(name string) (int, bool) {
	number, ok := strings.CutPrefix(name, "app-")
	i, err := strconv.Atoi(number)
	return i, ok && err == nil
}

// releaseTag returns the version of a release by its number. All have the same length.
// Therefore none is a part of another.
func releaseTag(number int) string { return "1.0." + strconv.Itoa(1000+number) }

func (f fleet) image(i int) string { return f.host + "/" + f.namespace(i) + "/" + f.name(i) }

// meta returns the metadata of an object that Flux applies from Git.
func (f fleet) meta(kind schema.GroupVersionKind, i int) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, metav1.ObjectMeta{
		Namespace: f.namespace(i),
		Name:      f.name(i),
		Labels: map[string]string{
			"app.kubernetes.io/name":                f.name(i),
			"app.kubernetes.io/part-of":             "benchmark",
			"kustomize.toolkit.fluxcd.io/name":      "apps",
			"kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		},
	}
}

// imageRepository returns an ImageRepository that has been scanned. Its newest tags are
// those of branches, which the policy does not select.
func (f fleet) imageRepository(i int) *imagev1.ImageRepository {
	o := &imagev1.ImageRepository{Spec: imagev1.ImageRepositorySpec{
		Image: f.image(i), Interval: metav1.Duration{Duration: time.Hour}, ExclusionList: []string{`^.*\.sig$`}, Provider: "generic",
	}}
	o.TypeMeta, o.ObjectMeta = f.meta(imagev1.GroupVersion.WithKind(imagev1.ImageRepositoryKind), i)
	var tags []string
	for n := range 10 {
		tags = append(tags, fmt.Sprintf("main-%07x-%d", 0xabcdef0-n, 1760000000-n))
	}
	o.Status = imagev1.ImageRepositoryStatus{
		ObservedGeneration: 1, CanonicalImageName: o.Spec.Image, ObservedExclusionList: o.Spec.ExclusionList,
		LastScanResult: &imagev1.ScanResult{Revision: "2028604480", TagCount: 10, ScanTime: stamp(), LatestTags: tags},
		Conditions:     ready(1, "successful scan: found 10 tags with checksum 2028604480"),
	}
	return o
}

// imagePolicy returns an ImagePolicy that names a release.
func (f fleet) imagePolicy(i int, r release) *imagev1.ImagePolicy {
	o := &imagev1.ImagePolicy{Spec: imagev1.ImagePolicySpec{
		ImageRepositoryRef:     meta.NamespacedObjectReference{Name: f.name(i)},
		Policy:                 imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: ">=1.0.0"}},
		DigestReflectionPolicy: imagev1.ReflectIfNotPresent,
	}}
	o.TypeMeta, o.ObjectMeta = f.meta(imagev1.GroupVersion.WithKind(imagev1.ImagePolicyKind), i)
	o.Status = f.named(i, r)
	return o
}

// named returns the status of an ImagePolicy that names a release.
func (f fleet) named(i int, r release) imagev1.ImagePolicyStatus {
	return imagev1.ImagePolicyStatus{
		ObservedGeneration: 1,
		LatestRef:          &imagev1.ImageRef{Name: f.image(i), Tag: r.tag, Digest: r.digest},
		Conditions:         ready(1, "Latest image tag for "+f.image(i)+" resolved to "+r.tag),
	}
}

func (f fleet) ociRepository(i int) *sourcev1.OCIRepository {
	o := &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
		URL: "oci://" + f.image(i), Interval: metav1.Duration{Duration: time.Hour},
	}}
	o.TypeMeta, o.ObjectMeta = f.meta(sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind), i)
	o.Annotations = map[string]string{v1alpha1.RolloutAnnotation: f.name(i)}
	return o
}

// kustomization returns a Kustomization that has applied twenty objects many times.
func (f fleet) kustomization(i int) *kustomizev1.Kustomization {
	o := &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: time.Hour}, Prune: true, TargetNamespace: f.namespace(i),
		SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: f.name(i)},
		PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{"CLUSTER": "production", "REGION": "eu-west-1"}},
	}}
	o.TypeMeta, o.ObjectMeta = f.meta(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), i)
	o.Annotations = map[string]string{v1alpha1.SubstituteAnnotationPrefix + variable + v1alpha1.SubstituteAnnotationSuffix: f.name(i)}
	o.Status.Inventory = &kustomizev1.ResourceInventory{}
	for n, kind := range []string{"apps_Deployment", "_Service", "_ConfigMap", "_ServiceAccount", "networking.k8s.io_Ingress"} {
		for k := range 4 {
			o.Status.Inventory.Entries = append(o.Status.Inventory.Entries, kustomizev1.ResourceRef{
				ID: fmt.Sprintf("%s_%s-%d-%d_%s", f.namespace(i), f.name(i), n, k, kind), Version: "v1",
			})
		}
	}
	for n := range 5 {
		o.Status.History = append(o.Status.History, meta.Snapshot{
			Digest: digestOf(fmt.Sprint("build ", n)), FirstReconciled: stamp(), LastReconciled: stamp(),
			LastReconciledDuration: metav1.Duration{Duration: 1234 * time.Millisecond}, LastReconciledStatus: "ReconciliationSucceeded",
			TotalReconciliations: 24, Metadata: map[string]string{"revision": fmt.Sprintf("0.9.%d@%s", n, digestOf(fmt.Sprint("release ", n)))},
		})
	}
	return o
}

func (f fleet) healthCheck(i int) *v1alpha1.HealthCheck {
	class, message := checkClass, "all probes passed"
	o := &v1alpha1.HealthCheck{Spec: v1alpha1.HealthCheckSpec{Class: &class}}
	o.TypeMeta, o.ObjectMeta = f.meta(v1alpha1.GroupVersion.WithKind("HealthCheck"), i)
	o.Status = v1alpha1.HealthCheckStatus{Status: v1alpha1.HealthStatusHealthy, Message: &message}
	return o
}

// rollout returns a Rollout. If it bakes, it selects its HealthCheck by a label.
func (f fleet) rollout(i int, bake time.Duration) *v1alpha1.Rollout {
	o := &v1alpha1.Rollout{}
	o.TypeMeta, o.ObjectMeta = f.meta(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind), i)
	o.Spec.ReleasesImagePolicy.Name = f.name(i)
	if bake > 0 {
		o.Spec.BakeTime = &metav1.Duration{Duration: bake}
		o.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": f.name(i)}},
		}
	}
	return o
}

// gate returns a gate that is always passing.
func (f fleet) gate(i int) *v1alpha1.RolloutGate {
	passing := true
	o := &v1alpha1.RolloutGate{Spec: v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: f.name(i)}, Passing: &passing}}
	o.TypeMeta, o.ObjectMeta = f.meta(v1alpha1.GroupVersion.WithKind("RolloutGate"), i)
	return o
}

func stamp() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// ready returns the conditions of a ready Flux object.
func ready(generation int64, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: stamp(),
	}}
}
