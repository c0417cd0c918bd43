// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

var appIsWeb = map[string]string{"app": "web"}

// ofRevision returns the Deployment as one of revision 2, with its ReplicaSets.
func ofRevision(d *appsv1.Deployment) []client.Object {
	d.UID, d.Spec.Selector = "uid-web", &metav1.LabelSelector{MatchLabels: appIsWeb}
	d.Annotations = map[string]string{workload.RevisionAnnotation: "2"}
	objects := []client.Object{d}
	for _, revision := range []string{"1", "2"} {
		objects = append(objects, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + revision, Annotations: map[string]string{workload.RevisionAnnotation: revision},
			Labels:          map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "hash-" + revision},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: d.UID, Controller: new(true)}},
		}})
	}
	return objects
}

// podOf returns a pod of a revision, whose container is in a state.
func podOf(hash, name string, state corev1.ContainerState, restarts int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.Time{Time: oldTime}, UID: types.UID(name),
			Labels: map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: hash, appsv1.ControllerRevisionHashLabelKey: hash},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: state, RestartCount: restarts}}},
	}
}

func waitsFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func daemons() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", Generation: 1, Labels: ofWeb()},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: appIsWeb}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2},
	}
}

// Flux may not be done, or an object may not be readable: that is no loss of health.
func TestOnlyAppliedObjectsAreKnownNotToBeHealthy(t *testing.T) {
	failing := condition(meta.ReadyCondition, metav1.ConditionFalse, meta.ReconciliationFailedReason, "kustomize build failed")
	for name, test := range map[string]struct {
		source  metav1.Condition
		objects []client.Object
		hooks   interceptor.Funcs
	}{
		"Flux fails to build it": {source: failing, objects: []client.Object{deployment("web")}},
		"an object cannot be read": {source: ready, objects: []client.Object{deployment("web")}, hooks: interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
					return errors.New("no route to host")
				}
				return c.Get(ctx, key, o, opts...)
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), test.hooks, append(test.objects, source([]metav1.Condition{test.source}, webID))...)
			NewWithT(t).Expect([]any{got.Status, got.Reason}).To(Equal([]any{v1alpha1.HealthStatusPending, v1alpha1.HealthNotObserved}), got.Message)
		})
	}
}

func TestPodsOfTheNewestTemplateDecide(t *testing.T) {
	crash := waitsFor("CrashLoopBackOff")
	database := func() *appsv1.StatefulSet {
		s := zone("zone-a", 3)
		s.Spec.UpdateStrategy.Type, s.Spec.Selector = appsv1.RollingUpdateStatefulSetStrategyType, &metav1.LabelSelector{MatchLabels: appIsWeb}
		s.Status.ReadyReplicas, s.Status.AvailableReplicas, s.Status.UpdateRevision = 2, 2, "hash-2"
		return s
	}
	for name, test := range map[string]struct {
		id      string
		objects []client.Object
		status  v1alpha1.HealthStatus
		reason  v1alpha1.MeasuringReason
		message string
	}{
		"a Deployment that crashes": {
			webID, append(ofRevision(rolling("web")), podOf("hash-2", "a", crash, 3)),
			v1alpha1.HealthStatusUnhealthy, "", "Failed: Deployment shop/web: container app crashes again and again",
		},
		"a Deployment whose old pods crash": {
			webID, append(ofRevision(rolling("web")), podOf("hash-1", "a", crash, 3)), v1alpha1.HealthStatusPending, "", "Waiting for Deployment shop/web: Updated: 0/1",
		},
		"a Deployment that was late, and did not start": {
			webID, append(ofRevision(failed("web", oldTime)), podOf("hash-2", "a", waitsFor("ErrImagePull"), 0)),
			v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthNotStarted,
			`Failed: Deployment shop/web: ReplicaSet "web-1" has timed out progressing.; nothing that has run has failed: an image cannot be pulled`,
		},
		"a Deployment that was late, and runs": {
			webID, append(ofRevision(failed("web", oldTime)), podOf("hash-2", "a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 0)),
			v1alpha1.HealthStatusUnhealthy, "", `Failed: Deployment shop/web: ReplicaSet "web-1" has timed out progressing.`,
		},
		"a Deployment that a user holds": {
			webID, ofRevision(held("web")), v1alpha1.HealthStatusPending, v1alpha1.HealthNotStarted,
			"Waiting for Deployment shop/web: paused by spec.paused (updated: 0/1)",
		},
		"a StatefulSet that crashes": {
			zoneID, []client.Object{database(), podOf("hash-2", "a", crash, 4)},
			v1alpha1.HealthStatusUnhealthy, "", "Failed: StatefulSet shop/zone-a: container app crashes again and again",
		},
		"a DaemonSet that crashes": {
			"shop_agent_apps_DaemonSet", []client.Object{daemons(), podOf("hash-2", "a", crash, 4)},
			v1alpha1.HealthStatusUnhealthy, "", "Failed: DaemonSet shop/agent: container app crashes again and again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), interceptor.Funcs{}, append(test.objects, source([]metav1.Condition{ready}, test.id))...)
			g.Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{test.status, test.reason, test.message}))
			g.Expect(got.Err).NotTo(HaveOccurred())
		})
	}
}

// It is not said that a workload has no pods if nobody has looked.
func TestPodsThatWereNotReadAreNotMissing(t *testing.T) {
	refuse := func(kind string) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == kind+"List" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "some"}, "", errors.New("no"))
			}
			return c.List(ctx, list, opts...)
		}}
	}
	crowd := make([]client.Object, 0, 20)
	for i := range 20 {
		d := rolling(fmt.Sprintf("app-%02d", i))
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: appIsWeb}
		crowd = append(crowd, d)
	}
	for name, test := range map[string]struct {
		hooks  interceptor.Funcs
		others []client.Object
		want   string
	}{
		"pods may not be read":         {refuse("Pod"), nil, "let the role of this controller list pods and ReplicaSets"},
		"ReplicaSets may not be read":  {refuse("ReplicaSet"), nil, "let the role of this controller list pods and ReplicaSets"},
		"there are too many workloads": {interceptor.Funcs{}, crowd, "pods of at most 20 workloads are read"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []string{webID}
			for _, o := range test.others {
				ids = append(ids, "shop_"+o.GetName()+"_apps_Deployment")
			}
			got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), test.hooks,
				slices.Concat(ofRevision(failed("web", oldTime)), test.others, []client.Object{source([]metav1.Condition{ready}, ids...)})...)
			NewWithT(t).Expect([]any{got.Status, got.Reason, got.Message}).To(Equal([]any{
				v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthNotStarted,
				`Failed: Deployment shop/web: ReplicaSet "web-1" has timed out progressing.; its pods are not known: ` + test.want,
			}))
		})
	}
}

// A pod that starts is looked at again: Kubernetes may report nothing when it crashes.
func TestYoungPodIsLookedAtAgain(t *testing.T) {
	young := podOf("hash-2", "a", waitsFor("ContainerCreating"), 0)
	young.CreationTimestamp = metav1.Time{Time: time.Now().Add(-time.Minute)}
	got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), interceptor.Funcs{}, append(ofRevision(rolling("web")), young, source([]metav1.Condition{ready}, webID))...)
	NewWithT(t).Expect(got.RecheckAt).To(BeTemporally("~", time.Now().Add(30*time.Second), 5*time.Second))
}
