// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writable reports whether writing the version would change the target and
// could take effect. A field that another one outranks is left alone.
func (t Target) Writable(version string) bool {
	if t.Carries(version) {
		return false
	}
	return t.Repository == nil || outranking(t.Repository) == ""
}

// Write sets the fields of the target that are the Rollout's, and nothing
// else. It is a merge patch under the resourceVersion that was read: it has no
// memory that could take other Rollouts' keys away, does not recreate an
// object that was just deleted, and fails with a conflict if the object has
// changed since. The target's object is updated from the answer.
func (t Target) Write(ctx context.Context, c client.Client, version string) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": t.Object().GetResourceVersion()},
		"spec":     t.fields(version),
	})
	if err != nil {
		return fmt.Errorf("encode patch for %s: %w", t, err)
	}
	patch := client.RawPatch(types.MergePatchType, body)
	if err := c.Patch(ctx, t.Object(), patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("patch %s: %w", t, err)
	}
	return nil
}

func (t Target) fields(version string) map[string]any {
	if t.Repository != nil {
		return map[string]any{"ref": map[string]any{"tag": version}}
	}
	substitute := map[string]any{}
	for _, variable := range t.writable() {
		substitute[variable] = version
	}
	return map[string]any{"postBuild": map[string]any{"substitute": substitute}}
}
