// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// older returns a Job of an earlier entry.
func older(name string, changes ...func(*batchv1.Job)) client.Object {
	j := made(changes...)
	j.Name, j.UID = name, ""
	return j
}

func ofAnother(rollout string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels["healthcheck.kuberik.com/rollout-uid"] = rollout }
}

func TestSupersededAndOldJobsAreDeleted(t *testing.T) {
	current := run.Name(check())
	for title, tt := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"running ones of earlier promotions": {[]client.Object{made(), older("running"), older("suspended", func(j *batchv1.Job) { j.Spec.Suspend = new(bool) })},
			[]string{current}},
		"before the Job of the run exists": {[]client.Object{older("running"), older("done", completed(time.Second))}, []string{"done"}},
		"all but three finished ones": {[]client.Object{
			made(), older("a", completed(4*time.Second)), older("b", broken("x")), older("c", completed(2*time.Second)), older("d", completed(3*time.Second)),
		}, []string{"a", "b", "d", current}},
		"the current one is one of those that are kept": {[]client.Object{
			made(completed(time.Hour)), older("a", completed(5*time.Second)), older("b", completed(4*time.Second)), older("c", completed(3*time.Second)),
		}, []string{"a", "b", current}},
		"never the current one": {[]client.Object{
			made(completed(time.Second)), older("a", completed(4*time.Minute)), older("b", completed(3*time.Minute)), older("c", completed(2*time.Minute)),
		}, []string{"a", "b", "c", current}},
		"not the running ones of other Rollouts": {[]client.Object{
			made(completed(time.Second)), older("running", ofAnother("other")), older("done", ofAnother("other"), completed(0)),
		}, []string{"done", "running", current}},
		"not the ones that belong to others": {[]client.Object{
			made(completed(time.Second)), older("foreign", func(j *batchv1.Job) { j.OwnerReferences = nil }),
		}, []string{"foreign", current}},
	} {
		t.Run(title, func(t *testing.T) {
			c := open(t, interceptor.Funcs{}, tt.objects...)
			runner := &Runner{Reader: keptReader{c}, Writer: c}
			for range 2 {
				c.Expect(runner.Tidy(t.Context(), check(), run)).To(Succeed())
				c.Expect(c.jobs()).To(Equal(tt.want))
			}
		})
	}
}

func TestMeasuringTidiesUpAtTheBeginningAndAtTheEnd(t *testing.T) {
	c := open(t, interceptor.Funcs{}, cronJob(), older("superseded"))
	c.measure()
	c.Expect(c.jobs()).To(Equal([]string{run.Name(check())}))

	running := open(t, interceptor.Funcs{}, made(), older("superseded"))
	running.measure()
	running.Expect(running.jobs()).To(HaveLen(2), "it costs a list, and changes nothing while the Job runs")

	ended := open(t, interceptor.Funcs{}, made(completed(0)), older("superseded"))
	ended.measure()
	ended.Expect(ended.jobs()).To(HaveLen(1))
}
