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

// CacheByObject keeps of Deployments and ReplicaSets only what the reconciler
// reads. What takes most room, their templates, is kept as a hash.
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

// trimDeployment may be applied more than once.
func trimDeployment(d *appsv1.Deployment) {
	trimTemplate(&d.Spec.Template)
	d.ManagedFields = pausers(d.ManagedFields)
	delete(d.Annotations, corev1.LastAppliedConfigAnnotation)
}

// trimReplicaSet may be applied more than once.
func trimReplicaSet(set *appsv1.ReplicaSet) {
	trimTemplate(&set.Spec.Template)
	set.ManagedFields, set.Annotations, set.Labels = nil, nil, nil
	set.Spec.Selector = nil
	set.Status = appsv1.ReplicaSetStatus{}
}

// trimTemplate leaves the identity of a template in the place of its name, which
// has no meaning otherwise. A template that has no containers was trimmed before:
// the API accepts none.
func trimTemplate(template *corev1.PodTemplateSpec) {
	if len(template.Spec.Containers) > 0 {
		*template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: identityOf(template)}}
	}
}

// ownsPause is what managedFields say of a manager that owns spec.paused.
const ownsPause = `{"f:spec":{"f:paused":{}}}`

// pausers leaves those entries of managedFields that own spec.paused, and of
// each only that.
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
