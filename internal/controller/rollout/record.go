// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record stores the status if it has changed, under an optimistic lock. If two passes or
// two controllers decide on the same state, only one write succeeds, and the other pass
// starts again. It returns the Rollout as it is stored now, and whether it was written.
func (r *Reconciler) record(ctx context.Context, rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus,
	urgent bool) (*v1alpha1.Rollout, bool, error) {
	if !worthWriting(&rollout.Status, status, urgent) {
		return rollout, false, nil
	}
	patch, err := statusPatch(rollout, status)
	if err != nil {
		return rollout, false, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: rollout.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	answer, err = write.PatchStatus(ctx, r.Client, answer, patch)
	if err != nil {
		r.reportUnwritable(ctx, rollout, err)
		return rollout, false, fmt.Errorf("write status: %w", err)
	}
	r.unwritable.forget(client.ObjectKeyFromObject(rollout))
	r.writes.Wrote(answer)
	next := *rollout
	next.ResourceVersion, next.Status = answer.ResourceVersion, *status
	return &next, true, nil
}

// statusPatch returns a merge patch (RFC 7386) of the changes in the status. The client
// would create the same patch, but would convert both statuses to JSON for it.
func statusPatch(rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus) (client.Patch, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": rollout.ResourceVersion},
		"status":   differing(reflect.ValueOf(rollout.Status), reflect.ValueOf(*status)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch of the status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, body), nil
}

// differing returns the fields that differ between two structs. All fields must have
// omitempty. Lists are replaced as a whole.
func differing(before, after reflect.Value) map[string]any {
	changed := map[string]any{}
	for i := range after.NumField() {
		was, is := before.Field(i), after.Field(i)
		name, _, _ := strings.Cut(after.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case equality.Semantic.DeepEqual(was.Interface(), is.Interface()):
		case is.IsZero() || is.Kind() == reflect.Slice && is.Len() == 0:
			changed[name] = nil
		case is.Kind() == reflect.Pointer && is.Elem().Kind() == reflect.Struct && !was.IsNil():
			changed[name] = differing(was.Elem(), is.Elem())
		default:
			changed[name] = is.Interface()
		}
	}
	return changed
}

// worthWriting reports whether the status has changed enough to be written. During a
// promotion, progress of targets and new metadata alone are not enough. They are written
// with the next change, unless the write is urgent.
func worthWriting(before, after *v1alpha1.RolloutStatus, urgent bool) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if urgent || len(after.History) == 0 || after.History[0].State() != v1alpha1.BakeDeploying {
		return true
	}
	return !equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}
