// SPDX-License-Identifier: Apache-2.0

package show

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Suspension describes the suspension of a Rollout, as far as is known: "suspended 3d ago by
// on-call: INC-1".
func Suspension(r *v1alpha1.Rollout, now time.Time) string {
	text := "suspended"
	if at, err := time.Parse(time.RFC3339, r.Annotations[v1alpha1.SuspendedAtAnnotation]); err == nil {
		text += " " + Ago(at, now) + " ago"
	}
	if by := r.Annotations[v1alpha1.SuspendedByAnnotation]; by != "" {
		text += " by " + by
	}
	if why := r.Annotations[v1alpha1.SuspendedReasonAnnotation]; why != "" {
		text += ": " + why
	}
	return text
}
