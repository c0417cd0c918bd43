// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

var missedAt = time.Date(2026, 7, 6, 10, 0, 0, 0, time.UTC)

// counts are status.replicas, updatedReplicas, readyReplicas and availableReplicas.
type counts [4]int32

func deployment(wanted int32, has counts, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	deadline := int32(600)
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2, Annotations: map[string]string{}},
		Spec:       appsv1.DeploymentSpec{Replicas: &wanted, ProgressDeadlineSeconds: &deadline},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2,
			Replicas:           has[0], UpdatedReplicas: has[1], ReadyReplicas: has[2], AvailableReplicas: has[3],
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func says(kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: missedAt},
		})
	}
}

var (
	available = says(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "")
	complete  = says(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", "")
	timedOut  = says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded",
		`ReplicaSet "web-1" has timed out progressing.`)
	notFinished = says(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
)

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func unobserved(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }

func deleted(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: missedAt} }

func annotated(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations[key] = value }
}

func asUnstructured(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestPausedDeployment(t *testing.T) {
	heldByShop := annotated(coordinationv1.HeldByAnnotation, "shop")
	heldByPerson := annotated(coordinationv1.RolloutPausedAnnotation, "true")
	for name, tc := range map[string]struct {
		of          *appsv1.Deployment
		phase       workload.Phase
		message     string
		outdated    int32
		unavailable int32
	}{
		"that is rolled out and available is Current": {
			of:    deployment(3, counts{3, 3, 3, 3}, paused, heldByShop, available, notFinished),
			phase: workload.Current, message: "Deployment is paused, rolled out and available. Replicas: 3",
		},
		"is Current although it missed a deadline before its pods were available": {
			of:    deployment(3, counts{3, 3, 3, 3}, paused, available, timedOut),
			phase: workload.Current, message: "Deployment is paused, rolled out and available. Replicas: 3",
		},
		"without replicas is Current": {
			of:    deployment(0, counts{}, paused, heldByShop, notFinished),
			phase: workload.Current, message: "Deployment is paused, rolled out and available. Replicas: 0",
		},
		"that waits for its turn is Held by its coordination": {
			of:    deployment(3, counts{3, 0, 3, 3}, paused, heldByShop, available, notFinished),
			phase: workload.Held, message: "held by DeploymentCoordination shop until its turn (updated: 0/3)", outdated: 3,
		},
		"that waits for its first pod is Held": {
			of:    deployment(3, counts{}, paused, heldByShop),
			phase: workload.Held, message: "held by DeploymentCoordination shop until its turn (updated: 0/3)", unavailable: 3,
		},
		"is Held by a user half-way": {
			of:    deployment(3, counts{4, 2, 3, 3}, paused, heldByPerson, available),
			phase: workload.Held, message: "held by the annotation apps.containerinfra.nl/rollout-paused (updated: 2/3)", outdated: 2,
		},
		"is Held by a user first, and by its coordination after that": {
			of:    deployment(1, counts{1, 0, 1, 1}, paused, heldByPerson, heldByShop),
			phase: workload.Held, message: "held by the annotation apps.containerinfra.nl/rollout-paused (updated: 0/1)", outdated: 1,
		},
		"is Held by neither if the annotation is not true": {
			of:    deployment(1, counts{1, 0, 1, 1}, paused, annotated(coordinationv1.RolloutPausedAnnotation, "no")),
			phase: workload.Held, message: "paused by spec.paused (updated: 0/1)", outdated: 1,
		},
		"is Held, and not Failed, by a deadline that another template missed": {
			of:    deployment(1, counts{1, 0, 0, 0}, paused, heldByShop, timedOut),
			phase: workload.Held, message: "held by DeploymentCoordination shop until its turn (updated: 0/1)", outdated: 1, unavailable: 1,
		},
		"whose last old pods are scaled away is Held": {
			of:    deployment(0, counts{2, 0, 2, 2}, paused, heldByShop),
			phase: workload.Held, message: "held by DeploymentCoordination shop until its turn (updated: 0/0)", outdated: 2,
		},
		"that is being scaled up is Progressing": {
			of:    deployment(5, counts{3, 3, 3, 3}, paused, heldByShop, available),
			phase: workload.Progressing, message: "Replicas: 3/5", unavailable: 2,
		},
		"that is being scaled down is Progressing": {
			of:    deployment(1, counts{3, 3, 3, 3}, paused, heldByShop, available),
			phase: workload.Progressing, message: "Pending termination: 2",
		},
		"of which a pod is not available is Progressing": {
			of:    deployment(3, counts{3, 3, 2, 2}, paused, heldByShop, available),
			phase: workload.Progressing, message: "Available: 2/3", unavailable: 1,
		},
		"with its template on all pods, which never became available in time, is Failed": {
			of:    deployment(1, counts{1, 1, 0, 0}, paused, timedOut),
			phase: workload.Failed, message: `ReplicaSet "web-1" has timed out progressing.`, unavailable: 1,
		},
		"that nobody has looked at yet is Progressing": {
			of:    deployment(3, counts{3, 0, 3, 3}, paused, heldByShop, unobserved),
			phase: workload.Progressing, message: "Deployment generation is 2, but latest observed generation is 1", outdated: 3,
		},
		"that is being deleted is Terminating": {
			of:    deployment(3, counts{3, 0, 3, 3}, paused, heldByShop, deleted),
			phase: workload.Terminating, message: "Resource scheduled for deletion", outdated: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := workload.State{
				Phase: tc.phase, Message: tc.message, ObservedGeneration: tc.of.Status.ObservedGeneration,
				Outdated: tc.outdated, Unavailable: tc.unavailable,
			}
			if tc.phase == workload.Failed {
				want.Since = missedAt
			}
			got := workload.Deployment(tc.of)
			got.Since = got.Since.UTC()
			g.Expect(got).To(Equal(want))
			tc.of.TypeMeta = metav1.TypeMeta{}
			g.Expect(workload.Deployment(tc.of).Phase).To(Equal(tc.phase), "an object from a cache does not name its kind")
		})
	}
}

func TestDeploymentThatMissedItsDeadlineIsFailedInTheWordsOfKubernetes(t *testing.T) {
	g := NewWithT(t)
	got := workload.Deployment(deployment(2, counts{3, 1, 2, 2}, available, timedOut))
	g.Expect(got.Phase).To(Equal(workload.Failed))
	g.Expect(got.Message).To(Equal(`ReplicaSet "web-1" has timed out progressing.`))
	g.Expect(got.Since).To(BeTemporally("==", missedAt))
	g.Expect([]int32{got.Outdated, got.Unavailable}).To(Equal([]int32{2, 0}))

	wordless := deployment(2, counts{}, says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", ""))
	g.Expect(workload.Deployment(wordless).Message).To(Equal("Progress deadline exceeded"))
}

// TestDeploymentsThatAreNotPausedAreJudgedAsByFlux tries all possible statuses with up to
// two pods.
func TestDeploymentsThatAreNotPausedAreJudgedAsByFlux(t *testing.T) {
	conditions := map[string][]func(*appsv1.Deployment){
		"nothing": nil, "available": {available}, "complete": {complete}, "both": {available, complete},
		"resumed":   {available, says(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "")},
		"timed out": {available, timedOut}, "unobserved": {unobserved}, "deleted": {deleted},
		"without a deadline": {available, func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }},
		"without a number":   {available, complete, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }},
	}
	phases := map[status.Status]workload.Phase{
		status.CurrentStatus: workload.Current, status.InProgressStatus: workload.Progressing,
		status.FailedStatus: workload.Failed, status.TerminatingStatus: workload.Terminating,
		status.NotFoundStatus: workload.Unknown, status.UnknownStatus: workload.Unknown,
	}
	seen := map[workload.Phase]int{}
	for name, changes := range conditions {
		for n := range int32(3 * 3 * 3 * 3 * 3) {
			wanted, has := n%3, counts{n / 3 % 3, n / 9 % 3, n / 27 % 3, n / 81 % 3}
			d := deployment(wanted, has, changes...)
			flux, err := status.Compute(asUnstructured(t, d))
			if err != nil {
				t.Fatal(err)
			}
			got := workload.Deployment(d)
			seen[got.Phase]++
			if got.Phase != phases[flux.Status] || (got.Message != flux.Message && got.Phase != workload.Failed) {
				t.Errorf("%s, %d wanted, %v: %+v, kstatus says %s: %s", name, wanted, has, got, flux.Status, flux.Message)
			}
		}
	}
	for _, phase := range []workload.Phase{workload.Current, workload.Progressing, workload.Failed, workload.Terminating} {
		if seen[phase] == 0 {
			t.Errorf("no case is %s", phase)
		}
	}
}
