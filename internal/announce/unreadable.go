// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Unreadable returns a function that reports an object that cannot be read: in the log,
// and with an event on that object, where its owner sees it.
func Unreadable(log logr.Logger, events record.EventRecorder) func(client.Object, error) {
	return func(object client.Object, err error) {
		kind, _, _ := strings.Cut(unreadable.Because(err).Object, " ")
		ctx := About(ctrl.LoggerInto(context.Background(), log), kind, object)
		Event(ctx, events, object, corev1.EventTypeWarning, v1alpha1.UnreadableReason,
			err.Error()+"; what depends on the object waits until then")
	}
}
