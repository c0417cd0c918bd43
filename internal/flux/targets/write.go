// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// Writable reports whether writing the release would change the target and could take
// effect. A tag is not written if another field takes precedence over it, and a value not
// if it would replace other values. A version that is not a valid tag is never written,
// wherever it came from: in a substitute, it could be any YAML. Nothing of an object is
// written that needs a digest which is not known, or not about it.
func (t Target) Writable(release Release) bool {
	if t.Carries(release) || !releases.IsTag(release.Tag) || t.awaitsDigest(release) {
		return false
	}
	switch {
	case t.Repository != nil:
		return t.outranking(release) == "" && t.pullsOther().isNothing() && t.misplacedDigest().isNothing()
	case t.HelmRelease != nil:
		return t.obstructed().isNothing()
	}
	return true
}

// Write sets only the fields of the target that belong to the Rollout, to the release of a
// history entry. It is a merge patch with the resourceVersion that was read. It keeps no
// record that could remove the keys of other Rollouts, does not recreate an object that was
// just deleted, and fails with a conflict if the object has changed since. It requests only metadata in the
// response, and sets the resourceVersion of the target's object from it. All other
// changes arrive with the watch.
//
// The write also requests a reconcile, at the given time, and keeps the id of the entry.
// With the request, the status that Flux reports shows whether Flux knows about the write.
// With the id, an old history is recognised later.
func (t Target) Write(ctx context.Context, c client.Client, rollout string, entry *v1alpha1.DeploymentHistoryEntry, at time.Time) error {
	annotations := t.promotionPatch(rollout, entry)
	annotations[meta.ReconcileRequestAnnotation] = at.UTC().Format(time.RFC3339Nano)
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": t.Object().GetResourceVersion(), "annotations": annotations},
		"spec":     t.patch(ReleaseOf(entry)),
	})
	if err != nil {
		return fmt.Errorf("encode patch for %s: %w", t, err)
	}
	answer, err := write.Patch(ctx, c, t.metadata(), client.RawPatch(types.MergePatchType, body))
	if err != nil {
		return fmt.Errorf("patch %s: %w", t, err)
	}
	t.Object().SetResourceVersion(answer.ResourceVersion)
	return nil
}

// metadata returns an object for a response that has nothing but metadata.
func (t Target) metadata() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.Object().GetNamespace(), Name: t.Object().GetName()}}
	o.SetGroupVersionKind(t.groupVersion().WithKind(t.Kind()))
	return o
}

func (t Target) groupVersion() schema.GroupVersion {
	switch {
	case t.Repository != nil:
		return sourcev1.GroupVersion
	case t.HelmRelease != nil:
		return helmv2.GroupVersion
	}
	return kustomizev1.GroupVersion
}

// patch returns the part of the spec that a write sends.
func (t Target) patch(release Release) map[string]any {
	switch {
	case t.Repository != nil:
		return map[string]any{"ref": t.referencePatch(release)}
	case t.HelmRelease != nil:
		return map[string]any{"values": t.valuesPatch(release)}
	}
	substitute := map[string]any{}
	for _, f := range t.fields() {
		substitute[f.name] = f.wanted(release)
	}
	return map[string]any{"postBuild": map[string]any{"substitute": substitute}}
}

// referencePatch returns the fields of spec.ref. What has no value is removed.
func (t Target) referencePatch(release Release) map[string]any {
	ref := map[string]any{}
	for _, f := range t.fields() {
		switch wanted := f.wanted(release); {
		case wanted != "":
			ref[f.name] = wanted
		case f.value != "":
			ref[f.name] = nil
		}
	}
	return ref
}
