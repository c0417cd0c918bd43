// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// fromTemplate returns the Job of a run. It is what the CronJob would create, except for
// variables of the release. It is not deleted some time after its end: the HealthCheck
// would not find it any more, and would run it again.
func fromTemplate(from *batchv1.CronJob, check *v1alpha1.HealthCheck, run Run) *batchv1.Job {
	template := from.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: check.Namespace, Name: run.Name(check),
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{owner(check)},
		},
		Spec: template.Spec,
	}
	if job.Labels == nil {
		job.Labels = map[string]string{}
	}
	maps.Copy(job.Labels, labelsOf(check, run))
	job.Spec.TTLSecondsAfterFinished = nil
	pod := &job.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = withDefaults(containers[i].Env, run.environment())
		}
	}
	return job
}

// owner returns a reference that needs no right on finalizers.
func owner(check *v1alpha1.HealthCheck) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "HealthCheck", Name: check.Name, UID: check.UID, Controller: ptr.To(true),
	}
}

// withDefaults returns the variables of a container, after the defaults that it does not
// set. So they may refer to the defaults.
func withDefaults(variables, defaults []corev1.EnvVar) []corev1.EnvVar {
	defaults = slices.DeleteFunc(defaults, func(d corev1.EnvVar) bool {
		return slices.ContainsFunc(variables, func(v corev1.EnvVar) bool { return v.Name == d.Name })
	})
	return append(defaults, variables...)
}

// labelsOf returns the labels by which a Job is found.
func labelsOf(check *v1alpha1.HealthCheck, run Run) map[string]string {
	return map[string]string{v1alpha1.HealthCheckNameLabel: labelOf(check.Name), v1alpha1.RolloutUIDLabel: string(run.RolloutUID)}
}

// labelOf returns a name as the value of a label, which may be shorter.
func labelOf(name string) string {
	const longest = 63
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return prefixed(name, hex.EncodeToString(sum[:])[:hashLength], longest)
}
