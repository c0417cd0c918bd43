// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindsWithoutHealth are the built-in kinds that are always Current for kstatus, because
// nothing in their status distinguishes a working object from a broken one.
var kindsWithoutHealth = map[string][]string{
	corev1.GroupName: {
		"ConfigMap", "Endpoints", "LimitRange", "Namespace", "PersistentVolume",
		"PodTemplate", "ResourceQuota", "Secret", "ServiceAccount",
	},
	admissionregistrationv1.GroupName: {
		"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	batchv1.GroupName:        {"CronJob"},
	coordinationv1.GroupName: {"Lease"},
	discoveryv1.GroupName:    {"EndpointSlice"},
	networkingv1.GroupName:   {"Ingress", "IngressClass", "NetworkPolicy"},
	nodev1.GroupName:         {"RuntimeClass"},
	rbacv1.GroupName:         {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	schedulingv1.GroupName:   {"PriorityClass"},
	storagev1.GroupName:      {"CSIDriver", "StorageClass"},
}

// HasHealth reports whether objects of a kind have a health of their own. It returns true
// for every kind that is not built into Kubernetes.
//
// There is no need to read the others, and so no need for a permission to read Secrets.
// The cost is that such an object may be about to be deleted without this being noticed.
// A Namespace that is being deleted shows in the objects inside it.
func HasHealth(gk schema.GroupKind) bool {
	return !slices.Contains(kindsWithoutHealth[gk.Group], gk.Kind)
}
