// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/job"
)

// job returns no problem: whether the CronJob exists is seen when a Job is made of it.
func (m Means) job(p *Probe, check *v1alpha1.HealthCheck) error {
	check = check.DeepCopy()
	p.Destination, p.UsesRelease = "jobs in "+check.Namespace, true
	p.run = func(ctx context.Context, subject Subject, _ time.Time) (health.Outcome, string, error) {
		ctx, cancel := context.WithTimeout(ctx, p.Spec.Timeout)
		defer cancel()
		return m.Jobs.Measure(ctx, check, check.Spec.Job, subject.run(check.Namespace)), "", nil
	}
	return nil
}

// run returns what a Job is for.
func (s Subject) run(namespace string) job.Run {
	return job.Run{
		Rollout: types.NamespacedName{Namespace: namespace, Name: s.Rollout}, RolloutUID: s.RolloutUID, Entry: s.Entry, Retry: s.Retry, Number: s.Number,
		Version: s.Release.Tag, Digest: ptr.Deref(s.Release.Digest, ""), Revision: ptr.Deref(s.Release.Revision, ""), PreviousVersion: s.Before.Tag,
	}
}
