// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/internal/write"
)

var (
	refPath        = fieldpath.MakePathOrDie("spec", "ref")
	tagPath        = fieldpath.MakePathOrDie("spec", "ref", "tag")
	digestPath     = fieldpath.MakePathOrDie("spec", "ref", "digest")
	postBuildPath  = fieldpath.MakePathOrDie("spec", "postBuild")
	substitutePath = fieldpath.MakePathOrDie("spec", "postBuild", "substitute")

	annotationsPath = fieldpath.MakePathOrDie("metadata", "annotations")
	requestPath     = fieldpath.MakePathOrDie("metadata", "annotations", meta.ReconcileRequestAnnotation)
)

func variablePath(variable string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "postBuild", "substitute", variable)
}

// KeepOwnFields removes the fields of other managers from an object's managedFields, and
// the ids of promotions. The few bytes that remain show, without a request, whether the
// controller, or an earlier one, owns more than it should.
func KeepOwnFields(object metav1.Object) {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if isOwn(entry) {
			own = append(own, withoutPromotions(entry))
		}
	}
	object.SetManagedFields(own)
}

// Owned returns the values of those version fields of the target that the controller's
// field manager owns. It shows what the controller wrote, even if all other records are
// lost. The object must have been read with its managedFields.
func (t Target) Owned() []string {
	var versions []string
	for _, entry := range t.Object().GetManagedFields() {
		if isOwn(entry) {
			versions = append(versions, t.valuesIn(fieldsOf(entry))...)
		}
	}
	return versions
}

func (t Target) valuesIn(owned *fieldpath.Set) []string {
	var values []string
	for _, f := range t.versions() {
		if f.set && owned.Has(t.pathOf(f)) {
			values = append(values, f.value)
		}
	}
	return values
}

// OwnsTooMuch reports whether the controller's field manager owns fields that no
// annotation assigns to a Rollout. This happens if an earlier controller took whole maps,
// or if an annotation was deleted.
func (t Target) OwnsTooMuch() bool { return len(t.excess()) > 0 }

// Relinquish ends the ownership of such fields. Their values and the ownership of all other
// fields do not change. It only succeeds if the object is the one that was read; after a
// conflict, the caller must read it again. The target's object gets the version and the
// owned fields of the response.
func (t Target) Relinquish(ctx context.Context, reader client.Reader, writer client.Writer) error {
	live, err := t.LiveWithOwners(ctx, reader)
	if err != nil {
		return err
	}
	changes := live.excess()
	if len(changes) == 0 {
		return nil
	}
	body, err := json.Marshal(append(changes, change{"replace", "/metadata/resourceVersion", live.Object().GetResourceVersion()}))
	if err != nil {
		return fmt.Errorf("encode patch for %s: %w", t, err)
	}
	patch := client.RawPatch(types.JSONPatchType, body)
	answer, err := write.Patch(ctx, writer, t.metadata(), patch)
	if err != nil {
		return fmt.Errorf("give back fields of %s: %w", t, err)
	}
	KeepOwnFields(answer)
	// The object is a copy of the cached one. Only the values behind its pointers are
	// shared.
	t.Object().SetResourceVersion(answer.ResourceVersion)
	t.Object().SetManagedFields(answer.ManagedFields)
	return nil
}

// change is an operation of a JSON patch. It names an entry of managedFields by its place,
// so that nobody has to know the entries of others, which may be large.
type change struct {
	Operation string `json:"op"`
	Path      string `json:"path"`
	Value     any    `json:"value,omitempty"`
}

// excess returns the changes of managedFields that remove what the controller should not
// own, the last entry first, so that the places of the others stay.
func (t Target) excess() []change {
	var changes []change
	for i, entry := range slices.Backward(t.Object().GetManagedFields()) {
		if !isOwn(entry) {
			continue
		}
		owned, path := fieldsOf(entry), fmt.Sprintf("/metadata/managedFields/%d", i)
		switch kept := owned.Intersection(t.annotated()); {
		case kept.Equals(owned):
		case kept.Empty():
			changes = append(changes, change{Operation: "remove", Path: path})
		default:
			changes = append(changes, change{"replace", path, withFields(entry, kept)})
		}
	}
	return changes
}

// annotated returns the fields that annotations assign to any Rollout, and the maps
// around them. It includes the annotations that each write adds.
func (t Target) annotated() *fieldpath.Set {
	annotated := t.annotatedSpec()
	for _, rollout := range t.rollouts() {
		annotated.Insert(annotationsPath)
		annotated.Insert(requestPath)
		annotated.Insert(promotionPath(rollout))
	}
	return annotated
}

func (t Target) annotatedSpec() *fieldpath.Set {
	switch {
	case t.HelmRelease != nil:
		return annotatedValues(t.HelmRelease)
	case t.Repository != nil && RolloutOf(t.Repository) == "":
		return fieldpath.NewSet()
	case t.Repository != nil:
		return t.annotatedReference()
	}
	annotated := fieldpath.NewSet(postBuildPath, substitutePath)
	for key := range t.Kustomization.GetAnnotations() {
		if variable, ok := variableOf(key); ok {
			annotated.Insert(variablePath(variable))
		}
	}
	return annotated
}

// annotatedReference includes a digest that the controller has still to remove.
func (t Target) annotatedReference() *fieldpath.Set {
	annotated := fieldpath.NewSet(refPath, tagPath)
	if len(t.Digests) > 0 || viewOf(t.Repository).digest != "" {
		annotated.Insert(digestPath)
	}
	return annotated
}

// isOwn reports whether an entry belongs to the controller's field manager, for any kind
// of write.
func isOwn(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == write.FieldManager && entry.Subresource == ""
}

// fieldsOf returns the fields of an entry. The set is empty if they cannot be read, for
// example because their format is not known yet. Do not modify the set.
func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	if entry.FieldsV1 == nil {
		return fieldpath.NewSet()
	}
	return read.of(entry.FieldsV1.GetRawBytes())
}

// read contains the parsed sets of fields. The controller owns the same few sets on
// thousands of targets, and reads them in each pass.
var read sets

type sets struct {
	mu    sync.Mutex
	known map[string]*fieldpath.Set
}

// Limits for sets that other clients wrote: the number of stored sets and their length.
const (
	mostSets   = 256
	longestSet = 1024 // bytes
)

func (s *sets) of(raw []byte) *fieldpath.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[string(raw)]; ok {
		return known
	}
	fields := fieldpath.NewSet()
	if fields.FromJSON(bytes.NewReader(raw)) != nil {
		fields = fieldpath.NewSet()
	}
	if len(s.known) < mostSets && len(raw) <= longestSet {
		if s.known == nil {
			s.known = map[string]*fieldpath.Set{}
		}
		s.known[string(raw)] = fields
	}
	return fields
}

func withFields(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) metav1.ManagedFieldsEntry {
	raw, err := fields.ToJSON()
	if err != nil {
		return entry // fields that were read from JSON can be written as JSON
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return entry
}
