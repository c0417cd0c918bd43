// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// Kept returns what a Runner has to know of Jobs and Pods. Anyone who may create Pods can
// give a hundred of them the label of a Job, and a megabyte each.
func Kept() map[client.Object]ctrlcache.ByObject {
	return map[client.Object]ctrlcache.ByObject{
		&corev1.Pod{}: {Transform: cache.Bounded(func(o any) (any, error) {
			if pod, ok := o.(*corev1.Pod); ok {
				return workload.ReducedPod(pod), nil
			}
			return o, nil
		})},
		&batchv1.Job{}: {Transform: cache.Bounded(func(o any) (any, error) {
			if job, ok := o.(*batchv1.Job); ok {
				return reduced(job), nil
			}
			return o, nil
		})},
	}
}

// reduced returns what shows whose a Job is, and how it ended.
func reduced(job *batchv1.Job) *batchv1.Job {
	kept := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
			DeletionTimestamp: job.DeletionTimestamp, OwnerReferences: workload.ControllerOf(job),
		},
		Spec:   batchv1.JobSpec{Suspend: job.Spec.Suspend},
		Status: batchv1.JobStatus{StartTime: job.Status.StartTime, CompletionTime: job.Status.CompletionTime},
	}
	if rollout, ok := job.Labels[v1alpha1.RolloutUIDLabel]; ok {
		metav1.SetMetaDataLabel(&kept.ObjectMeta, v1alpha1.RolloutUIDLabel, rollout)
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := conditionOf(job, kind); c != nil {
			ended := batchv1.JobCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
			if slices.Contains(knownReasons, c.Reason) {
				ended.Reason = c.Reason
			}
			kept.Status.Conditions = append(kept.Status.Conditions, ended)
		}
	}
	return kept
}
