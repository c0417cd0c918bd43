// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheByObject keeps only the fields of Deployments and ReplicaSets that the reconciler
// reads. It replaces templates, which take most memory, by a hash.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {Transform: func(o any) (any, error) {
			if d, ok := o.(*appsv1.Deployment); ok {
				trimDeployment(d)
			}
			return o, nil
		}},
		&appsv1.ReplicaSet{}: {Transform: func(o any) (any, error) {
			if set, ok := o.(*appsv1.ReplicaSet); ok {
				trimReplicaSet(set)
			}
			return o, nil
		}},
	}
}

// trimDeployment trims a Deployment. It may be applied more than once.
func trimDeployment(d *appsv1.Deployment) {
	trimTemplate(&d.Spec.Template)
	d.ManagedFields = pausers(d.ManagedFields)
	delete(d.Annotations, corev1.LastAppliedConfigAnnotation)
}

// trimReplicaSet trims a ReplicaSet. It may be applied more than once.
func trimReplicaSet(set *appsv1.ReplicaSet) {
	trimTemplate(&set.Spec.Template)
	set.ManagedFields, set.Annotations, set.Labels = nil, nil, nil
	set.Spec.Selector = nil
	set.Status = appsv1.ReplicaSetStatus{}
}

// trimTemplate replaces a template by its identity, in the field for the name, which has
// no other meaning. A template without containers has been trimmed before: the API
// accepts none.
func trimTemplate(template *corev1.PodTemplateSpec) {
	if len(template.Spec.Containers) > 0 {
		*template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: identityOf(template)}}
	}
}

// ownsPause is the managedFields content of a manager that owns spec.paused.
const ownsPause = `{"f:spec":{"f:paused":{}}}`

// pausers keeps only the entries of managedFields that own spec.paused, and in each only
// that field.
func pausers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if owner(entry) {
			entry.Time, entry.FieldsV1 = nil, metav1.NewFieldsV1(ownsPause)
			kept = append(kept, entry)
		}
	}
	return kept
}

func owner(entry metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Spec struct {
			Paused *struct{} `json:"f:paused"`
		} `json:"f:spec"`
	}
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return false
	}
	err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)
	return err == nil && fields.Spec.Paused != nil
}
