// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

// missing is what is shown of an object that two pods need.
var missing = []string{"Failed: does not exist, and 2 pods cannot start again without it"}

// ready is the status of a pod that serves.
var ready = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}

// What a release no longer has is deleted before the Deployments that wait have changed.
func TestWaitingPodsNeedAConfigMapThatIsGone(t *testing.T) {
	ref := corev1.LocalObjectReference{Name: "config-h1"}
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "config", VolumeSource: source}}}
	}
	projected := func(optional *bool) corev1.PodSpec {
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref, Optional: optional}},
		}}})
	}
	container := func(c corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: []corev1.Container{c}} }
	from := corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}}}
	key := corev1.Container{Env: []corev1.EnvVar{{Name: "PLAIN"}, {Name: "COLOR", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "color"},
	}}}}
	for name, tt := range map[string]struct {
		spec    corev1.PodSpec
		objects []client.Object
		want    []string
	}{
		"as a volume":                 {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}}), nil, missing},
		"in a projected volume":       {projected(nil), nil, missing},
		"as its environment":          {container(from), nil, missing},
		"for a variable":              {container(key), nil, missing},
		"in an init container":        {corev1.PodSpec{InitContainers: []corev1.Container{from}}, nil, missing},
		"twice":                       {corev1.PodSpec{Containers: []corev1.Container{from, key}}, nil, missing},
		"but it is there":             {container(from), []client.Object{configMap("config-h1")}, nil},
		"but starts without it":       {projected(ptr.To(true)), nil, nil},
		"but needs none":              {corev1.PodSpec{}, nil, nil},
		"but needs a Secret, unread":  {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "config-h1"}}), nil, nil},
		"but another one, that is up": {container(from), []client.Object{configMap("config-h1"), configMap("config-h2")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			built := build(t, clusterOf(t, append(waiting(tt.spec), tt.objects...)...), running(), tree.Limits{})
			if diff := cmp.Diff(tt.want, find(built, "ConfigMap/config-h1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingPodsNeedOtherObjectsThatAreGone(t *testing.T) {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-h1"}
	spec := corev1.PodSpec{
		ServiceAccountName: "web-h1",
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}},
			{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		},
	}
	built := build(t, clusterOf(t, waiting(spec)...), running(), tree.Limits{})
	for _, title := range []string{"ServiceAccount/web-h1", "PersistentVolumeClaim/data-h1"} {
		if diff := cmp.Diff(missing, find(built, title)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

// A zone that waits has old pods, too.
func TestWaitingZoneNeedsAConfigMapThatIsGone(t *testing.T) {
	set, pods := zone("zone-b", "old", "old")
	for _, pod := range pods {
		pod.(*corev1.Pod).Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config-h1"}},
		}}}
	}
	built := build(t, clusterOf(t, append(shop(set), pods...)...), running(), tree.Limits{})
	if diff := cmp.Diff(missing, find(built, "ConfigMap/config-h1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// waiting returns a Deployment that waits for its turn, with two pods.
func waiting(spec corev1.PodSpec) []client.Object {
	web := deployment("web")
	web.Spec.Paused, web.Status.UpdatedReplicas = true, 0
	web.Annotations = map[string]string{coordinationv1.HeldByAnnotation: "one-at-a-time"}
	objects := shop(web)
	for _, name := range []string{"web-7d4b-x", "web-7d4b-y"} {
		pod := podOf(web, name, ready)
		pod.Spec = spec
		objects = append(objects, pod)
	}
	return objects
}

// Who may not read ConfigMaps is not told that they are missing.
func TestConfigMapThatMayNotBeReadIsNotMissing(t *testing.T) {
	objects := waiting(corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config-h1"}}},
	}}}})
	cluster := clusterOf(t, objects...)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "config-h1", nil)
	if err := cluster.Fail(&corev1.ConfigMapList{}, forbidden); err != nil {
		t.Fatal(err)
	}
	if got := find(build(t, cluster, running(), tree.Limits{}), "ConfigMap/config-h1"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
