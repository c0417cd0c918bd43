// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// kept is how many finished Jobs stay, to be looked at.
	kept = 3
	// perPage is how many Jobs one list request asks for. The others are deleted another
	// time.
	perPage = 100
)

// Tidy deletes Jobs of a HealthCheck that nobody needs any more: those that still run for
// something else than this run, and finished ones except for the newest. The Job of the
// run stays, and so do the running Jobs of other Rollouts. Call it when a promotion is
// superseded.
func (r *Runner) Tidy(ctx context.Context, check *v1alpha1.HealthCheck, run Run) error {
	list := &batchv1.JobList{}
	of := client.MatchingLabels{v1alpha1.HealthCheckNameLabel: labelOf(check.Name)}
	if err := r.Reader.List(ctx, list, client.InNamespace(check.Namespace), client.Limit(perPage), of); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	own := slices.DeleteFunc(list.Items, func(j batchv1.Job) bool { return !isOwned(&j, check.UID) })
	var errs []error
	for _, job := range unneeded(own, run.Name(check), string(run.RolloutUID)) {
		err := r.Writer.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete Job %s: %w", job.Name, err))
		}
	}
	return errors.Join(errs...)
}

// unneeded returns the Jobs to delete. The current one counts for those that are kept if
// it has finished.
func unneeded(jobs []batchv1.Job, current, rollout string) []batchv1.Job {
	keep := kept
	slices.SortFunc(jobs, func(a, b batchv1.Job) int {
		return cmp.Or(endOf(&b).Compare(endOf(&a)), cmp.Compare(a.Name, b.Name))
	})
	var all []batchv1.Job
	for i := range jobs {
		job := &jobs[i]
		finished := isFinished(job)
		if finished {
			keep--
		}
		superseded := !finished && job.Labels[v1alpha1.RolloutUIDLabel] == rollout
		if job.Name != current && job.DeletionTimestamp == nil && (superseded || finished && keep < 0) {
			all = append(all, *job)
		}
	}
	return all
}

// endOf returns when a Job has ended; zero if it has not.
func endOf(job *batchv1.Job) time.Time {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := conditionOf(job, kind); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
