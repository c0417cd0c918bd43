// SPDX-License-Identifier: Apache-2.0

// Package announce reports what the controllers do: each transition once, at info, and
// each pass at level 1. It is the only package that emits Kubernetes events. Thus every
// event is also in the log, with the same reason and message.
package announce

import (
	"context"

	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longest is the maximum number of characters of a logged text, because the text may
// quote user input.
const longest = 1024

// Event emits a Kubernetes event about a transition that was stored, and logs it.
func Event(ctx context.Context, events record.EventRecorder, object client.Object, kind, reason, message string) {
	message = truncate.Text(message, longest)
	ctrl.LoggerFrom(ctx).Info(message, "reason", reason, "type", kind)
	events.Event(object, kind, reason, message)
}

// Change logs a transition that was stored and that has no Kubernetes event.
func Change(ctx context.Context, reason, message string) {
	ctrl.LoggerFrom(ctx).Info(truncate.Text(message, longest), "reason", reason)
}

// About returns the context for messages about an object other than the reconciled one.
func About(ctx context.Context, kind string, object client.Object) context.Context {
	return ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues(kind, klog.KObj(object)))
}
