// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/rolloutstatus"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// rejection is a write to a target that the API server does not accept as it is, because of
// a missing permission, an admission policy or an invalid field.
type rejection struct {
	target targets.Target
	err    error
}

func (e rejection) Error() string { return e.err.Error() }
func (e rejection) Unwrap() error { return e.err }

// rejected turns an error into a refusal if trying again does not fix it.
func rejected(t targets.Target, err error) error {
	if isRejected(err) {
		return rejection{target: t, err: err}
	}
	return err
}

func isRejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// rejectionsIn returns the refusals in an error tree.
func rejectionsIn(err error) []rejection {
	switch e := err.(type) { //nolint:errorlint // the tree itself is walked
	case rejection:
		return []rejection{e}
	case interface{ Unwrap() []error }:
		var all []rejection
		for _, inner := range e.Unwrap() {
			all = append(all, rejectionsIn(inner)...)
		}
		return all
	}
	return nil
}

// rejectedWrite is the last write to a target that was refused. Every pass reports it until
// the write is accepted or not needed any more. The state that the target itself reports
// does not replace it.
type rejectedWrite struct {
	version string // of the Rollout
	message string
}

// judgeRejection reports a target as failed while a write to it is refused.
func (m *remembered) judgeRejection(current *v1alpha1.DeploymentHistoryEntry, t targets.Target, seen content.Target) content.Target {
	last := m.rejections.of(t.Object())
	switch {
	case last == nil:
		return seen
	case current == nil, last.version != current.Version.Tag, !t.Writable(targets.ReleaseOf(current)) && !t.OwnsTooMuch():
		m.rejections.put(t.Object(), nil)
		return seen
	}
	seen.State, seen.Reason, seen.Message = v1alpha1.TargetFailed, v1alpha1.TargetRejected, last.message
	return seen
}

// noteRejections remembers the writes that were refused in a pass, the first to each target, and
// returns those that are new.
func (m *remembered) noteRejections(version string, rejected []rejection) (unknown []rejection) {
	noted := map[types.UID]bool{}
	for _, rejection := range rejected {
		object := rejection.target.Object()
		if noted[object.GetUID()] {
			continue
		}
		noted[object.GetUID()] = true
		next := rejectedWrite{version: strings.Clone(version), message: truncate.Message(rejection.Error())}
		if last := m.rejections.of(object); last == nil || *last != next {
			m.rejections.put(object, &next)
			unknown = append(unknown, rejection)
		}
	}
	return unknown
}

// reportRejections shows refused writes in the status. They are worth one additional status
// write in a promotion.
func (r *Reconciler) reportRejections(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, err error) error {
	rejected := rejectionsIn(err)
	if len(rejected) == 0 {
		return nil
	}
	rejected = r.memory.of(client.ObjectKeyFromObject(rollout)).noteRejections(rollout.Current().Version.Tag, rejected)
	if len(rejected) == 0 {
		return nil
	}
	after, changed, err := r.record(ctx, rollout, rolloutstatus.WithRejected(rollout, s.Input, d, rejectedTargets(rejected)), d.Overdue)
	if changed {
		in := s.Input
		in.Rollout = rollout // as stored earlier in this pass
		r.announce(ctx, after, s, changedConditions(after, in, d, culpritsOf(in)))
	}
	return err
}

func rejectedTargets(rejected []rejection) []rolloutstatus.Rejected {
	all := make([]rolloutstatus.Rejected, 0, len(rejected))
	for _, r := range rejected {
		object := r.target.Object()
		all = append(all, rolloutstatus.Rejected{Kind: r.target.Kind(), Namespace: object.GetNamespace(), Name: object.GetName(), Message: r.Error()})
	}
	return all
}
