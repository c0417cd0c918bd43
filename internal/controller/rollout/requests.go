// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// consume removes the annotations that the decision has used or answered, after it is
// recorded. It removes an annotation only if its value has not changed, to avoid losing a
// request that was made in the meantime.
func (r *Reconciler) consume(ctx context.Context, rollout *v1alpha1.Rollout, d promotion.Decision) (*v1alpha1.Rollout, error) {
	if len(d.Consumed) == 0 {
		return rollout, nil
	}
	patch, err := removal(rollout.Annotations, d.Consumed)
	if err != nil {
		return rollout, err
	}
	after, err := write.Patch(ctx, r.Client, rollout, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return rollout, errStale
	case err != nil:
		return rollout, fmt.Errorf("remove annotations that are used up: %w", err)
	}
	r.writes.Wrote(after)
	for _, answer := range d.Answers {
		announce.Event(ctx, r.Events, after, corev1.EventTypeWarning, answer.Reason, answer.Message)
	}
	return after, nil
}

// removal returns a JSON patch (RFC 6902) that tests and removes each annotation.
func removal(annotations map[string]string, keys []string) ([]byte, error) {
	type operation struct {
		Op    string  `json:"op"`
		Path  string  `json:"path"`
		Value *string `json:"value,omitempty"`
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901, section 3
	var operations []operation
	for _, key := range keys {
		path, value := "/metadata/annotations/"+escape.Replace(key), annotations[key]
		operations = append(operations, operation{Op: "test", Path: path, Value: &value}, operation{Op: "remove", Path: path})
	}
	return json.Marshal(operations)
}
