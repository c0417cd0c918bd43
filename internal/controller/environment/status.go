// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// report stores the status if it has changed, and then emits an event for the change.
func (r *Reconciler) report(ctx context.Context, o observed, pass *announce.Pass) error {
	next := o.DeepCopy()
	o.fill(&next.Status)
	if !o.infosAreStored() {
		next.Status.EnvironmentInfos = o.infos
	}
	if equality.Semantic.DeepEqual(&o.Status, &next.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(o.Environment, client.MergeFromWithOptimisticLock{})
	written, err := write.PatchStatus(ctx, r.Client, next, patch)
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of Environment %s/%s: %w", o.Namespace, o.Name, err))
	}
	r.writes.Wrote(written)
	pass.Stored(true)
	r.announce(ctx, next, o.Status.Conditions, next.Status.Conditions)
	return nil
}

// isBehind reports whether a write failed because the cache is behind.
func isBehind(err error) bool { return apierrors.IsConflict(err) }

// infosAreStored reports whether the stored status shows the environments as they are. The
// cache has only a digest of the list.
func (o observed) infosAreStored() bool {
	return o.Annotations[environment.InfosAnnotation] == environment.Digest(o.infos)
}

func (o observed) fill(status *environmentsv1.EnvironmentStatus) {
	status.ObservedGeneration = o.Generation
	status.Releases = o.releases
	status.Upstreams = environment.Upstreams(o.Status.Upstreams, o.upstreams(), o.now)
	status.CurrentVersion, status.LastStatusChangeTime = "", nil
	if current := environment.Current(o.releases); current != nil {
		status.CurrentVersion, status.LastStatusChangeTime = current.Revision, current.Since
	}
	o.setReady(&status.Conditions)
}

// upstreams returns what was read of each upstream.
func (o observed) upstreams() []environmentsv1.UpstreamStatus {
	var all []environmentsv1.UpstreamStatus
	for _, u := range o.read.Upstreams {
		s := environmentsv1.UpstreamStatus{Environment: u.Environment}
		if u.Problem != nil {
			s.Message = truncate.Message(u.Problem.Message)
		} else {
			s.ObservedDigest = environment.Digest(u.Releases)
		}
		all = append(all, s)
	}
	return all
}
