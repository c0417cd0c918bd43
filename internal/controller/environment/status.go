// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// report stores the status if it has changed, and then emits an event for the change.
func (r *Reconciler) report(ctx context.Context, o observed, pass *announce.Pass) error {
	next := o.status()
	if equality.Semantic.DeepEqual(o.Status, next) {
		return nil
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	answer.SetGroupVersionKind(environmentsv1.GroupVersion.WithKind(environmentsv1.EnvironmentKind))
	patch, err := write.StatusPatch(o.ResourceVersion, o.Status, next)
	if err == nil {
		answer, err = write.PatchStatus(ctx, r.Client, answer, patch)
	}
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of Environment %s/%s: %w", o.Namespace, o.Name, err))
	}
	r.writes.Wrote(answer)
	pass.Stored(true)
	r.announce(ctx, o.Environment, o.Status.Conditions, next.Conditions)
	return nil
}

// status returns the next status. It shares values with the stored one, and changes none.
func (o observed) status() environmentsv1.EnvironmentStatus {
	status := o.Status
	status.ObservedGeneration = o.Generation
	status.Source, status.Releases = environment.Source(o.Environment), o.releases
	status.LastHandledReconcileAt = o.handled()
	status.Report = o.report()
	status.Upstreams = environment.Upstreams(o.Status.Upstreams, o.upstreams(), o.now)
	status.CurrentVersion, status.LastStatusChangeTime = "", nil
	if current := environment.Current(o.releases); current != nil {
		status.CurrentVersion, status.LastStatusChangeTime = current.Revision, current.Since
	}
	status.Conditions = slices.Clone(o.Status.Conditions) // its items are changed
	o.setReady(&status.Conditions)
	if environment.InfosDigest(o.Environment) != o.infosDigest { // the cache has only the digest
		status.EnvironmentInfos = o.infos
	}
	return status
}

// upstreams returns what was read of each upstream.
func (o observed) upstreams() []environmentsv1.UpstreamStatus {
	var all []environmentsv1.UpstreamStatus
	for _, u := range o.read.Upstreams {
		s := environmentsv1.UpstreamStatus{Environment: u.Environment}
		if u.Problem != nil {
			s.Reason, s.Message = u.Problem.Reason, truncate.Message(u.Problem.Message)
		}
		switch {
		case u.Sequence > 0:
			s.Source, s.Sequence, s.Releases = environment.SourceOf(o.Environment, u.Upstream), u.Sequence, u.Releases
			s.Keys = environment.Highest(environment.RecordOf(o.Environment, u.Upstream).Keys, u.SignedBy, u.Sequence)
			s.ObservedDigest = environment.Observed(u.Sequence, u.Releases)
		case u.Problem == nil && !u.IsRemote():
			s.ObservedDigest = environment.Observed(0, u.Releases)
		}
		all = append(all, s)
	}
	return all
}

// report returns what was published, and why the newest report was not.
func (o observed) report() *environmentsv1.ReportStatus {
	if o.published.Stored == nil && o.published.Problem == nil {
		return nil
	}
	report := environmentsv1.ReportStatus{}
	if o.published.Stored != nil {
		report = *o.published.Stored
	}
	report.Reason, report.Message = "", ""
	if problem := o.published.Problem; problem != nil {
		report.Reason, report.Message = problem.Reason, truncate.Message(problem.Message)
	}
	return &report
}

// handled returns the last request for a fetch that was handled.
func (o observed) handled() string {
	if token := o.Annotations[v1alpha1.ReconcileRequestAnnotation]; token != "" {
		return token
	}
	return o.Status.LastHandledReconcileAt
}
