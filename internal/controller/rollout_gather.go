// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// snapshot is what was gathered: the input of the decision, and the objects behind it that
// the decision may ask to write.
type snapshot struct {
	promotion.Input
	targets []targets.Target
	err     error // reads that failed; each is a Problem in the Input as well
}

// gather reads the input of the decision, mostly from caches and field indexes. A failed
// read is a fact in the result.
func (r *RolloutReconciler) gather(ctx context.Context, rollout *v1alpha1.Rollout) snapshot {
	w := snapshot{Input: promotion.Input{Now: r.Now(), Rollout: rollout}}
	policyKey := types.NamespacedName{Namespace: rollout.Namespace, Name: rollout.Spec.ReleasesImagePolicy.Name}
	policies := imagepolicy.Reader{Client: r.Client, NoCrossNamespaceRefs: r.NoCrossNamespaceRefs}
	offer, err := policies.Read(ctx, policyKey)
	w.Policy, w.err = offer.Policy, unreadable.Ignore(err)
	r.gatherTags(&w, offer)
	w.err = errors.Join(w.err, unreadable.Ignore(r.gatherTargets(ctx, &w)))
	w.Targets.All = w.Compared()
	r.gatherMetadata(&w, offer)
	w.Targets.All = w.Compared() // now with the metadata from the registry
	w.err = errors.Join(w.err, unreadable.Ignore(r.gatherGates(ctx, &w)))
	w.err = errors.Join(w.err, unreadable.Ignore(r.gatherHealth(ctx, &w)))
	return w
}

// gatherTargets finds the targets and observes their state for the current release.
func (r *RolloutReconciler) gatherTargets(ctx context.Context, w *snapshot) error {
	key := client.ObjectKeyFromObject(w.Rollout)
	found, err := r.findTargets(ctx, key)
	if err == nil {
		w.targets = found
		err = r.gatherUnrecorded(ctx, w)
	}
	if err != nil {
		return w.withoutTargets(err)
	}
	r.conflicts.forgetBut(key, found)
	r.rejections.forgetBut(key, found)
	for _, t := range found {
		seen, err := r.observe(ctx, w, t)
		if err != nil {
			return w.withoutTargets(err)
		}
		w.Targets.All = append(w.Targets.All, seen)
	}
	return nil
}

// withoutTargets records that the targets could not be read. None is written.
func (w *snapshot) withoutTargets(err error) error {
	w.targets, w.Targets = nil, promotion.Targets{Problem: &promotion.Problem{
		Reason: v1alpha1.RolloutFailedReason, Message: "the targets could not be read" + because(err),
	}}
	return err
}

// because returns why something could not be read, if the API server gives a standard
// reason or an object is the cause. Other causes are only in the log. The text is the
// same each time.
func because(err error) string {
	if object := unreadable.Because(err); object != nil {
		return ": " + object.Error()
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return ": " + string(reason)
	}
	return ""
}

// observe returns the state of a target for the version of the newest entry, or of the
// possible first entry.
func (r *RolloutReconciler) observe(ctx context.Context, w *snapshot, t targets.Target) (promotion.Target, error) {
	rollout, version := w.Rollout, w.version()
	seen := r.permitted(t, t.Observe(rollout, version))
	seen.Unset = rollout.Current() == nil && t.Unset()
	if seen.State == v1alpha1.TargetApplied && r.writes.Ahead(t.Object()) {
		seen.State = v1alpha1.TargetPending // the cache does not show our write yet
	}
	seen, err := r.judgeConflict(ctx, rollout, t, remember(rollout.Status.Targets, t, seen, version))
	return r.rejections.judge(rollout, t, seen), err
}

// permitted reports a conflict if the source of a target is in another namespace and that
// is not allowed.
func (r *RolloutReconciler) permitted(t targets.Target, seen promotion.Target) promotion.Target {
	if source := t.ForeignSource(); r.NoCrossNamespaceRefs && source != "" {
		seen.State = v1alpha1.TargetConflict
		seen.Message = fmt.Sprintf("its source is OCIRepository %s, but references across namespaces are not allowed: "+
			"use an OCIRepository of this namespace", source)
	}
	return seen
}

// remember keeps the last known failure of a target while Flux tries again. It drops a
// rejected write once there is nothing left to write.
func remember(before []v1alpha1.TargetStatus, t targets.Target, seen promotion.Target, version string) promotion.Target {
	if seen.State != v1alpha1.TargetPending || seen.Message != "" {
		return seen
	}
	was := seen.StoredIn(before, version)
	if was == nil || was.State != v1alpha1.TargetFailed {
		return seen
	}
	if written := !t.Writable(version) && !t.OwnsTooMuch(); written && targets.IsRejection(was.Message) {
		return seen
	}
	seen.State, seen.Message = was.State, was.Message
	return seen
}

// version returns the version that targets should have; empty if it is not known yet.
func (w *snapshot) version() string {
	switch current := w.Rollout.Current(); {
	case current != nil:
		return current.Version.Tag
	case len(w.Targets.Carried) == 1:
		return w.Targets.Carried[0]
	}
	return ""
}

// gatherUnrecorded reads, while there is no history, which versions the targets have:
// those written by the controller and, with spec.firstRelease Applied, those written by
// anyone. It reads past the caches, because a history must not begin with an old copy.
// That happens once in a Rollout's life.
func (r *RolloutReconciler) gatherUnrecorded(ctx context.Context, w *snapshot) error {
	if len(w.Rollout.Status.History) > 0 {
		return nil
	}
	for _, t := range w.targets {
		live, err := t.Live(ctx, r.APIReader)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return err
		}
		w.Targets.Owned = append(w.Targets.Owned, live.Owned()...)
		if w.Rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied {
			w.Targets.Carried = append(w.Targets.Carried, live.Versions()...)
		}
	}
	slices.Sort(w.Targets.Carried)
	w.Targets.Carried = slices.Compact(w.Targets.Carried)
	return nil
}

// gatherGates reads the gates that reference the Rollout and the schedules that select
// it.
func (r *RolloutReconciler) gatherGates(ctx context.Context, w *snapshot) error {
	gates := &v1alpha1.RolloutGateList{}
	err := r.Client.List(ctx, gates, client.InNamespace(w.Rollout.Namespace),
		client.MatchingFields{gateRolloutIndex: w.Rollout.Name}, client.UnsafeDisableDeepCopy)
	slices.SortFunc(gates.Items, func(a, b v1alpha1.RolloutGate) int { return strings.Compare(a.Name, b.Name) })
	w.Gates.Gates = gates.Items
	if err = errors.Join(err, r.gatherSchedules(ctx, w)); err != nil {
		w.Gates.Problem = &promotion.Problem{
			Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read" + because(err),
		}
	}
	return err
}

// gatherHealth reads the HealthChecks that the Rollout selects.
func (r *RolloutReconciler) gatherHealth(ctx context.Context, w *snapshot) error {
	selection, err := selectionOf(w.Rollout)
	if err != nil {
		w.Health.Problem = &promotion.Problem{
			Reason:  v1alpha1.InvalidSelectorReason,
			Message: fmt.Sprintf("spec.healthCheckSelector cannot be used: %v", err),
		}
		return nil // trying again does not help; a user must fix it
	}
	if r.NoCrossNamespaceRefs && selection.namespaces != nil {
		w.Health.Problem = &promotion.Problem{
			Reason: v1alpha1.AccessDeniedReason,
			Message: "spec.healthCheckSelector.namespaceSelector selects HealthChecks of other namespaces, " +
				"but references across namespaces are not allowed: remove it, and select HealthChecks of this namespace",
		}
		return nil
	}
	checks, err := r.selectedChecks(ctx, selection)
	if err == nil {
		w.Health.Problem, err = r.denied(ctx, w.Rollout.Namespace, checks)
	}
	if err != nil {
		w.Health.Problem = &promotion.Problem{
			Reason: v1alpha1.HealthCheckListFailedReason, Message: "the HealthChecks could not be read" + because(err),
		}
		return err
	}
	if w.Health.Problem == nil {
		w.Health.Checks, w.Health.Rejected = r.asReset(checks), r.resets.rejections(w.Rollout, checks)
	}
	return nil
}

// denied returns a problem if a check in another namespace does not admit this one. A
// Rollout also resets the checks that it selects, and then nobody can see what their
// writers reported. The problem reveals only the namespace of such a check.
func (r *RolloutReconciler) denied(ctx context.Context, namespace string, checks []v1alpha1.HealthCheck) (*promotion.Problem, error) {
	foreign := func(check v1alpha1.HealthCheck) bool { return check.Namespace != namespace }
	if !slices.ContainsFunc(checks, foreign) {
		return nil, nil
	}
	own := namespaceObject()
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("get Namespace %s: %w", namespace, err)
	}
	for i := range checks {
		if foreign(checks[i]) && !checks[i].Spec.AccessFrom.Admits(own.Labels) {
			return &promotion.Problem{Reason: v1alpha1.AccessDeniedReason, Message: fmt.Sprintf(
				"spec.healthCheckSelector selects a HealthCheck of namespace %s whose spec.accessFrom does not let in namespace %s: "+
					"have the namespace added there, or select fewer HealthChecks", checks[i].Namespace, namespace)}, nil
		}
	}
	return nil, nil
}
