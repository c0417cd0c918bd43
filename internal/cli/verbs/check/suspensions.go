// SPDX-License-Identifier: Apache-2.0

package check

import (
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

// suspensions finds the objects through which Rollouts learn of releases, and that are
// suspended.
func suspensions(objects []map[string]any) []lint.Finding {
	var all []lint.Finding
	policies, repositories := sourcesOf(objects)
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		used := o.GetKind() == imagev1.ImagePolicyKind && policies[key] || o.GetKind() == imagev1.ImageRepositoryKind && repositories[key]
		if suspend, _, _ := unstructured.NestedBool(content, "spec", "suspend"); suspend && used {
			all = append(all, lint.Finding{
				Rule: suspended, Severity: lint.SeverityWarning, Object: o.GetKind() + " " + key.String(),
				Message: "is suspended: Rollouts see no new releases", Remedy: "resume it, unless that is intended",
			})
		}
	}
	return all
}

// sourcesOf returns the ImagePolicies of Rollouts, and the ImageRepositories of these.
func sourcesOf(objects []map[string]any) (policies, repositories map[types.NamespacedName]bool) {
	policies, repositories = map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, content := range objects {
		if o := (unstructured.Unstructured{Object: content}); o.GetKind() == "Rollout" {
			name, _, _ := unstructured.NestedString(content, "spec", "releasesImagePolicy", "name")
			policies[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}] = true
		}
	}
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		if o.GetKind() != imagev1.ImagePolicyKind || !policies[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] {
			continue
		}
		ref := types.NamespacedName{Namespace: o.GetNamespace()}
		ref.Name, _, _ = unstructured.NestedString(content, "spec", "imageRepositoryRef", "name")
		if namespace, _, _ := unstructured.NestedString(content, "spec", "imageRepositoryRef", "namespace"); namespace != "" {
			ref.Namespace = namespace
		}
		repositories[ref] = true
	}
	return policies, repositories
}
