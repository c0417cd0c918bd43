// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

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
