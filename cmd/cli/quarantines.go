// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// servesQuarantines reports whether the API server serves both kinds of quarantines. The
// controller obeys neither if it does not.
func servesQuarantines(facts *snapshot.Snapshot) bool {
	return facts.Serves(&v1alpha1.ReleaseQuarantine{}) && facts.Serves(&v1alpha1.ClusterReleaseQuarantine{})
}

// unservedQuarantines finds that a Rollout is meant to report failures, or to obey
// quarantines, and that the API server does not serve one of their kinds.
func unservedQuarantines(kind string, objects []map[string]any) []lint.Finding {
	for _, content := range objects {
		_, set, _ := unstructured.NestedMap(content, "spec", "quarantine")
		if generic := (unstructured.Unstructured{Object: content}); generic.GetKind() == v1alpha1.RolloutKind && set {
			return []lint.Finding{{
				Rule: notServed, Severity: lint.SeverityError,
				Message: fmt.Sprintf("the API server serves no %s of %s, and Rollout %s/%s has spec.quarantine: nothing is reported or held", kind, v1alpha1.GroupVersion, generic.GetNamespace(), generic.GetName()),
				Remedy:  "install its CustomResourceDefinition, and start the controller again",
			}}
		}
	}
	return nil
}

// quarantinesIn returns the ReleaseQuarantines of a namespace, with their status as it
// counts; none if they cannot be read.
func quarantinesIn(ctx context.Context, from client.Reader, namespace string) []v1alpha1.ReleaseQuarantine {
	list := &v1alpha1.ReleaseQuarantineList{}
	if from.List(ctx, list, client.InNamespace(namespace)) != nil {
		return nil
	}
	for i := range list.Items {
		q := &list.Items[i]
		q.Status = quarantine.Counted(q.Status, quarantine.IsManaged(q), q.CreationTimestamp.Time)
	}
	return list.Items
}
