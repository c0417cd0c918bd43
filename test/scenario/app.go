// SPDX-License-Identifier: Apache-2.0

// Package scenario defines the application that the demo and the end-to-end tests
// release: its artifact, the Flux objects that deploy it, and the Rollout that promotes
// it.
package scenario

import (
	"fmt"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// App is an application in its own namespace. All its objects have its name.
type App struct {
	// Namespace and Name are those of all objects of the application.
	Namespace, Name string
	// Repository is the repository that its artifacts are pushed to.
	Repository string
	// Replicas is the number of replicas of its Deployment.
	Replicas int
	// ProgressDeadline is the progress deadline of its Deployment.
	ProgressDeadline time.Duration
}

// soon is the progress deadline of a Deployment that gives up soon.
const soon = 10 * time.Second

// NewApp returns an application with two replicas and a short deadline.
func NewApp(namespace, name string) App {
	return App{Namespace: namespace, Name: name, Repository: name, Replicas: 2, ProgressDeadline: soon}
}

// Release returns the artifact of one version: a Deployment and a ConfigMap.
func (a App) Release(version string) controlplane.Artifact {
	return controlplane.Artifact{
		Repository: a.Repository,
		Tag:        version,
		Files: map[string]string{
			"deployment.yaml": a.deployment(version),
			"configmap.yaml":  a.configMap(version),
		},
	}
}

// ConfigRelease returns the artifact of a version without pods: a ConfigMap.
func (a App) ConfigRelease(version string) controlplane.Artifact {
	release := a.Release(version)
	delete(release.Files, "deployment.yaml")
	return release
}

// GivesUpSoon returns the application with a Deployment that soon reports that it makes no
// progress. It is for releases whose pods are never ready: a good one may take long on a
// busy machine.
func (a App) GivesUpSoon() App {
	a.ProgressDeadline = soon
	return a
}

// BrokenRelease returns an artifact that kustomize-controller cannot apply.
func (a App) BrokenRelease(version string) controlplane.Artifact {
	release := a.Release(version)
	release.Files["deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + a.Name + "\nspec: {}\n"
	return release
}

func (a App) deployment(version string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: %[3]d
  progressDeadlineSeconds: %[4]d
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      containers:
      - name: %[1]s
        image: registry.example/%[1]s:%[2]s
`, a.Name, version, a.Replicas, int(a.ProgressDeadline.Seconds()))
}

func (a App) configMap(version string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
data:
  version: %q
`, a.Name, version)
}

// NamespaceObject returns the namespace of all other objects.
func (a App) NamespaceObject() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
}

// ImageRepository returns an ImageRepository that scans the application's repository.
func (a App) ImageRepository(registryHost string) *imagev1.ImageRepository {
	return &imagev1.ImageRepository{
		ObjectMeta: a.meta(),
		Spec: imagev1.ImageRepositorySpec{
			Image:    registryHost + "/" + a.Repository,
			Interval: metav1.Duration{Duration: time.Hour},
			Insecure: true,
		},
	}
}

// ImagePolicy returns an ImagePolicy that selects the newest release of the range.
func (a App) ImagePolicy(semverRange string) *imagev1.ImagePolicy {
	return &imagev1.ImagePolicy{
		ObjectMeta: a.meta(),
		Spec: imagev1.ImagePolicySpec{
			ImageRepositoryRef:     meta.NamespacedObjectReference{Name: a.Name},
			Policy:                 imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: semverRange}},
			DigestReflectionPolicy: imagev1.ReflectIfNotPresent,
		},
	}
}

// FirstTag is a tag that is never pushed. Until the first promotion, Flux finds nothing to
// deploy.
const FirstTag = "none-yet"

// OCIRepositoryWithFirstTag returns the target as the guides have it: nothing is deployed
// before the first promotion, whatever the registry has.
func (a App) OCIRepositoryWithFirstTag(registryHost string) *sourcev1.OCIRepository {
	object := a.OCIRepository(registryHost)
	object.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: FirstTag}
	object.Annotations["kustomize.toolkit.fluxcd.io/ssa"] = "IfNotPresent"
	return object
}

// OCIRepository returns the target whose tag the Rollout writes. It has none yet, so that
// Flux looks for the tag latest.
func (a App) OCIRepository(registryHost string) *sourcev1.OCIRepository {
	object := &sourcev1.OCIRepository{
		ObjectMeta: a.meta(),
		Spec: sourcev1.OCIRepositorySpec{
			URL:      "oci://" + registryHost + "/" + a.Repository,
			Interval: metav1.Duration{Duration: time.Hour},
			Insecure: true,
		},
	}
	object.Annotations = map[string]string{v1alpha1.RolloutAnnotation: a.Name}
	return object
}

// Kustomization returns a Kustomization that applies the artifact of the OCIRepository.
func (a App) Kustomization() *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{
		ObjectMeta: a.meta(),
		Spec: kustomizev1.KustomizationSpec{
			Interval:        metav1.Duration{Duration: time.Hour},
			RetryInterval:   &metav1.Duration{Duration: 5 * time.Second},
			Timeout:         &metav1.Duration{Duration: 30 * time.Second},
			TargetNamespace: a.Namespace,
			Prune:           true,
			SourceRef:       kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: a.Name},
		},
	}
}

// HealthCheck returns a HealthCheck that checks the objects of the Kustomization.
func (a App) HealthCheck() *v1alpha1.HealthCheck {
	class := v1alpha1.HealthCheckClassKustomization
	check := &v1alpha1.HealthCheck{ObjectMeta: a.meta(), Spec: v1alpha1.HealthCheckSpec{Class: &class}}
	check.Labels = map[string]string{"app": a.Name}
	check.Annotations = map[string]string{v1alpha1.KustomizationAnnotation: a.Name}
	return check
}

// Rollout returns the Rollout of the application's releases. Each option changes its
// spec.
func (a App) Rollout(options ...func(*v1alpha1.RolloutSpec)) *v1alpha1.Rollout {
	rollout := &v1alpha1.Rollout{ObjectMeta: a.meta()}
	rollout.Spec.ReleasesImagePolicy.Name = a.Name
	for _, option := range options {
		option(&rollout.Spec)
	}
	return rollout
}

// Environment returns the Environment of the application's Rollout. The name of the
// application is the same in every environment: that of its repository.
func (a App) Environment(name string, upstreams ...environmentsv1.Upstream) *environmentsv1.Environment {
	e := &environmentsv1.Environment{ObjectMeta: a.meta()}
	e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment = a.Name, a.Repository, name
	e.Spec.Upstreams, e.Spec.Backend.Type = upstreams, environmentsv1.BackendCluster
	return e
}

// Baked returns an option that makes releases bake under the application's HealthCheck.
func (a App) Baked(bake, deploy time.Duration) func(*v1alpha1.RolloutSpec) {
	return func(spec *v1alpha1.RolloutSpec) {
		spec.BakeTime = &metav1.Duration{Duration: bake}
		spec.DeployTimeout = &metav1.Duration{Duration: deploy}
		spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}},
		}
	}
}

// Flux returns the namespace and the Flux objects of the application, in an order in
// which they can be created.
func (a App) Flux(registryHost string) []client.Object {
	return []client.Object{
		a.NamespaceObject(),
		a.ImageRepository(registryHost),
		a.ImagePolicy(">=1.0.0"),
		a.OCIRepository(registryHost),
		a.Kustomization(),
	}
}

func (a App) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}
}
