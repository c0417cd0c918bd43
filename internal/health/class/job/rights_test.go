// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

// right is what the controller may do in a namespace.
type right struct{ group, resource, verb string }

// needed are the rights that Runner needs.
var needed = []right{
	{"batch", "cronjobs", "get"},
	{"batch", "jobs", "get"}, {"batch", "jobs", "list"}, {"batch", "jobs", "create"}, {"batch", "jobs", "delete"},
	{"", "pods", "list"},
}

// shop is a namespace of a real API server, with a HealthCheck and a CronJob whose Pods no
// node takes.
type shop struct {
	*env.Env
	check *v1alpha1.HealthCheck
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{Env: env.Open(t, testClient, &v1alpha1.HealthCheck{}, &batchv1.CronJob{}, &batchv1.Job{}), check: check()}
	from := cronJob()
	s.check.Namespace, s.check.UID, from.Namespace = s.Namespace, "", s.Namespace
	from.Spec.JobTemplate.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "none"}
	s.Expect(s.Create(s.Ctx, s.check)).To(Succeed())
	s.Expect(s.Create(s.Ctx, from)).To(Succeed())
	return s
}

// runner returns a Runner with some rights.
func (s *shop) runner(rights []right) *Runner {
	user := "controller-of-" + s.Namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "controller"}}
	for _, r := range rights {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
	}
	s.Expect(s.Create(s.Ctx, role)).To(Succeed())
	s.Expect(s.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
	config, err := testPlane.RESTConfigFor(user)
	s.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: env.Scheme()})
	s.Expect(err).NotTo(HaveOccurred())
	return &Runner{Reader: c, Writer: c}
}

func (s *shop) jobs() []batchv1.Job {
	list := &batchv1.JobList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	return list.Items
}

func TestJobIsCreatedWithTheRightsThatAreNeeded(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	runner, earlier := s.runner(needed), run
	earlier.Entry--
	s.Eventually(func() health.Outcome { return runner.Measure(s.Ctx, s.check, spec, earlier) }).Should(HaveField("Problem", BeEmpty()))
	s.Expect(runner.Measure(s.Ctx, s.check, spec, run)).To(HaveField("Problem", BeEmpty()))

	jobs := s.jobs()
	s.Expect(jobs).To(HaveLen(1), "the Job of the earlier promotion was deleted")
	s.Expect(metav1.IsControlledBy(&jobs[0], s.check)).To(BeTrue())
	from := cronJob()
	s.Expect(jobs[0].Spec.Template.Spec.ServiceAccountName).To(Equal(from.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName))
	s.Expect(jobs[0].Spec.Template.Spec.Containers[0].Image).To(Equal(from.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image))
	s.Expect(jobs[0].Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "PREVIOUS_VERSION", Value: "1.3.0"}))
}

// The Job runs as kube-controller-manager runs it.
func TestJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	from := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "smoke"}}
	s.Change(from, func(client.Object) { from.Spec.JobTemplate.Spec.Template.Spec.NodeSelector = nil })
	runner := &Runner{Reader: testClient, Writer: testClient}
	s.Eventually(func() health.Outcome { return runner.Measure(s.Ctx, s.check, spec, run) }, "30s").Should(HaveField("Result", v1alpha1.MeasurementGood))
	s.Expect(s.jobs()).To(HaveLen(1))
	s.Expect(runner.Measure(s.Ctx, s.check, spec, run).Message).To(Equal("Job "+run.Name(s.check)+" completed"), "it stays, to be looked at")
}

// A Pod that no node takes is no failure of the release, until the deadline of the Job.
func TestJobThatCannotBeScheduledFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	runner := &Runner{Reader: testClient, Writer: testClient}
	s.Eventually(func() health.Outcome { return runner.Measure(s.Ctx, s.check, spec, run) }, "30s").Should(
		And(HaveField("Result", v1alpha1.MeasurementError), HaveField("Message", HaveSuffix("cannot be scheduled"))))
	s.Merge(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: run.Name(s.check)}}, `{"spec":{"activeDeadlineSeconds":1}}`)
	s.Eventually(func() health.Outcome { return runner.Measure(s.Ctx, s.check, spec, run) }, "30s").Should(
		Equal(health.Bad("", "Job "+run.Name(s.check)+" failed (DeadlineExceeded)")))
}

func TestEachMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	for _, missing := range needed {
		if missing == (right{"batch", "jobs", "list"}) || missing.verb == "delete" {
			continue // without them it only cannot tidy up
		}
		t.Run(missing.verb+" "+missing.resource, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			runner := s.runner(slices.DeleteFunc(slices.Clone(needed), func(r right) bool { return r == missing }))
			resource := missing.resource
			if missing.group != "" {
				resource += "." + missing.group
			}
			s.Eventually(func() string { return runner.Measure(s.Ctx, s.check, spec, run).Problem }).Should(
				Equal("this controller may not " + missing.verb + " " + resource + ": give it the ClusterRole health-jobs-role"))
		})
	}
}

func TestTwoProcessesCreateOneJob(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	runner := &Runner{Reader: testClient, Writer: testClient}
	outcomes := make([]health.Outcome, 8)
	var all sync.WaitGroup
	for n := range outcomes {
		all.Go(func() { outcomes[n] = runner.Measure(s.Ctx, s.check, spec, run) })
	}
	all.Wait()
	s.Expect(outcomes).To(HaveEach(HaveField("Problem", BeEmpty())))
	s.Expect(s.jobs()).To(HaveLen(1))
}

func TestJobOfAnotherIsNotTouched(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	foreign := fromTemplate(cronJob(), s.check, run)
	foreign.OwnerReferences = nil
	s.Expect(s.Create(s.Ctx, foreign)).To(Succeed())
	runner := &Runner{Reader: testClient, Writer: testClient}
	s.Expect(runner.Measure(s.Ctx, s.check, spec, run).Problem).To(Equal("Job " + foreign.Name + " exists, and does not belong to this HealthCheck: delete it"))
	s.Expect(s.jobs()).To(HaveLen(1))
}
