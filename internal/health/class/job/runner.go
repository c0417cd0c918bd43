// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// Runner runs Jobs.
type Runner struct {
	// Reader reads from the API server and not from a cache: the status of a Job counts
	// only if it is newer than the last reset.
	Reader client.Reader
	// Writer creates and deletes Jobs.
	Writer client.Writer
}

// Measure finds or creates the Job of a run, and says how it ended. NoData means that it
// has not ended yet: measure again. After Good or Bad, the same run needs no further
// measurement. When the Job is new, and when it has ended, Measure tidies up.
func (r *Runner) Measure(ctx context.Context, check *v1alpha1.HealthCheck, spec *v1alpha1.JobSpec, run Run) health.Outcome {
	job, isNew, failure := r.findOrCreate(ctx, check, spec, run)
	if failure != nil {
		return *failure
	}
	if !isOwned(job, check.UID) {
		return health.Invalid(fmt.Sprintf("Job %s exists, and does not belong to this HealthCheck: delete it", job.Name))
	}
	outcome := r.judge(ctx, job)
	if isNew || isFinished(job) {
		if err := r.Tidy(ctx, check, run); err != nil {
			logr.FromContextOrDiscard(ctx).Info("Jobs that are no longer needed could not be deleted", "reason", err.Error())
		}
	}
	return outcome
}

// findOrCreate returns the Job of a run, and whether it was created now. Another process
// may create it at the same time, or a process that ended before it could say so.
func (r *Runner) findOrCreate(ctx context.Context, check *v1alpha1.HealthCheck, spec *v1alpha1.JobSpec, run Run) (*batchv1.Job, bool, *health.Outcome) {
	key := types.NamespacedName{Namespace: check.Namespace, Name: run.Name(check)}
	job, err := r.find(ctx, key)
	if !apierrors.IsNotFound(err) {
		return job, false, failureOf(err, "get", "jobs.batch")
	}
	from, failure := r.cronJob(ctx, types.NamespacedName{Namespace: check.Namespace, Name: spec.CronJobRef.Name})
	if failure != nil {
		return nil, false, failure
	}
	job = fromTemplate(from, check, run)
	err = r.Writer.Create(ctx, job, client.FieldOwner(write.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return job, true, failureOf(err, "create", "jobs.batch")
	}
	job, err = r.find(ctx, key)
	return job, false, failureOf(err, "get", "jobs.batch")
}

func (r *Runner) cronJob(ctx context.Context, key types.NamespacedName) (*batchv1.CronJob, *health.Outcome) {
	found := &batchv1.CronJob{}
	err := r.Reader.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		missing := health.Invalid(fmt.Sprintf("CronJob %s does not exist: create it in this namespace, or correct spec.job.cronJobRef", key.Name))
		return nil, &missing
	}
	return found, failureOf(err, "get", "cronjobs.batch")
}

func (r *Runner) find(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, r.Reader.Get(ctx, key, job)
}

// isOwned reports whether an object is controlled by the owner of a UID.
func isOwned(o metav1.Object, by types.UID) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == by
}
