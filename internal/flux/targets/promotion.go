// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// PromotionOf returns the id of the history entry for which a Rollout wrote an object last;
// zero if that is not known.
func PromotionOf(o client.Object, rollout string) int64 {
	id, err := strconv.ParseInt(o.GetAnnotations()[promotionKey(rollout)], 10, 64)
	if err != nil || id <= 0 || id > highestID {
		return 0
	}
	return id
}

// highestID is the highest id that counts. A number that is higher than any JSON number of
// other programs can be comes from a mistake.
const highestID = 1<<53 - 1

// IsPromotion reports whether an annotation has the id of a promotion.
func IsPromotion(key string) bool { return strings.HasPrefix(key, v1alpha1.PromotionAnnotationPrefix) }

// promotionKey returns the key of the annotation with the id of the Rollout's promotion.
func promotionKey(rollout string) string {
	return v1alpha1.PromotionAnnotationPrefix + truncate.Name(rollout, validation.LabelValueMaxLength)
}

func promotionPath(rollout string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", promotionKey(rollout))
}

// rollouts returns the names of the Rollouts that write into the target.
func (t Target) rollouts() []string {
	if t.Repository != nil {
		return rolloutOfRepository(t.Repository)
	}
	return rolloutsNamedBy(t.Object())
}

// promotionPatch returns the part of the annotations that a write for a history entry
// sends: its id. It removes what Rollouts have left that do not write into the target any
// more: the next Rollout with that name could take it for its own.
func (t Target) promotionPatch(rollout string, entry *v1alpha1.DeploymentHistoryEntry) map[string]any {
	patch, kept := map[string]any{}, map[string]bool{}
	for _, name := range t.rollouts() {
		kept[promotionKey(name)] = true
	}
	for key := range t.Object().GetAnnotations() {
		if IsPromotion(key) && !kept[key] {
			patch[key] = nil
		}
	}
	if entry.ID != nil {
		patch[promotionKey(rollout)] = strconv.FormatInt(*entry.ID, 10)
	}
	return patch
}

// withoutPromotions removes the annotations with ids of promotions from the fields of an
// entry. Each contains the name of a Rollout, and without them the entries of thousands of
// targets are the same.
func withoutPromotions(entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	if entry.FieldsV1 == nil || !strings.Contains(entry.FieldsV1.GetRawString(), v1alpha1.PromotionAnnotationPrefix) {
		return entry
	}
	owned, ids := fieldpath.NewSet(), fieldpath.NewSet()
	if owned.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return entry
	}
	owned.Iterate(func(path fieldpath.Path) {
		if last := path[len(path)-1].FieldName; last != nil && IsPromotion(*last) {
			ids.Insert(path.Copy())
		}
	})
	return withFields(entry, owned.Difference(ids))
}
