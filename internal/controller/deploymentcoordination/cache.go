// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// CacheByObject keeps only the fields of Deployments and ReplicaSets that the reconciler
// reads. It replaces templates, which take most memory, by a hash.
func CacheByObject() map[client.Object]ctrlcache.ByObject {
	return map[client.Object]ctrlcache.ByObject{
		&appsv1.Deployment{}: {Transform: cache.Bounded(func(o any) (any, error) {
			if d, ok := o.(*appsv1.Deployment); ok {
				trimDeployment(d)
			}
			return o, nil
		})},
		&appsv1.ReplicaSet{}: {Transform: cache.Bounded(func(o any) (any, error) {
			if set, ok := o.(*appsv1.ReplicaSet); ok {
				trimReplicaSet(set)
			}
			return o, nil
		})},
	}
}

// trimDeployment trims a Deployment. It may be applied more than once.
func trimDeployment(d *appsv1.Deployment) {
	trimTemplate(&d.Spec.Template)
	d.ManagedFields = pausers(d.ManagedFields)
	maps.DeleteFunc(d.Annotations, func(key, _ string) bool { return !slices.Contains(readAnnotations, key) })
	d.OwnerReferences, d.Finalizers, d.Spec.Selector = nil, nil, nil
}

// readAnnotations are the annotations of Deployments that are read.
var readAnnotations = []string{
	coordinationv1.HeldByAnnotation, coordinationv1.OrderAnnotation, coordinationv1.RolloutPausedAnnotation, unreadable.Annotation,
}

// trimReplicaSet trims a ReplicaSet. It may be applied more than once.
func trimReplicaSet(set *appsv1.ReplicaSet) {
	trimTemplate(&set.Spec.Template)
	set.ManagedFields, set.Labels, set.Finalizers = nil, nil, nil
	maps.DeleteFunc(set.Annotations, func(key, _ string) bool { return key != unreadable.Annotation })
	set.OwnerReferences = workload.ControllerOf(set)
	set.Spec.Selector = nil
	set.Status = appsv1.ReplicaSetStatus{}
}

// trimTemplate replaces a template by its identity, in the field for the name, which has
// no other meaning. A template without containers has been trimmed before: the API
// accepts none.
func trimTemplate(template *corev1.PodTemplateSpec) {
	*template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: templateOf(template)}}
}

// templateOf returns the identity of a template, which may have been trimmed.
func templateOf(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) > 0 {
		return identityOf(template)
	}
	return template.Name
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
