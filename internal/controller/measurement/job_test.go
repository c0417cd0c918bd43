// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/job"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// again is how often a Job is looked at.
const again = 10 * time.Second

func tests(failureThreshold int32) *v1alpha1.HealthCheck {
	check := fixture.MakeHealthCheck("tests").Class(v1alpha1.HealthCheckClassJob).Obj()
	check.Spec.Job = &v1alpha1.JobSpec{CronJobRef: v1alpha1.ObjectName{Name: "tests"}}
	check.Spec.FailureThreshold = failureThreshold
	return check
}

func cronJob() *batchv1.CronJob {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "tests"}}
	c.Spec.Schedule, c.Spec.Suspend = "@yearly", new(true)
	c.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "tests", Image: "registry/tests:1"}},
	}
	return c
}

// openTests begins the tests of a promotion.
func openTests(t *testing.T, failureThreshold int32) *testEnv {
	t.Helper()
	s := open(t, rollout("shop"), tests(failureThreshold), cronJob())
	s.runsJobs()
	s.reset("tests", "shop")
	s.rest("tests")
	s.look()
	return s
}

func (s *testEnv) runsJobs() {
	s.reconciler.Means.Jobs = &job.Runner{Reader: s.WithWatch, Writer: s.WithWatch}
}

// look lets time pass until the Job was looked at again.
func (s *testEnv) look() {
	s.pass(again, "tests")
	s.measured()
}

// jobEnds lets the one Job end that runs.
func (s *testEnv) jobEnds(as ...batchv1.JobConditionType) {
	all := &batchv1.JobList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range all.Items {
		j := &all.Items[i]
		if len(j.Status.Conditions) > 0 {
			continue
		}
		now := metav1.Now()
		j.Status.StartTime = &now
		for _, kind := range as {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		if as[len(as)-1] == batchv1.JobComplete {
			j.Status.CompletionTime = &now
		}
		s.Expect(s.Status().Update(s.Ctx, j)).To(Succeed())
	}
	s.look()
}

func (s *testEnv) jobFails()     { s.jobEnds(batchv1.JobFailureTarget, batchv1.JobFailed) }
func (s *testEnv) jobCompletes() { s.jobEnds(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete) }

func TestJobThatFailsFailsTheRelease(t *testing.T) {
	s := openTests(t, 0)
	s.jobFails()
	status, message := s.status("tests")
	s.Expect(status).To(Equal(unhealthy))
	s.Expect(message).To(HaveSuffix("failed (1 of 1 bad)"))
	s.Expect(s.planned()).To(BeZero(), "it does not run again")
}

func TestJobThatFailsRunsOnceMoreBeforeItCounts(t *testing.T) {
	s := openTests(t, 2)
	s.jobFails()
	status, _ := s.status("tests")
	s.Expect(status).To(Equal(pending))
	s.look() // creates the second Job
	s.jobCompletes()
	status, message := s.status("tests")
	s.Expect(status).To(Equal(healthy))
	s.Expect(message).To(HaveSuffix("completed) (1 of 1 good), 1 of 2 bad in all"))
	s.Expect(s.planned()).To(BeZero())
}

func TestJobThatFailsTwiceFailsTheReleaseAlsoAfterARestart(t *testing.T) {
	s := openTests(t, 2)
	s.jobFails()
	s.look()
	s.restart()
	s.runsJobs()
	s.rest("tests")
	s.look() // finds the first one again
	s.look()
	s.jobFails()
	status, message := s.status("tests")
	s.Expect(status).To(Equal(unhealthy))
	s.Expect(message).To(HaveSuffix("failed (2 of 2 bad)"))
	s.Expect(s.check("tests").Status.Bad).To(Equal(int32(2)))
	all := &batchv1.JobList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	s.Expect(all.Items).To(HaveLen(2))
}

func TestJobHasNoIntervalAndNoSuccessThreshold(t *testing.T) {
	s := open(t)
	for field, change := range map[string]func(*v1alpha1.MeasuringSpec){
		"interval":         func(m *v1alpha1.MeasuringSpec) { m.Interval = seconds(30) },
		"successThreshold": func(m *v1alpha1.MeasuringSpec) { m.SuccessThreshold = 2 },
	} {
		check := tests(0)
		check.Namespace = s.Namespace
		change(&check.Spec.MeasuringSpec)
		s.Expect(s.Create(s.Ctx, check)).To(MatchError(ContainSubstring("the class job has no interval and no successThreshold")), field)
	}
}
