// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

var nowish = missedAt.Add(time.Hour)

// pod returns a pod of revision 2, created an hour ago, whose container is as said.
func pod(container corev1.ContainerStatus, changes ...func(*corev1.Pod)) corev1.Pod {
	container.Name = "app"
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-2-x", CreationTimestamp: metav1.Time{Time: missedAt},
			Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "2", appsv1.ControllerRevisionHashLabelKey: "2"},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{container}},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func runs() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func crashes(restarts int32) corev1.ContainerStatus {
	c := waits("CrashLoopBackOff")
	c.RestartCount = restarts
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Time{Time: missedAt}}
	return c
}

func podSays(kind corev1.PodConditionType, is corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: is})
	}
}

func initialized(by corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{by} }
}

func createdAt(t time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{Time: t} }
}

var podReady, unschedulable = podSays(corev1.PodReady, corev1.ConditionTrue), podSays(corev1.PodScheduled, corev1.ConditionFalse)

func TestPodsShowWhetherSomethingHasRunAndFailed(t *testing.T) {
	const late = `ReplicaSet "web-1" has timed out progressing.`
	const loop = "container app crashes again and again: OOMKilled, exit code 137"
	missed := workload.State{Phase: workload.Failed, Message: late, Since: missedAt}
	progresses := workload.State{Phase: workload.Progressing, Message: "Available: 0/2"}
	type verdict struct {
		phase      workload.Phase
		message    string
		notStarted bool
	}
	for name, test := range map[string]struct {
		state workload.State
		pods  []corev1.Pod
		want  verdict
	}{
		"a crash loop after it was rolled out is a failure at once": {
			progresses, []corev1.Pod{pod(runs(), podReady), pod(crashes(3))}, verdict{workload.Failed, loop, false},
		},
		"so is one of a container that comes first": {
			progresses, []corev1.Pod{pod(waits("PodInitializing"), initialized(func() corev1.ContainerStatus { c := crashes(5); c.Name = "migrate"; return c }()))},
			verdict{workload.Failed, "container migrate crashes again and again: OOMKilled, exit code 137", false},
		},
		"two restarts are no loop":                             {progresses, []corev1.Pod{pod(crashes(2))}, verdict{workload.Progressing, "Available: 0/2", false}},
		"one that became slow":                                 {progresses, []corev1.Pod{pod(runs())}, verdict{workload.Progressing, "Available: 0/2", false}},
		"one that scales to no node":                           {progresses, []corev1.Pod{pod(runs(), podReady), pod(corev1.ContainerStatus{}, unschedulable)}, verdict{workload.Progressing, "Available: 0/2", true}},
		"a missed deadline of pods that run and are not ready": {missed, []corev1.Pod{pod(runs())}, verdict{workload.Failed, late, false}},
		"of pods that crash":                                   {missed, []corev1.Pod{pod(crashes(1))}, verdict{workload.Failed, late, false}},
		"of pods that crash for long":                          {missed, []corev1.Pod{pod(crashes(3))}, verdict{workload.Failed, loop, false}},
		"of pods whose first container failed": {
			missed, []corev1.Pod{pod(waits("PodInitializing"), initialized(crashes(1)))}, verdict{workload.Failed, late, false},
		},
		"without a node": {
			missed, []corev1.Pod{pod(corev1.ContainerStatus{}, unschedulable)},
			verdict{workload.Failed, late + "; nothing that has run has failed: no node takes its pods", true},
		},
		"without an image": {
			missed, []corev1.Pod{pod(waits("ImagePullBackOff"))},
			verdict{workload.Failed, late + "; nothing that has run has failed: an image cannot be pulled", true},
		},
		"while a volume is attached": {
			missed, []corev1.Pod{pod(waits("ContainerCreating"))}, verdict{workload.Failed, late + "; nothing that has run has failed: its containers are not created", true},
		},
		"without pods, as with a quota": {missed, nil, verdict{workload.Failed, late + "; nothing that has run has failed: it has no pods", true}},
		"with some that are ready": {
			missed, []corev1.Pod{pod(runs(), podReady), pod(waits("ErrImagePull"))},
			verdict{workload.Failed, late + "; nothing that has run has failed: an image cannot be pulled", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.state.ByPods(test.pods, nowish)
			NewWithT(t).Expect(verdict{got.Phase, got.Message, got.NotStarted}).To(Equal(test.want))
		})
	}
}

// Pods that nobody has read are no evidence, and are not missing.
func TestPodsThatWereNotReadShowNothing(t *testing.T) {
	g := NewWithT(t)
	missed := workload.State{Phase: workload.Failed, Message: "it was late", Since: missedAt}
	want := missed
	want.Message, want.NotStarted = "it was late; its pods are not known: they are secret", true
	g.Expect(missed.WithoutPods("they are secret")).To(Equal(want))
	progresses := workload.State{Phase: workload.Progressing, Message: "Available: 0/2"}
	g.Expect(progresses.WithoutPods("they are secret")).To(Equal(progresses))
}

// Kubernetes reports nothing of a container that crashes before it was ready, so the pods
// are looked at again while they start, and not for ever.
func TestPodsAreLookedAtAgainWhileTheyStart(t *testing.T) {
	progresses := workload.State{Phase: workload.Progressing}
	for name, test := range map[string]struct {
		pod   corev1.Pod
		again bool
	}{
		"a new pod": {pod(runs(), createdAt(nowish.Add(-time.Minute))), true},
		"one that crashed a moment ago": {pod(func() corev1.ContainerStatus {
			c := crashes(1)
			c.LastTerminationState.Terminated.FinishedAt = metav1.Time{Time: nowish.Add(-9 * time.Minute)}
			return c
		}()), true},
		"an old pod": {pod(runs()), false},
	} {
		t.Run(name, func(t *testing.T) {
			want := time.Time{}
			if test.again {
				want = nowish.Add(30 * time.Second)
			}
			NewWithT(t).Expect(progresses.ByPods([]corev1.Pod{test.pod}, nowish).RecheckAt).To(Equal(want))
		})
	}
}

func TestNewestPods(t *testing.T) {
	of := func(hash string, at time.Duration, changes ...func(*corev1.Pod)) corev1.Pod {
		p := pod(runs(), append(changes, createdAt(missedAt.Add(at)))...)
		p.Name = fmt.Sprint(hash, at)
		p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash, appsv1.ControllerRevisionHashLabelKey: hash}
		return p
	}
	ends := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: nowish} }
	pods := []corev1.Pod{of("1", time.Hour), of("2", 2*time.Hour), of("2", 3*time.Hour, ends), of("3", time.Minute)}
	for _, test := range []struct{ kind, revision, want string }{
		{"Deployment", "1", "[11h0m0s]"}, {"StatefulSet", "3", "[31m0s]"}, {"DaemonSet", "", "[22h0m0s]"}, {"Deployment", "9", "[]"},
	} {
		var names []string
		for _, p := range workload.Newest(test.kind, test.revision, pods) {
			names = append(names, p.Name)
		}
		NewWithT(t).Expect(fmt.Sprint(names)).To(Equal(test.want), test.kind)
	}
}

func TestWorkloadsWhosePodsAreLookedAt(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	selects := func(d *appsv1.Deployment) { d.Spec.Selector = selector }
	revision := annotated(workload.RevisionAnnotation, "4")
	for name, test := range map[string]struct {
		object any
		phase  workload.Phase
		want   string
	}{
		"a Deployment that progresses":                 {deployment(1, counts{}, selects, revision), workload.Progressing, "Deployment app=web 4"},
		"one that failed":                              {deployment(1, counts{}, selects, revision), workload.Failed, "Deployment app=web 4"},
		"not one of a generation that is not observed": {deployment(1, counts{}, selects, unobserved), workload.Progressing, ""},
		"not one that is as wanted":                    {deployment(1, counts{}, selects), workload.Current, ""},
		"not one that is held":                         {deployment(1, counts{}, selects), workload.Held, ""},
		"not one that selects nothing":                 {deployment(1, counts{}), workload.Progressing, ""},
		"not one that selects everything":              {deployment(1, counts{}, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), workload.Progressing, ""},
		"a StatefulSet": {&appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, Spec: appsv1.StatefulSetSpec{Selector: selector},
			Status: appsv1.StatefulSetStatus{UpdateRevision: "db-7"},
		}, workload.Progressing, "StatefulSet app=web db-7"},
		"a DaemonSet": {&appsv1.DaemonSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, Spec: appsv1.DaemonSetSpec{Selector: selector},
		}, workload.Progressing, "DaemonSet app=web "},
		"not another kind": {&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, workload.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if of := workload.PodsOf(asUnstructured(t, test.object), stateOf(t, test.object, test.phase)); of != nil {
				got = fmt.Sprint(of.Kind, " ", of.Selector, " ", of.Revision)
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// stateOf returns a state with the generation that the status of an object is about.
func stateOf(t *testing.T, object any, phase workload.Phase) workload.State {
	t.Helper()
	return workload.State{Phase: phase, ObservedGeneration: workload.Of(asUnstructured(t, object)).ObservedGeneration}
}
