// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
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

// rejections remembers, per Rollout and target, which write was refused last. Every pass
// reports it until the write is accepted or not needed any more. The state that the
// target itself reports does not replace it.
type rejections struct{ perObject[rejectedWrite] }

type rejectedWrite struct {
	version string // of the Rollout
	message string
}

// judge reports a target as failed while a write to it is refused.
func (r *rejections) judge(rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) promotion.Target {
	key, current := client.ObjectKeyFromObject(rollout), rollout.Current()
	last := r.of(key, t.Object())
	switch {
	case last == nil:
		return seen
	case current == nil, last.version != current.Version.Tag, !t.Writable(last.version) && !t.OwnsTooMuch():
		r.put(key, t.Object(), nil)
		return seen
	}
	seen.State, seen.Reason, seen.Message = v1alpha1.TargetFailed, v1alpha1.TargetRejected, last.message
	return seen
}

// note remembers the writes that were refused in a pass, the first to each target, and
// returns those that are new.
func (r *rejections) note(rollout *v1alpha1.Rollout, rejected []rejection) (unknown []rejection) {
	key := client.ObjectKeyFromObject(rollout)
	noted := map[types.UID]bool{}
	for _, rejection := range rejected {
		object := rejection.target.Object()
		if noted[object.GetUID()] {
			continue
		}
		noted[object.GetUID()] = true
		next := rejectedWrite{version: strings.Clone(rollout.Current().Version.Tag), message: truncate.Message(rejection.Error())}
		if last := r.of(key, object); last == nil || *last != next {
			r.put(key, object, &next)
			unknown = append(unknown, rejection)
		}
	}
	return unknown
}

// reportRejections shows refused writes in the status. They are worth one additional status
// write in a promotion.
func (r *Reconciler) reportRejections(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, err error) error {
	rejected := r.rejections.note(rollout, rejectionsIn(err))
	if len(rejected) == 0 {
		return nil
	}
	after, changed, err := r.record(ctx, rollout, statusWithRejections(rollout, s.Input, d, rejected), d.Overdue)
	if changed {
		in := s.Input
		in.Rollout = rollout // as stored earlier in this pass
		r.announce(ctx, after, s, changedConditions(after, in, d, culpritsOf(in)))
	}
	return err
}

func statusWithRejections(rollout *v1alpha1.Rollout, in promotion.Input, d promotion.Decision, rejected []rejection) *v1alpha1.RolloutStatus {
	next := rollout.DeepCopy()
	all, restApplied := int32(len(next.Status.Targets))+next.Status.UnlistedTargets(), int32(0)
	if next.Status.Unlisted != nil {
		restApplied = next.Status.Unlisted.AppliedTargets
	}
	for _, rejection := range rejected {
		setRejected(&next.Status, rejection)
	}
	rep := report{Input: in, decision: d, status: &next.Status}
	rep.Rollout = next
	decided := promotion.Decide(rep.Input)
	rep.verdicts, rep.rollback = decided.Candidates, decided.Rollback
	setTargetsApplied(rep)
	setReady(rep)
	keepTargets(&next.Status, all, countApplied(next.Status.Targets)+restApplied)
	return &next.Status
}

// setRejected shows a refusal at its target, even if the size limit of the status has left
// the target out.
func setRejected(s *v1alpha1.RolloutStatus, r rejection) {
	object := r.target.Object()
	wanted := v1alpha1.TargetStatus{
		Kind: r.target.Kind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Version: s.History[0].Version.Tag, State: v1alpha1.TargetFailed, Reason: v1alpha1.TargetRejected, Message: truncate.Message(r.Error()),
	}
	i, listed := slices.BinarySearchFunc(s.Targets, wanted, func(a, b v1alpha1.TargetStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if listed {
		wanted.Version = s.Targets[i].Version
		s.Targets[i] = wanted
		return
	}
	s.Targets = slices.Insert(s.Targets, i, wanted)
}
