// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// What is decided on the newest state is read past the caches. These attacks make it large.

func TestTargetsOfAMegabyte(t *testing.T) {
	x, a := begin(t, "has 10 Rollouts write 40 Kustomizations of 1.3 MB together, and lets the time of all of them run out at once"), newAbuser(t)
	const kustomizations, rollouts = 40, 10
	for i := range kustomizations {
		k := a.suspended(fmt.Sprint("patched-", i))
		k.Spec.Patches = []kustomize.Patch{{Patch: strings.Repeat("x", 1300*kibi)}}
		k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{}}
		k.Annotations = map[string]string{}
		for j := range rollouts {
			k.Annotations[fmt.Sprint(v1alpha1.SubstituteAnnotationPrefix, "V", j, v1alpha1.SubstituteAnnotationSuffix)] = fmt.Sprint("r", j)
		}
		a.makes(k)
	}
	a.Create(a.ImageRepository(plane.Registry.Host()), a.ImagePolicy(">=1.0.0"))
	a.Publish(a.ConfigRelease("1.0.0"))
	var all []*v1alpha1.Rollout
	for j := range rollouts {
		rollout := a.Another(fmt.Sprint("r", j)).Rollout()
		rollout.Spec.ReleasesImagePolicy.Name = a.Name
		rollout.Spec.BakeTime, rollout.Spec.DeployTimeout = &metav1.Duration{Duration: time.Minute}, &metav1.Duration{Duration: 20 * time.Second}
		a.makes(rollout)
		all = append(all, rollout)
	}
	for _, rollout := range all {
		a.eventually("a release that has failed", rollout, func() bool {
			return rollout.Current() != nil && rollout.Current().State() == v1alpha1.BakeFailed
		})
	}
	x.passes(kustomizations*rollouts, "all of its releases fail in time")
}

func TestPodsOfAMegabyte(t *testing.T) {
	x, a := begin(t, "gives 100 Pods of 1.3 MB the label of a Job that a HealthCheck runs"), newAbuser(t)
	if err := scenario.Grant(t.Context(), plane.ControlPlane, scenario.User(scenario.Account), "rollout-controller-health-jobs-role", a.Namespace); err != nil {
		t.Fatal(err)
	}
	a.bakes()
	job := a.runs("smoke")
	const pods = 100
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: fmt.Sprint("large-", i), Labels: map[string]string{batchv1.JobNameLabel: job},
		}}
		pod.Spec = large()
		a.makes(pod)
	}
	before := lists(t, "pods")
	env.Eventually(t, "measurements of the Job", func() (bool, string) {
		now := lists(t, "pods")
		return now >= before+3, fmt.Sprintf("%d lists of pods, %d before", now, before)
	})
	x.passes(pods, "the Job is measured on")
}

// lists returns how often a kind was listed.
func lists(t *testing.T, resource string) int {
	t.Helper()
	all, err := plane.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[controlplane.Request{Verb: "LIST", Resource: resource}]
}

// runs returns the name of the Job of a HealthCheck.
func (a abuser) runs(name string) string {
	a.T.Helper()
	from := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}
	from.Spec.Schedule, from.Spec.Suspend = "0 0 1 1 *", new(true)
	from.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "any"}}}
	check := a.HealthCheck()
	check.Name, check.Annotations = name, nil
	check.Spec = v1alpha1.HealthCheckSpec{Class: new(v1alpha1.HealthCheckClassJob), MeasuringSpec: v1alpha1.MeasuringSpec{Delay: &metav1.Duration{}}}
	check.Spec.Job = &v1alpha1.JobSpec{CronJobRef: v1alpha1.ObjectName{Name: name}}
	a.makes(from, check)
	job := ""
	env.Eventually(a.T, "the Job of "+name, func() (bool, string) {
		jobs := &batchv1.JobList{}
		if err := plane.Client().List(a.T.Context(), jobs, client.InNamespace(a.Namespace)); err != nil {
			return false, err.Error()
		}
		if len(jobs.Items) > 0 {
			job = jobs.Items[0].Name
		}
		return job != "", fmt.Sprint(jobs.Items)
	})
	return job
}

// large returns a Pod of 1.3 MB.
func large() corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "c", Image: "any", Env: []corev1.EnvVar{{Name: "X", Value: strings.Repeat("x", 1300*kibi)}},
	}}}
}

func TestReplicaSetsOfAMegabyte(t *testing.T) {
	x, a := begin(t, "creates 120 ReplicaSets of 1.15 MB where two Deployments roll out one at a time"), newAbuser(t)
	const sets = 120
	for i := range sets {
		labels := map[string]string{"app": fmt.Sprint("large-", i)}
		d := deployment(a.Namespace, fmt.Sprint("large-", i), labels)
		set := &appsv1.ReplicaSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template,
		}}
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: strings.Repeat("x", 1150*kibi)}}
		a.makes(set)
	}
	group := map[string]string{"group": "small"}
	a.makes(&coordinationv1.DeploymentCoordination{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "small"},
		Spec:       coordinationv1.DeploymentCoordinationSpec{LabelSelector: metav1.LabelSelector{MatchLabels: group}},
	}, deployment(a.Namespace, "one", group), deployment(a.Namespace, "two", group))
	waits := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "two"}}
	a.eventually("a Deployment that waits", waits, func() bool { return waits.Spec.Paused })
	x.passes(sets, "their coordination goes on")
}
