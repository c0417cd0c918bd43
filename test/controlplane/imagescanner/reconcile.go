// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"context"
	"errors"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	"github.com/fluxcd/pkg/runtime/reconcile"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// object is an ImageRepository or an ImagePolicy.
type object interface {
	client.Object
	conditions.Setter
}

// outcome is what a look at an object came to.
type outcome struct {
	// again is when to look again; success always names it.
	again ctrl.Result
	// done says that the object is as its spec wants it.
	done bool
	// message describes success.
	message string
	err     error
}

// work looks at an object, whose progress it may store in between.
type work func(ctx context.Context, store func() error) outcome

// attend brings an object's finalizer and status to where the original would.
// The object must have been read just now.
func (s *Scanner) attend(ctx context.Context, obj object, suspended bool, look work) (ctrl.Result, error) {
	patcher := patch.NewSerialPatcher(obj, s.direct)
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		controllerutil.RemoveFinalizer(obj, imagev1.ImageFinalizer)
		return ctrl.Result{}, client.IgnoreNotFound(patcher.Patch(ctx, obj, patchOptions()...))
	case controllerutil.AddFinalizer(obj, imagev1.ImageFinalizer):
		if err := patcher.Patch(ctx, obj, patchOptions()...); err != nil {
			return ctrl.Result{}, err
		}
	}
	if suspended {
		return ctrl.Result{}, nil
	}
	o := look(ctx, func() error { return patcher.Patch(ctx, obj, patchOptions()...) })
	err := conclude(obj, o)
	options := reconcile.AddPatchOptions(obj, patchOptions(), ownedConditions, fieldManager)
	return o.again, errors.Join(err, client.IgnoreNotFound(patcher.Patch(ctx, obj, options...)))
}

// conclude sets the conditions that follow from the outcome.
func conclude(obj object, o outcome) error {
	succeeded := func(again ctrl.Result, err error) bool { return err == nil && o.done && again == o.again }
	err := reconcile.NewResultFinalizer(succeeded, o.message).Finalize(obj, o.again, o.err)
	if conditions.IsReconciling(obj) {
		reconciling := conditions.Get(obj, meta.ReconcilingCondition)
		reconciling.Reason = meta.ProgressingWithRetryReason
		conditions.Set(obj, reconciling)
	}
	return err
}

// announce says in the conditions that the object is being looked at, and
// stores that if its spec is new.
func announce(obj object, observed int64, store func() error) error {
	reconcile.ProgressiveStatus(false, obj, meta.ProgressingReason, "reconciliation in progress")
	if obj.GetGeneration() == observed {
		return nil
	}
	reconcile.ProgressiveStatus(false, obj, meta.ProgressingReason,
		"processing object: new generation %d -> %d", observed, obj.GetGeneration())
	return store()
}

// stalled is the outcome that only a change of the spec can better.
func stalled(obj object, reason string, err error) outcome {
	conditions.MarkStalled(obj, reason, "%s", err)
	return outcome{}
}

// failed is the outcome that another attempt may better.
func failed(obj object, reason string, err error) outcome {
	conditions.MarkFalse(obj, meta.ReadyCondition, reason, "%s", err)
	return outcome{err: err}
}
