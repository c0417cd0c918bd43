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
		keep    int32
		objects []client.Object
		want    []string
	}{
		"running ones of earlier promotions": {0, []client.Object{made(), older("running"), older("suspended", func(j *batchv1.Job) { j.Spec.Suspend = new(bool) })},
			[]string{current}},
		"before the Job of the run exists": {0, []client.Object{older("running"), older("done", completed(time.Second))}, []string{"done"}},
		"all but three finished ones": {0, []client.Object{
			made(), older("a", completed(4*time.Second)), older("b", broken("x")), older("c", completed(2*time.Second)), older("d", completed(3*time.Second)),
		}, []string{"a", "b", "d", current}},
		"the current one is one of those that are kept": {2, []client.Object{
			made(completed(time.Hour)), older("a", completed(4*time.Second)), older("b", completed(3*time.Second)),
		}, []string{"a", current}},
		"never the current one": {1, []client.Object{made(completed(time.Second)), older("a", completed(time.Minute))}, []string{"a", current}},
		"not the running ones of other Rollouts": {1, []client.Object{
			made(completed(time.Second)), older("running", ofAnother("other")), older("done", ofAnother("other"), completed(0)),
		}, []string{"running", current}},
		"not the ones that belong to others": {1, []client.Object{
			made(completed(time.Second)), older("foreign", func(j *batchv1.Job) { j.OwnerReferences = nil }),
		}, []string{"foreign", current}},
	} {
		t.Run(title, func(t *testing.T) {
			c := open(t, interceptor.Funcs{}, tt.objects...)
			runner, limited := &Runner{Reader: c, Writer: c}, *spec
			limited.Keep = tt.keep
			for range 2 {
				c.Expect(runner.Tidy(t.Context(), check(), &limited, run)).To(Succeed())
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
