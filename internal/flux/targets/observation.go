// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// observation is what was found out about a target: its state, why it is in this state,
// and how to resolve it. Without a state, nothing was found.
type observation struct {
	state   v1alpha1.TargetState
	reason  v1alpha1.TargetReason // empty while there is nothing to say
	message string                // follows from the reason; nothing reads it
}

// isNothing reports whether nothing was found.
func (o observation) isNothing() bool { return o.state == "" }

// into returns the target with what was found out about it.
func (o observation) into(t content.Target) content.Target {
	t.State, t.Reason, t.Message = o.state, o.reason, o.message
	return t
}

var (
	applied = observation{state: v1alpha1.TargetApplied}
	pending = observation{state: v1alpha1.TargetPending}

	suspended = waiting(v1alpha1.TargetSuspended, "is suspended: resume it")
	deleting  = waiting(v1alpha1.TargetDeleting, "is being deleted")
)

// waiting returns a target that waits for something that can be named.
func waiting(reason v1alpha1.TargetReason, format string, args ...any) observation {
	return observation{state: v1alpha1.TargetPending, reason: reason, message: fmt.Sprintf(format, args...)}
}

// conflict returns a target that does not get the version before a user changes something.
func conflict(reason v1alpha1.TargetReason, format string, args ...any) observation {
	return observation{state: v1alpha1.TargetConflict, reason: reason, message: fmt.Sprintf(format, args...)}
}

// failure returns a target for which Flux reports a failure, in the words of Flux.
func failure(reason v1alpha1.TargetReason, message string) observation {
	return observation{state: v1alpha1.TargetFailed, reason: reason, message: message}
}

// missingSource returns a target whose Repository does not exist.
func missingSource(name string) observation {
	return waiting(v1alpha1.TargetSourceMissing, "its %s does not exist", name)
}
