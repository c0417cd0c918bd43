// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// mostWrites is how many gates a pass over a RolloutSchedule writes. Then it gives its worker
// to others, and the next pass does the rest.
const mostWrites = 50

// allowance counts the writes of a pass.
type allowance struct {
	left int
	// more is true if something is left for the next pass.
	more bool
}

// allowed returns how many gates a pass writes. A ClusterRolloutSchedule, which tenants do
// not write, shares its workers only with others of its kind.
func (r *Reconciler) allowed() *allowance {
	if r.Cluster {
		return &allowance{left: math.MaxInt}
	}
	return &allowance{left: mostWrites}
}

// take reports whether another gate may be written.
func (a *allowance) take() bool {
	if a.left == 0 {
		a.more = true
		return false
	}
	a.left--
	return true
}

// keepGates makes sure that each of the Rollouts has one gate of the schedule, and that
// there is no other gate. It continues if a write fails. It returns the gates that exist
// now, the failures, and whether something is left for the next pass.
func (r *Reconciler) keepGates(ctx context.Context, s gather.Schedule, rollouts []*v1alpha1.Rollout, open bool) (kept []*v1alpha1.RolloutGate, more bool, failures []error) {
	existing, err := r.gatesOf(ctx, s, rollouts)
	if err != nil {
		return nil, false, []error{err}
	}
	writes := r.allowed()
	for _, rollout := range r.inTurn(rollouts) {
		key := client.ObjectKeyFromObject(rollout)
		gate, spare := choose(existing[key], gateName(s, rollout.Name))
		existing[key] = spare
		gate, err := r.keep(ctx, s, rollout, gate, open, writes)
		if gate != nil {
			kept = append(kept, gate)
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	leftBehind, err := r.leftBehind(ctx, s, rollouts)
	if err != nil {
		failures = append(failures, err)
	}
	for _, gate := range append(inOrder(existing), leftBehind...) {
		if err := r.drop(ctx, gate, writes); err != nil {
			failures = append(failures, err)
		}
	}
	return kept, writes.more, failures
}

// inTurn returns the Rollouts in the order in which a pass writes their gates. If there are
// more than a pass writes, each pass begins with another one: gates that the API server
// refuses must not keep the others from their turn.
func (r *Reconciler) inTurn(rollouts []*v1alpha1.Rollout) []*v1alpha1.Rollout {
	if len(rollouts) <= mostWrites {
		return rollouts
	}
	first := int(r.Now().UnixMilli() % int64(len(rollouts)))
	return slices.Concat(rollouts[first:], rollouts[:first])
}

func inOrder(gates map[types.NamespacedName][]*v1alpha1.RolloutGate) []*v1alpha1.RolloutGate {
	var all []*v1alpha1.RolloutGate
	for _, some := range gates {
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *v1alpha1.RolloutGate) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// gatesOf returns the gates that the schedule owns, by the Rollout for which their name
// was generated, or else to which they refer.
func (r *Reconciler) gatesOf(ctx context.Context, s gather.Schedule, rollouts []*v1alpha1.Rollout) (map[types.NamespacedName][]*v1alpha1.RolloutGate, error) {
	list := &v1alpha1.RolloutGateList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{gateOwnerIndex: string(s.GetUID())},
		client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list the gates of a schedule: %w", err)
	}
	byName := map[types.NamespacedName]string{}
	for _, rollout := range rollouts {
		byName[types.NamespacedName{Namespace: rollout.Namespace, Name: gateName(s, rollout.Name)}] = rollout.Name
	}
	gates := map[types.NamespacedName][]*v1alpha1.RolloutGate{}
	for i := range list.Items {
		gate := &list.Items[i]
		rollout, ok := byName[client.ObjectKeyFromObject(gate)]
		if !ok {
			rollout = gate.RolloutName()
		}
		key := types.NamespacedName{Namespace: gate.Namespace, Name: rollout}
		gates[key] = append(gates[key], gate)
	}
	return gates, nil
}

// choose returns one of the gates of a Rollout: the one with the right name, or else the
// oldest, such as one from another controller of this API. The others are spare.
func choose(gates []*v1alpha1.RolloutGate, name string) (*v1alpha1.RolloutGate, []*v1alpha1.RolloutGate) {
	if len(gates) == 0 {
		return nil, nil
	}
	slices.SortFunc(gates, func(a, b *v1alpha1.RolloutGate) int {
		switch {
		case a.Name == name:
			return -1
		case b.Name == name:
			return 1
		case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return gates[0], gates[1:]
}

// keep makes a gate what it must be. The gate may be the object in the cache, and is not
// changed. keep returns the gate that exists in the end, as it was if no more may be written.
func (r *Reconciler) keep(ctx context.Context, s gather.Schedule, rollout *v1alpha1.Rollout, gate *v1alpha1.RolloutGate, open bool, writes *allowance) (*v1alpha1.RolloutGate, error) {
	if gate == nil {
		gate = &v1alpha1.RolloutGate{}
		key := types.NamespacedName{Namespace: rollout.Namespace, Name: gateName(s, rollout.Name)}
		// A gate whose owner reference was removed by a user still exists.
		if err := r.Client.Get(ctx, key, gate); apierrors.IsNotFound(err) {
			return r.create(ctx, s, rollout, open, writes)
		} else if err != nil {
			return nil, fmt.Errorf("get RolloutGate %s: %w", key, err)
		}
	}
	if !gate.DeletionTimestamp.IsZero() {
		return nil, nil // once it is deleted, a new one is created
	}
	if r.writes.Stale(gate) {
		return gate, nil
	}
	wanted := gate.DeepCopy()
	if err := r.shape(s, rollout, wanted, open); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(gate, wanted) || !writes.take() {
		return gate, nil
	}
	patch := client.MergeFromWithOptions(withAnnotation(gate), client.MergeFromWithOptimisticLock{})
	written, err := write.Patch(ctx, r.Client, withAnnotation(wanted), patch)
	if err != nil {
		return gate, client.IgnoreNotFound(wrap(err, "patch", gate))
	}
	r.writes.Wrote(written)
	return written, nil
}

// withAnnotation returns a copy with an additional annotation. A merge patch between two
// such copies never removes all annotations, including those of others, which the cache
// does not show.
func withAnnotation(gate *v1alpha1.RolloutGate) *v1alpha1.RolloutGate {
	gate = gate.DeepCopy()
	metav1.SetMetaDataAnnotation(&gate.ObjectMeta, "unchanged", "")
	return gate
}

func (r *Reconciler) create(ctx context.Context, s gather.Schedule, rollout *v1alpha1.Rollout, open bool, writes *allowance) (*v1alpha1.RolloutGate, error) {
	if !writes.take() {
		return nil, nil
	}
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: gateName(s, rollout.Name)}}
	if err := r.shape(s, rollout, gate, open); err != nil {
		return nil, err
	}
	err := r.Client.Create(ctx, gate, client.FieldOwner(write.FieldManager))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil // the Rollout is deleted with its namespace
	case err != nil:
		return nil, wrap(err, "create", gate)
	}
	return gate, nil
}

func (r *Reconciler) drop(ctx context.Context, gate *v1alpha1.RolloutGate, writes *allowance) error {
	if !gate.DeletionTimestamp.IsZero() || r.writes.Stale(gate) || !writes.take() {
		return nil
	}
	return wrap(r.writes.Delete(ctx, r.Client, gate), "delete", gate)
}

func wrap(err error, verb string, gate *v1alpha1.RolloutGate) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s RolloutGate %s: %w", verb, client.ObjectKeyFromObject(gate), err)
}

// shape changes a gate to what the schedule requires. Labels and annotations that others
// have added stay.
func (r *Reconciler) shape(s gather.Schedule, rollout *v1alpha1.Rollout, gate *v1alpha1.RolloutGate, open bool) error {
	if gate.Labels == nil {
		gate.Labels = map[string]string{}
	}
	gate.Labels[v1alpha1.ScheduleKindLabel] = s.Kind
	gate.Labels[v1alpha1.ScheduleNameLabel] = truncate.Name(s.GetName(), validation.LabelValueMaxLength)
	gate.Labels[v1alpha1.RolloutNameLabel] = truncate.Name(rollout.Name, validation.LabelValueMaxLength)
	if s.GetNamespace() != "" {
		gate.Labels[v1alpha1.ScheduleNamespaceLabel] = s.GetNamespace()
	}
	for _, key := range []string{v1alpha1.PrettyNameAnnotation, v1alpha1.DescriptionAnnotation} {
		mirror(s.GetAnnotations(), gate, key)
	}
	gate.Spec = v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: rollout.Name}, Passing: &open}
	if err := controllerutil.SetControllerReference(s.Object, gate, r.Client.Scheme()); err != nil {
		return fmt.Errorf("take over RolloutGate %s: %w", client.ObjectKeyFromObject(gate), err)
	}
	return nil
}

// mirror copies an annotation of the schedule to the gate, or the beginning of a long
// one.
func mirror(from map[string]string, gate *v1alpha1.RolloutGate, key string) {
	value, ok := from[key]
	if !ok {
		delete(gate.Annotations, key)
		return
	}
	if gate.Annotations == nil {
		gate.Annotations = map[string]string{}
	}
	gate.Annotations[key] = truncate.Message(value) // each of thousands of gates has it
}

// gateName returns the name of the gate of a Rollout. It never changes, and it is
// different for each schedule, even for one that replaces a deleted one.
func gateName(s gather.Schedule, rollout string) string {
	const readable = 60
	return gather.ScheduleGatePrefix + truncate.Name(s.GetName(), readable) + "-" + truncate.Hash(string(s.GetUID())+"/"+rollout)
}
