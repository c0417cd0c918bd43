// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of namespaces, only the metadata is read and cached.

// Namespaces lists namespaces. They belong to the cache and must not be changed.
func Namespaces(ctx context.Context, c client.Reader, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return list.Items, nil
}

// namespaceLabels returns the labels of a namespace. They must not be changed.
func namespaceLabels(ctx context.Context, c client.Reader, name string) (map[string]string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return namespace.Labels, nil
}
