// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keptReader returns of each object only what is kept of it.
type keptReader struct{ client.Reader }

func (r keptReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, o, options...); err != nil {
		return err
	}
	return keep(o)
}

func (r keptReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	return apimeta.EachListItem(list, keep)
}

func keep(o runtime.Object) error {
	for kind, by := range Kept() {
		if reflect.TypeOf(kind) == reflect.TypeOf(o) {
			kept, err := by.Transform(o)
			if err != nil {
				return err
			}
			reflect.ValueOf(o).Elem().Set(reflect.ValueOf(kept).Elem())
		}
	}
	return nil
}

// TestNoMoreIsKeptThanWhoseAndHowFar: the rest may be a megabyte.
func TestNoMoreIsKeptThanWhoseAndHowFar(t *testing.T) {
	g, long := NewWithT(t), strings.Repeat("x", 1<<20)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"note": long}, Finalizers: []string{long}}}
	pod.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Value: long}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: long}}}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"note": long}}}
	job.Spec.Template.Spec = pod.Spec
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: long, Message: long}}
	for _, o := range []client.Object{pod, job} {
		g.Expect(keep(o)).To(Succeed())
		text, err := json.Marshal(o)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(text)).To(BeNumerically("<", 16<<10))
	}
}
