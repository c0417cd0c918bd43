// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

// transition is a fact that is reported once, until a pass finds it false.
type transition struct {
	set, event, what string
}

// emit reports the facts that have become true since the last pass: mistakes in the sets,
// reasons why pods are not replaced, and a finished set.
func (r *Reconciler) emit(ctx context.Context, g gathered, m *memory, plan statefulsets.Plan) {
	current := map[transition]bool{}
	once := func(n transition, kind, message string) {
		if current[n] = true; !m.reported[n] {
			r.send(ctx, g, n.set, kind, n.event, message)
		}
	}
	for _, w := range plan.Warnings {
		once(transition{w.Set, w.Reason, w.Message}, corev1.EventTypeWarning, w.Message)
	}
	for name, set := range g.sets {
		if keys := strings.Join(unsupported(set), ", "); keys != "" {
			once(transition{name, rolloutgroup.UnsupportedEvent, keys}, corev1.EventTypeWarning, "not obeyed by this controller: "+keys)
		}
	}
	for _, name := range plan.About {
		once(transition{name, eventOf(plan), plan.Reason}, kindOf(plan), plan.Message)
	}
	if m.reported = current; plan.Finished != "" {
		r.emitFinished(ctx, g, plan.Finished)
	}
}

func eventOf(plan statefulsets.Plan) string {
	if plan.State == statefulsets.Invalid {
		return rolloutgroup.GroupInvalidEvent
	}
	return rolloutgroup.RolloutBlockedEvent
}

// kindOf returns Normal if a user has asked for the reported state.
func kindOf(plan statefulsets.Plan) string {
	if plan.Reason == rolloutgroup.RolloutPausedReason {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func (r *Reconciler) emitStart(ctx context.Context, g gathered, d statefulsets.Deletion) {
	r.send(ctx, g, d.Set, corev1.EventTypeNormal, rolloutgroup.RolloutStartedEvent,
		fmt.Sprintf("pods are replaced by those of revision %s", d.To))
}

func (r *Reconciler) emitReplaced(ctx context.Context, g gathered, d statefulsets.Deletion) {
	r.send(ctx, g, d.Set, corev1.EventTypeNormal, rolloutgroup.PodReplacedEvent,
		fmt.Sprintf("pod %s of revision %s is deleted, to be created again", d.Pod, d.From))
}

func (r *Reconciler) emitFinished(ctx context.Context, g gathered, set string) {
	r.send(ctx, g, set, corev1.EventTypeNormal, rolloutgroup.RolloutFinishedEvent,
		fmt.Sprintf("all pods are available with revision %s", g.sets[set].Status.UpdateRevision))
}

func (r *Reconciler) emitRejection(ctx context.Context, g gathered, set string, err error) {
	r.send(ctx, g, set, corev1.EventTypeWarning, rolloutgroup.RolloutBlockedEvent, refusal(err))
}

// refusal returns the message of the API server about an eviction that a budget refuses.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	words := []string{status.Status().Message}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			words = append(words, cause.Message)
		}
	}
	return strings.Join(words, " ")
}

// send logs a message, and emits it as an event if that is allowed.
func (r *Reconciler) send(ctx context.Context, g gathered, set, kind, reason, message string) {
	ctx = announce.About(ctx, "StatefulSet", g.sets[set])
	if !r.rights.allowEvents(ctx, r.Client, g.key.Namespace) {
		announce.Change(ctx, reason, message)
		return
	}
	announce.Event(ctx, r.Events, g.sets[set], kind, reason, message)
}

// unsupported returns the labels and annotations that have a meaning for other
// controllers only.
func unsupported(set *appsv1.StatefulSet) []string {
	var keys []string
	for _, key := range rolloutgroup.UnsupportedAnnotations() {
		if _, ok := set.Annotations[key]; ok {
			keys = append(keys, key)
		}
	}
	for _, key := range rolloutgroup.UnsupportedLabels() {
		if _, ok := set.Labels[key]; ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
