// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// CoordinationCRDs returns the folder of the coordinators' CustomResourceDefinitions.
func CoordinationCRDs() string {
	return filepath.Join(parts.Root(), "config", "coordination", "crd", "bases")
}

// Coordinators are the components of config/components that the coordinators need.
// CoordinatorArgs are the arguments that enable the coordinators.
var (
	Coordinators    = []string{"deployment-coordination", "statefulset-rollout"}
	CoordinatorArgs = []string{"--controllers=*,deploymentcoordination,statefulsetrollout"}
)

// MemberLabel defines to which coordination a Deployment belongs.
const MemberLabel = "app.kubernetes.io/part-of"

// groupLabel defines to which rollout group a StatefulSet belongs.
const groupLabel = "rollout-group"

// maxUnavailableAnnotation defines how many pods of a StatefulSet may be unavailable
// while its group rolls out.
const maxUnavailableAnnotation = "rollout-max-unavailable"

// Fleet is an application of several workloads, which roll out in turn.
type Fleet struct {
	App
	// Members are its Deployments. A DeploymentCoordination with the name of the
	// application rolls them out one at a time.
	Members []string
	// Zones are its StatefulSets, which form a rollout group with that name.
	Zones []string
	// MinReadySeconds is set in the coordination and in the StatefulSets.
	MinReadySeconds int32
	// IdlePolicy is the idle policy of the coordination.
	IdlePolicy coordinationv1.IdlePolicy
	// MaxUnavailable is the value of maxUnavailableAnnotation of each StatefulSet. The
	// annotation is not set if it is empty.
	MaxUnavailable string
	// ConfigMaps are those that each Deployment needs to start, with their annotations. The
	// name of each ends with the version, as generators and charts give it a hash.
	ConfigMaps map[string]map[string]string
}

// Release returns the artifact of one version: the coordination and all workloads. The
// workloads in tags have an image with another tag than the rest.
func (f Fleet) Release(version string, tags map[string]string) (controlplane.Artifact, error) {
	artifact := controlplane.Artifact{Repository: f.Repository, Tag: version, Files: map[string]string{}}
	for i, object := range f.Objects(version, tags) {
		text, err := manifest(object)
		if err != nil {
			return artifact, err
		}
		artifact.Files[fmt.Sprintf("%d.yaml", i)] = text
	}
	return artifact, nil
}

// Objects returns the objects of a version, without a namespace.
func (f Fleet) Objects(version string, tags map[string]string) []client.Object {
	imageOf := func(name string) string {
		tag, other := tags[name]
		if !other {
			tag = version
		}
		return "registry.example/" + name + ":" + tag
	}
	var objects []client.Object
	if len(f.Members) > 0 {
		objects = append(objects, f.Coordination())
	}
	for _, name := range slices.Sorted(maps.Keys(f.ConfigMaps)) {
		objects = append(objects, f.configMap(name, version))
	}
	for _, name := range f.Members {
		objects = append(objects, f.needing(f.Deployment(name, imageOf(name)), version))
	}
	for _, name := range f.Zones {
		objects = append(objects, f.StatefulSet(name, imageOf(name)))
	}
	return objects
}

// GeneratedLabel is on the ConfigMaps, and defines that nothing else deletes them.
const GeneratedLabel = "generated"

func (f Fleet) configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-" + version, Labels: map[string]string{GeneratedLabel: "kept"}, Annotations: f.ConfigMaps[name],
		},
	}
}

// needing lets the pods of a Deployment need the ConfigMaps of a version.
func (f Fleet) needing(d *appsv1.Deployment, version string) *appsv1.Deployment {
	c := &d.Spec.Template.Spec.Containers[0]
	for _, name := range slices.Sorted(maps.Keys(f.ConfigMaps)) {
		ref := corev1.LocalObjectReference{Name: name + "-" + version}
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}})
	}
	return d
}

// Chart returns the release of a version as a Helm chart.
func (f Fleet) Chart(version string) (controlplane.Chart, error) {
	release, err := f.Release(version, nil)
	chart := controlplane.Chart{Repository: f.Repository, Version: version, Files: map[string]string{}}
	for name, text := range release.Files {
		chart.Files["templates/"+name] = text
	}
	return chart, err
}

// Coordination returns a coordination that rolls out the Deployments one at a time.
func (f Fleet) Coordination() *coordinationv1.DeploymentCoordination {
	return &coordinationv1.DeploymentCoordination{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.GroupVersion.String(), Kind: coordinationv1.DeploymentCoordinationKind},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: coordinationv1.DeploymentCoordinationSpec{
			LabelSelector:   metav1.LabelSelector{MatchLabels: f.labels()},
			MinReadySeconds: f.MinReadySeconds,
			IdlePolicy:      f.IdlePolicy,
		},
	}
}

// Deployment returns one of the members.
func (f Fleet) Deployment(name, image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: f.labels()},
		Spec: appsv1.DeploymentSpec{
			Replicas:                new(int32(f.Replicas)),
			ProgressDeadlineSeconds: new(int32(f.ProgressDeadline.Seconds())),
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template:                template(name, image),
		},
	}
}

// StatefulSet returns one of the zones.
func (f Fleet) StatefulSet(name, image string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{groupLabel: f.Name}},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            new(int32(f.Replicas)),
			MinReadySeconds:     f.MinReadySeconds,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template:            template(name, image),
		},
	}
	if f.MaxUnavailable != "" {
		set.Annotations = map[string]string{maxUnavailableAnnotation: f.MaxUnavailable}
	}
	return set
}

func (f Fleet) labels() map[string]string {
	return map[string]string{MemberLabel: f.Name}
}

func template(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}},
	}
}

// manifest returns an object as a user would write it, without a status.
func manifest(object client.Object) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("write the manifest of %s: %w", object.GetName(), err)
	}
	delete(content, "status")
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write the manifest of %s: %w", object.GetName(), err)
	}
	return string(text), nil
}
