// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// OwnersOf keeps which managers own the given fields: all managedFields in their order, and
// of each entry only these fields. The number of other fields is not limited. Of the
// entries that are the caller's own, it keeps everything.
func OwnersOf(fields *fieldpath.Set, isOwn func(metav1.ManagedFieldsEntry) bool) Also {
	return func(whole client.Object) func(client.Object) {
		entries := whole.GetManagedFields()
		for i := range entries {
			if !isOwn(entries[i]) {
				entries[i].FieldsV1 = among(entries[i].FieldsV1, fields)
			}
		}
		return func(kept client.Object) { kept.SetManagedFields(entries) }
	}
}

// among returns the fields that are also among others; nil if there are none.
func among(owned *metav1.FieldsV1, others *fieldpath.Set) *metav1.FieldsV1 {
	if owned == nil {
		return nil
	}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader(owned.GetRawBytes())) != nil {
		return nil
	}
	set = set.Intersection(others)
	text, err := set.ToJSON()
	if err != nil || set.Empty() {
		return nil
	}
	return metav1.NewFieldsV1(string(text))
}
