// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
)

// announce emits an event if a schedule has opened or closed, or cannot be evaluated or
// shown. The first state of a new schedule is not a transition.
func (r *Reconciler) announce(ctx context.Context, o client.Object, before, after []metav1.Condition) {
	was := apimeta.FindStatusCondition(before, v1alpha1.ReadyCondition)
	now := apimeta.FindStatusCondition(after, v1alpha1.ReadyCondition)
	switch {
	case was != nil && was.Reason == now.Reason:
	case now.Status == metav1.ConditionFalse:
		announce.Event(ctx, r.Events, o, corev1.EventTypeWarning, now.Reason, now.Message)
	case was != nil:
		announce.Event(ctx, r.Events, o, corev1.EventTypeNormal, now.Reason, now.Message)
	}
}
