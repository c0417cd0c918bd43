// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/health"
)

// judge says how a Job ended, or why it has not begun.
func (r *Runner) judge(ctx context.Context, job *batchv1.Job) health.Outcome {
	switch {
	case has(job, batchv1.JobComplete):
		return health.Good(took(job), fmt.Sprintf("Job %s completed", job.Name))
	case has(job, batchv1.JobFailed):
		return health.Bad("", r.describeFailure(ctx, job))
	case job.DeletionTimestamp != nil:
		return health.Unobserved(fmt.Sprintf("Job %s is being deleted; it will run again", job.Name))
	case ptr.Deref(job.Spec.Suspend, false):
		return health.Unobserved(fmt.Sprintf("Job %s is suspended: resume it, or remove suspend from the template of its CronJob", job.Name))
	}
	pods, err := r.pods(ctx, job)
	if err != nil {
		return *failureOf(err, "list", "pods")
	}
	if why := obstacle(pods); why != "" {
		return health.Unobserved(fmt.Sprintf("Job %s does not run: %s", job.Name, why))
	}
	if len(pods) == 0 {
		return health.NoData("", fmt.Sprintf("Job %s has no Pod yet: if it stays so, the events of the Job show why", job.Name))
	}
	return health.NoData("", fmt.Sprintf("Job %s is running", job.Name))
}

// isFinished reports whether a Job has ended and keeps its result.
func isFinished(job *batchv1.Job) bool {
	return has(job, batchv1.JobComplete) || has(job, batchv1.JobFailed)
}

func has(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	return conditionOf(job, condition) != nil
}

// conditionOf returns a condition that is true; nil if it is not.
func conditionOf(job *batchv1.Job, condition batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == condition && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// took returns how long a Job has run, in seconds; empty if it does not report that.
func took(job *batchv1.Job) string {
	if job.Status.StartTime == nil || job.Status.CompletionTime == nil {
		return ""
	}
	return job.Status.CompletionTime.Sub(job.Status.StartTime.Time).Round(time.Second).String()
}

// knownReasons are the reasons of Kubernetes for a failed Job. Others may write any text.
var knownReasons = []string{
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded,
}

func (r *Runner) describeFailure(ctx context.Context, job *batchv1.Job) string {
	text := fmt.Sprintf("Job %s failed", job.Name)
	if reason := conditionOf(job, batchv1.JobFailed).Reason; slices.Contains(knownReasons, reason) {
		text = fmt.Sprintf("%s (%s)", text, reason)
	}
	pods, err := r.pods(ctx, job)
	if err != nil {
		return text + "; its Pods could not be read"
	}
	if last := lastWords(pods); last != "" {
		return text + ": " + last
	}
	return text
}
