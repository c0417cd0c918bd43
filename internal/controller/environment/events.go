// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
)

// announce emits an event if an Environment cannot be used, or can be used again. That an
// upstream has no status yet needs no event.
func (r *Reconciler) announce(ctx context.Context, e *environmentsv1.Environment, before, after []metav1.Condition) {
	was := apimeta.FindStatusCondition(before, v1alpha1.ReadyCondition)
	now := apimeta.FindStatusCondition(after, v1alpha1.ReadyCondition)
	switch {
	case was != nil && was.Reason == now.Reason, now.Reason == environmentsv1.UpstreamUnreadableReason:
	case now.Status == metav1.ConditionFalse:
		announce.Event(ctx, r.Events, e, corev1.EventTypeWarning, now.Reason, now.Message)
	case was != nil && was.Reason != environmentsv1.UpstreamUnreadableReason:
		announce.Event(ctx, r.Events, e, corev1.EventTypeNormal, now.Reason, now.Message)
	}
}
