// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	"github.com/fluxrollouts/rollout-controller/internal/registry/publish"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// reportsOff is why reports are neither read nor published.
const reportsOff = "the controller neither reads nor publishes reports: enable its feature gate EnvironmentReports"

// lookAround looks at the reports of upstreams in other clusters where that does not
// depend on a release that waits: at first, when something was changed, when somebody asks
// for it, and as long as the last fetch found a problem.
func (r *Reconciler) lookAround(o observed) {
	if r.Reports == nil {
		return
	}
	changed := o.Generation != o.Status.ObservedGeneration || o.isAsked()
	for _, u := range o.GetUpstreams() {
		if !u.IsRemote() {
			continue
		}
		upstream := fetch.Upstream{Environment: client.ObjectKeyFromObject(o.Environment), Name: u.Environment}
		if _, looked := r.Reports.Last(upstream); changed || !looked && o.lacks(u) {
			r.Reports.Once(upstream)
		}
	}
}

// isAsked reports whether a user asks for a fetch now.
func (o observed) isAsked() bool {
	token := o.Annotations[v1alpha1.ReconcileRequestAnnotation]
	return token != "" && token != o.Status.LastHandledReconcileAt
}

// lacks reports whether nothing was verified of an upstream yet, or not the last time.
func (o observed) lacks(u environmentsv1.Upstream) bool {
	known := environment.RecordOf(o.Environment, u)
	return known.Sequence == 0 || known.Message != ""
}

// readNothing marks the upstreams in other clusters as unreadable, if reports are off.
func (r *Reconciler) readNothing(read *upstream.Environment) {
	if r.Reports != nil {
		return
	}
	for i := range read.Upstreams {
		if u := &read.Upstreams[i]; u.IsRemote() {
			u.Problem = &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: reportsOff}
		}
	}
}

// publish hands over what the environment says, and returns what has become of it. A
// report follows the record: it says nothing that is not stored.
func (r *Reconciler) publish(ctx context.Context, o observed) (publish.Publication, error) {
	stored := publish.Publication{Stored: o.Status.Report, Problem: o.previous()}
	competing, err := r.competing(ctx, o)
	switch {
	case !hasReport(o.Environment):
		r.publishNothing(o)
		return publish.Publication{}, nil
	case r.Publisher == nil:
		stored.Problem = &verdict.Problem{Reason: environmentsv1.PublishFailedReason, Message: reportsOff}
		return stored, nil
	case err != nil:
		return stored, err
	case competing != "":
		r.publishNothing(o)
		stored.Problem = &verdict.Problem{Reason: environmentsv1.ReportTakenReason, Message: fmt.Sprintf(
			"the report is not published: Environment %s of the same Rollout reports there: give one of them another spec.backend.project", competing)}
		return stored, nil
	case o.Generation != o.Status.ObservedGeneration, !o.exists, !environment.Same(o.releases, o.Status.Releases):
		return stored, nil
	}
	publication := r.Publisher.Publish(o.Environment, o.Status.Releases)
	if publication.Pending && publication.Problem == nil {
		publication.Problem = stored.Problem
	}
	if publication.Stored == nil {
		publication.Stored = stored.Stored
	}
	return publication, nil
}

// competing returns the name of another Environment that reports of the same Rollout to the
// same place; empty if there is none. Of two, the first by name reports.
func (r *Reconciler) competing(ctx context.Context, o observed) (string, error) {
	if !hasReport(o.Environment) {
		return "", nil
	}
	all, err := gather.EnvironmentsOf(ctx, r.Client, client.ObjectKeyFromObject(o.rollout), unreadable.Left{})
	for i := range all {
		if other := &all[i]; other.Name < o.Name && hasReport(other) && other.Spec.Backend.Project == o.Spec.Backend.Project {
			return other.Name, err
		}
	}
	return "", err
}

// hasReport reports whether an Environment has a report to publish.
func hasReport(e *environmentsv1.Environment) bool {
	return e.Spec.Backend.Type == environmentsv1.BackendOCI && e.Spec.Backend.Project != "" && e.DeletionTimestamp.IsZero()
}

func (r *Reconciler) publishNothing(o observed) {
	if r.Publisher != nil {
		r.Publisher.Forget(client.ObjectKeyFromObject(o.Environment))
	}
}

// forget drops what is remembered of an Environment that was deleted, or is not ours.
func (r *Reconciler) forget(key client.ObjectKey) {
	if r.Publisher != nil {
		r.Publisher.Forget(key)
	}
	if r.Reports != nil {
		r.Reports.Forget(key)
	}
}

// previous returns why the last report could not be published, as it is recorded: that
// stays true until another attempt has ended.
func (o observed) previous() *verdict.Problem {
	if report := o.Status.Report; report != nil && report.Reason != "" {
		return &verdict.Problem{Reason: report.Reason, Message: report.Message}
	}
	return nil
}
