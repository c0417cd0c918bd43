// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// TellUnreadable returns who tells of objects that cannot be read: in the log, and by an
// event of that object, where the person who may correct it looks.
func TellUnreadable(log logr.Logger, events record.EventRecorder) func(client.Object, error) {
	return func(object client.Object, err error) {
		kind, _, _ := strings.Cut(unreadable.Because(err).Object, " ")
		ctx := announce.About(ctrl.LoggerInto(context.Background(), log), kind, object)
		announce.Event(ctx, events, object, corev1.EventTypeWarning, v1alpha1.UnreadableReason,
			err.Error()+"; until then what depends on the object stands still")
	}
}

// lasting leaves out that an object cannot be read until somebody corrects it: trying
// again does not help, and the correction is an event.
func lasting(err error) error {
	if unreadable.Because(err) != nil {
		return nil
	}
	return err
}
