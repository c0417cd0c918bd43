// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var (
	// testPlane is an API server with the CRDs of this project.
	testPlane *controlplane.ControlPlane
	// testClient has all permissions and no cache.
	testClient client.WithWatch
)

func TestMain(m *testing.M) {
	code, err := withPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(fixture.ExitCode(code))
}

// withPlane runs the tests with an API server on which Jobs run.
func withPlane(m *testing.M) (code int, err error) {
	testPlane, err = controlplane.Start(context.Background(), controlplane.Options{
		Workloads: true, CRDPaths: []string{filepath.Join(parts.Root(), "config", "crd", "bases")},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, testPlane.Stop()) }()
	if testClient, err = client.NewWithWatch(testPlane.RESTConfig(), client.Options{Scheme: env.Scheme()}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

var (
	spec = &v1alpha1.JobSpec{CronJobRef: v1alpha1.ObjectName{Name: "smoke"}}
	run  = Run{
		Rollout: types.NamespacedName{Namespace: "shop", Name: "shop"}, RolloutUID: "f3b1c7de-1111-4222-8333-944445555666", Entry: 4,
		Version: "1.4.0", Digest: "sha256:4b6e", Revision: "main@sha1:f00", PreviousVersion: "1.3.0",
	}
)

// check returns the HealthCheck smoke-test.
func check() *v1alpha1.HealthCheck {
	return &v1alpha1.HealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "smoke-test", UID: "0b8f6d2e-check"},
		Spec:       v1alpha1.HealthCheckSpec{Class: ptr.To(v1alpha1.HealthCheckClassJob)},
	}
}

// cronJob returns the CronJob smoke, which never runs by itself.
func cronJob(changes ...func(*batchv1.CronJob)) *batchv1.CronJob {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "smoke"}}
	c.Spec.Schedule, c.Spec.Suspend = "@yearly", ptr.To(true)
	c.Spec.JobTemplate.Labels = map[string]string{"team": "shop"}
	c.Spec.JobTemplate.Annotations = map[string]string{"docs": "smoke.md"}
	c.Spec.JobTemplate.Spec = batchv1.JobSpec{
		BackoffLimit: ptr.To(int32(1)), TTLSecondsAfterFinished: ptr.To(int32(0)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "smoke",
			InitContainers: []corev1.Container{{Name: "wait", Image: "registry/wait:1"}},
			Containers: []corev1.Container{{Name: "smoke", Image: "registry/smoke:1", Command: []string{"smoke"}, Env: []corev1.EnvVar{
				{Name: "VERSION", Value: "mine"}, {Name: "URL", Value: "http://shop/?was=$(PREVIOUS_VERSION)"},
			}}},
		}},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// made returns the Job of the run, with a status.
func made(changes ...func(*batchv1.Job)) *batchv1.Job {
	j := fromTemplate(cronJob(), check(), run)
	j.UID = "7a5c0d11-job"
	j.Status.StartTime = &metav1.Time{Time: fixture.Noon}
	for _, change := range changes {
		change(j)
	}
	return j
}

func completed(after time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.CompletionTime = &metav1.Time{Time: fixture.Noon.Add(after)}
		end(j, batchv1.JobComplete, "CompletionsReached", after)
	}
}

func broken(reason string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { end(j, batchv1.JobFailed, reason, time.Minute) }
}

func end(j *batchv1.Job, kind batchv1.JobConditionType, reason string, after time.Duration) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "do not show this", LastTransitionTime: metav1.Time{Time: fixture.Noon.Add(after)},
	})
}

// pod returns a Pod of the Job that made returns.
func pod(name string, phase corev1.PodPhase, statuses ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{batchv1.JobNameLabel: run.Name(check())},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: run.Name(check()), UID: "7a5c0d11-job", Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: statuses},
	}
}

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "smoke", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "do not show this"}}}
}

func exited(code int32, message string, after time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "smoke", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Message: message, FinishedAt: metav1.Time{Time: fixture.Noon.Add(after)},
	}}}
}

// cluster is an API server without controllers.
type cluster struct {
	*WithT
	client.WithWatch
	t *testing.T
}

func open(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) *cluster {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(env.Scheme()).WithObjects(objects...).WithInterceptorFuncs(hooks).Build()
	return &cluster{NewWithT(t), c, t}
}

func (c *cluster) measure() health.Outcome {
	return (&Runner{Reader: keptReader{c}, Writer: c}).Measure(c.t.Context(), check(), spec, run)
}

func (c *cluster) jobs() []string {
	list := &batchv1.JobList{}
	c.Expect(c.List(c.t.Context(), list)).To(Succeed())
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
