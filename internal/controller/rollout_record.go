// SPDX-License-Identifier: Apache-2.0

package controller

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

// record stores the status if it says anything new, under an optimistic lock:
// of two passes, or two controllers, that decided on the same state only one
// is written, and the other looks again. It returns the Rollout as it is
// stored now, and whether that is news.
func (r *RolloutReconciler) record(ctx context.Context, rollout *v1alpha1.Rollout, status *v1alpha1.RolloutStatus,
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
		r.tellUnwritable(ctx, rollout, err)
		return rollout, false, fmt.Errorf("write status: %w", err)
	}
	r.unwritable.forget(client.ObjectKeyFromObject(rollout))
	r.writes.Wrote(answer)
	next := *rollout
	next.ResourceVersion, next.Status = answer.ResourceVersion, *status
	return &next, true, nil
}

// statusPatch is a merge patch (RFC 7386) of what the status says anew. It is the
// one that the client would make, without reading both statuses as JSON for it.
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

// differing are the fields that differ between two structs, all of which are left out
// if they are empty. Lists are replaced whole.
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

// worthWriting reports whether the status says anything new. While a promotion
// is under way, targets that come along and metadata that becomes known are no
// news by themselves: they are told together with what follows, unless it is
// urgent.
func worthWriting(before, after *v1alpha1.RolloutStatus, urgent bool) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if urgent || len(after.History) == 0 || after.History[0].State() != v1alpha1.BakeDeploying {
		return true
	}
	return !equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}
