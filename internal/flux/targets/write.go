// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// Writable reports whether writing the version would change the target and
// could take effect. A field that another one outranks is left alone. What is no tag
// is never written, wherever it came from: in a substitute it could be any YAML.
func (t Target) Writable(version string) bool {
	if t.Carries(version) || !promotion.IsTag(version) {
		return false
	}
	return t.Repository == nil || outranking(t.Repository) == ""
}

// Write sets the fields of the target that are the Rollout's, and nothing
// else. It is a merge patch under the resourceVersion that was read: it has no
// memory that could take other Rollouts' keys away, does not recreate an
// object that was just deleted, and fails with a conflict if the object has
// changed since. Only the metadata of the answer is asked for, and the target's
// object takes its resourceVersion: what else has changed comes by the watch.
//
// The write requests a reconcile as well, at the given time: what Flux reports tells by
// that whether it knows of the write.
func (t Target) Write(ctx context.Context, c client.Client, version string, at time.Time) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": t.Object().GetResourceVersion(),
			"annotations":     map[string]any{meta.ReconcileRequestAnnotation: at.UTC().Format(time.RFC3339Nano)},
		},
		"spec": t.fields(version),
	})
	if err != nil {
		return fmt.Errorf("encode patch for %s: %w", t, err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.Object().GetNamespace(), Name: t.Object().GetName()}}
	answer.SetGroupVersionKind(t.groupVersion().WithKind(t.Kind()))
	answer, err = write.Patch(ctx, c, answer, client.RawPatch(types.MergePatchType, body))
	if err != nil {
		return fmt.Errorf("patch %s: %w", t, err)
	}
	t.Object().SetResourceVersion(answer.ResourceVersion)
	return nil
}

// IsRefusal reports whether a message tells of a write that failed, as the errors of
// Write and Relinquish do. In the status of a Rollout that is what outlives the process
// of it.
func IsRefusal(message string) bool {
	return strings.HasPrefix(message, "patch ") || strings.HasPrefix(message, "give back ")
}

func (t Target) groupVersion() schema.GroupVersion {
	if t.Repository != nil {
		return sourcev1.GroupVersion
	}
	return kustomizev1.GroupVersion
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
