// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

func TestJobIsWhatTheCronJobWouldCreate(t *testing.T) {
	g, from := NewWithT(t), cronJob()
	got := fromTemplate(from, check(), run)
	g.Expect(from).To(Equal(cronJob()), "the CronJob is only read")

	want := from.Spec.JobTemplate.Spec.DeepCopy()
	want.TTLSecondsAfterFinished = nil
	release := []corev1.EnvVar{
		{Name: "ROLLOUT", Value: "shop"}, {Name: "VERSION", Value: "1.4.0"}, {Name: "DIGEST", Value: "sha256:4b6e"},
		{Name: "REVISION", Value: "main@sha1:f00"}, {Name: "PREVIOUS_VERSION", Value: "1.3.0"},
	}
	want.Template.Spec.InitContainers[0].Env = release
	want.Template.Spec.Containers[0].Env = append([]corev1.EnvVar{release[0], release[2], release[3], release[4]}, want.Template.Spec.Containers[0].Env...)
	g.Expect(got.Spec).To(Equal(*want))
	g.Expect(got.Labels).To(Equal(map[string]string{
		"team": "shop", "healthcheck.kuberik.com/name": "smoke-test", "healthcheck.kuberik.com/rollout-uid": string(run.RolloutUID),
	}))
	g.Expect(got.Annotations).To(Equal(map[string]string{"docs": "smoke.md"}))
	g.Expect(got.OwnerReferences).To(Equal([]metav1.OwnerReference{{
		APIVersion: "kuberik.com/v1alpha1", Kind: "HealthCheck", Name: "smoke-test", UID: check().UID, Controller: ptr.To(true),
	}}))
}

func TestValueOfTheReleaseRefersToNoVariable(t *testing.T) {
	other := run
	other.Revision = "main$(TOKEN)$"
	NewWithT(t).Expect(other.environment()).To(ContainElement(corev1.EnvVar{Name: "REVISION", Value: "main$$(TOKEN)$$"}))
}

func TestNameIsOfOneRunOfOneHealthCheck(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run.Name(check())).To(Equal(run.Name(check())))
	g.Expect(run.Name(check())).To(MatchRegexp("^smoke-test-[0-9a-f]{12}$"))
	names := map[string]bool{run.Name(check()): true}
	for _, change := range []func(*Run){
		func(r *Run) { r.RolloutUID = "other" }, func(r *Run) { r.Entry = 41 }, func(r *Run) { r.Retry = "2026-07-06T10:00:00Z" }, func(r *Run) { r.Number = 1 },
	} {
		other := run
		change(&other)
		names[other.Name(check())] = true
	}
	again := check()
	again.UID = "created again"
	names[run.Name(again)] = true
	g.Expect(names).To(HaveLen(6))

	release := run
	release.Version, release.Digest = "1.4.1", "sha256:0000"
	g.Expect(release.Name(check())).To(Equal(run.Name(check())), "the entry identifies the release")
}

func TestNameFitsWhateverTheHealthCheckIsCalled(t *testing.T) {
	for _, name := range []string{"a", "a.b", strings.Repeat("x", 253), strings.Repeat("x", 49) + "-.-" + strings.Repeat("y", 60), "9"} {
		c := check()
		c.Name = name
		g := NewWithT(t)
		g.Expect(validation.IsDNS1123Label(run.Name(c))).To(BeEmpty(), run.Name(c))
		g.Expect(validation.IsValidLabelValue(labelsOf(c, run)["healthcheck.kuberik.com/name"])).To(BeEmpty())
	}
}

func TestStatusOfTheJobMakesTheOutcome(t *testing.T) {
	name := run.Name(check())
	for title, tt := range map[string]struct {
		objects []client.Object
		want    health.Outcome
	}{
		"a new Job":    {[]client.Object{cronJob()}, noPod(name)},
		"no CronJob":   {nil, health.Invalid("CronJob smoke does not exist: create it in this namespace, or correct spec.job.cronJobRef")},
		"it completed": {[]client.Object{made(completed(14 * time.Second))}, health.Good("14s", "Job "+name+" completed")},
		"it completed, and the CronJob is gone by now": {[]client.Object{made(completed(90 * time.Second))}, health.Good("1m30s", "Job "+name+" completed")},
		"it failed with a message": {[]client.Object{
			made(broken(batchv1.JobReasonBackoffLimitExceeded)),
			pod("first", corev1.PodFailed, exited(1, "first message", time.Second)),
			pod("second", corev1.PodFailed, exited(1, "cart: 502\n\x1b[31minstead\u202e of 200", time.Minute)),
		}, health.Bad("", "Job "+name+" failed (BackoffLimitExceeded): cart: 502 [31minstead of 200")},
		"it failed without a message": {[]client.Object{made(broken(batchv1.JobReasonBackoffLimitExceeded)), pod("first", corev1.PodFailed, exited(3, " \n", time.Second))},
			health.Bad("", "Job "+name+" failed (BackoffLimitExceeded): exit code 3")},
		"it failed with a long message": {[]client.Object{
			made(broken(batchv1.JobReasonBackoffLimitExceeded)), pod("first", corev1.PodFailed, exited(1, strings.Repeat("é", 300), time.Second)),
		}, health.Bad("", "Job "+name+" failed (BackoffLimitExceeded): "+strings.Repeat("é", 126)+" … "+strings.Repeat("é", 63))},
		"its Pods are gone": {[]client.Object{made(broken(batchv1.JobReasonDeadlineExceeded))}, health.Bad("", "Job "+name+" failed (DeadlineExceeded)")},
		"it failed for a reason that is not of Kubernetes": {[]client.Object{made(broken("do not show this"))}, health.Bad("", "Job "+name+" failed")},
		"a message of another's Pod does not count": {[]client.Object{made(broken(batchv1.JobReasonBackoffLimitExceeded)), func() client.Object {
			p := pod("first", corev1.PodFailed, exited(1, "do not show this", time.Second))
			p.OwnerReferences[0].UID = "other"
			return p
		}()}, health.Bad("", "Job "+name+" failed (BackoffLimitExceeded)")},
		"a container that was restarted": {[]client.Object{made(broken(batchv1.JobReasonBackoffLimitExceeded)), func() client.Object {
			p := pod("first", corev1.PodRunning, waiting("CrashLoopBackOff"))
			p.Status.ContainerStatuses[0].LastTerminationState = exited(1, "no route to shop", time.Second).State
			return p
		}()}, health.Bad("", "Job "+name+" failed (BackoffLimitExceeded): no route to shop")},
		"it runs":           {[]client.Object{made(), pod("first", corev1.PodRunning)}, health.NoData("", "Job "+name+" is running")},
		"it is tried again": {[]client.Object{made(), pod("first", corev1.PodFailed, exited(1, "x", 0)), pod("second", corev1.PodPending, waiting("ContainerCreating"))}, health.NoData("", "Job "+name+" is running")},
		"no image":          {[]client.Object{made(), pod("first", corev1.PodPending, waiting("ImagePullBackOff"))}, health.Unobserved("Job " + name + " does not run: container smoke: its image cannot be pulled")},
		"no Secret":         {[]client.Object{made(), pod("first", corev1.PodPending, waiting("CreateContainerConfigError"))}, health.Unobserved("Job " + name + " does not run: container smoke: it uses a ConfigMap or Secret that does not exist")},
		"no node":           {[]client.Object{made(), unschedulable(pod("first", corev1.PodPending))}, health.Unobserved("Job " + name + " does not run: Pod first cannot be scheduled")},
		"it is suspended":   {[]client.Object{made(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })}, health.Unobserved("Job " + name + " is suspended: resume it, or remove suspend from the template of its CronJob")},
		"it is being deleted": {[]client.Object{made(func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = &metav1.Time{Time: time.Now()}, []string{"orphan"}
		})}, health.Unobserved("Job " + name + " is being deleted; it will run again")},
		"the Job of another":   {[]client.Object{made(completed(0), func(j *batchv1.Job) { j.OwnerReferences[0].UID = "other" })}, health.Invalid("Job " + name + " exists, and does not belong to this HealthCheck: delete it")},
		"the Job of nobody":    {[]client.Object{made(completed(0), func(j *batchv1.Job) { j.OwnerReferences = nil })}, health.Invalid("Job " + name + " exists, and does not belong to this HealthCheck: delete it")},
		"only about to fail":   {[]client.Object{made(func(j *batchv1.Job) { end(j, batchv1.JobFailureTarget, "x", 0) })}, noPod(name)},
		"condition of Unknown": {[]client.Object{made(broken("x"), func(j *batchv1.Job) { j.Status.Conditions[0].Status = corev1.ConditionUnknown })}, noPod(name)},
	} {
		t.Run(title, func(t *testing.T) {
			c := open(t, interceptor.Funcs{}, tt.objects...)
			c.Expect(c.measure()).To(Equal(tt.want))
		})
	}
}

func noPod(name string) health.Outcome {
	return health.NoData("", "Job "+name+" has no Pod yet: if it stays so, the events of the Job show why")
}

func unschedulable(p *corev1.Pod) *corev1.Pod {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "do not show this"}}
	return p
}

func TestTerminationMessageIsShortened(t *testing.T) {
	c := open(t, interceptor.Funcs{}, made(broken("x")), pod("first", corev1.PodFailed, exited(1, strings.Repeat("ä", 300)+"\xff", 0)))
	c.Expect(c.measure().Message).To(HaveSuffix("failed: " + strings.Repeat("ä", 126) + " … " + strings.Repeat("ä", 63)))
}

// A process may end after it has created the Job, or two may measure at the same time.
func TestJobIsCreatedOnce(t *testing.T) {
	creations := 0
	c := open(t, interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		creations++
		if err := w.Create(ctx, o, opts...); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, o.GetName()) // by another process
	}}, cronJob())
	for range 3 {
		c.Expect(c.measure()).To(Equal(noPod(run.Name(check()))))
	}
	c.Expect(creations).To(Equal(1))
	c.Expect(c.jobs()).To(Equal([]string{run.Name(check())}))
}

func TestRefusalOfTheAPIServer(t *testing.T) {
	jobs, pods := schema.GroupResource{Group: "batch", Resource: "jobs"}, schema.GroupResource{Resource: "pods"}
	rbac := func(verb string) error {
		return fmt.Errorf(`User "system:serviceaccount:flux-system:rollout-controller" cannot %s resource "x" in API group "batch"`, verb)
	}
	for title, tt := range map[string]struct {
		hooks interceptor.Funcs
		want  health.Outcome
	}{
		"it may not create Jobs": {interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(jobs, "", rbac("create"))
		}}, health.Invalid("this controller may not create jobs.batch: give it the ClusterRole health-jobs-role")},
		"it may not list Pods": {interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, is := l.(*corev1.PodList); is {
				return apierrors.NewForbidden(pods, "", rbac("list"))
			}
			return w.List(ctx, l, opts...)
		}}, health.Invalid("this controller may not list pods: give it the ClusterRole health-jobs-role")},
		"a quota refuses the Job": {interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(jobs, "smoke", errors.New("exceeded quota: do not show this"))
		}}, health.Unobserved("the API server does not let the controller create jobs.batch: look at the quotas and policies of the namespace, and at the CronJob")},
		"the API server is away": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("do not show this")
		}}, health.Unobserved("the API server could not be asked; trying again")},
		"the CronJob is too large": {interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			if _, is := o.(*batchv1.CronJob); is {
				return &unreadable.Error{Object: "CronJob shop/smoke", Cause: "it has long texts"}
			}
			return apierrors.NewNotFound(jobs, key.Name)
		}}, health.Invalid("CronJob shop/smoke cannot be read: it has long texts")},
		"the API server is slow": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fmt.Errorf("get: %w", context.DeadlineExceeded)
		}}, health.Unobserved("the API server did not answer in time")},
	} {
		t.Run(title, func(t *testing.T) {
			c := open(t, tt.hooks, cronJob())
			c.Expect(c.measure()).To(Equal(tt.want))
		})
	}
}

func TestFailureCountsAlthoughItsPodsCannotBeRead(t *testing.T) {
	c := open(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no")
	}}, made(broken("x")))
	c.Expect(c.measure()).To(Equal(health.Bad("", "Job "+run.Name(check())+" failed; its Pods could not be read")))
}
