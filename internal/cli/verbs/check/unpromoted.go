// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// notPromoted finds repositories that have pulled a version before the first promotion of
// their Rollout. Which they are, the engine says.
func notPromoted(objects []map[string]any) []lint.Finding {
	var repositories []targets.Repository
	for _, r := range decoded[sourcev1.OCIRepository](objects, sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind)) {
		repositories = append(repositories, &r)
	}
	for _, r := range decoded[sourcev1.GitRepository](objects, sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind)) {
		repositories = append(repositories, &r)
	}
	var all []lint.Finding
	for _, rollout := range decoded[v1alpha1.Rollout](objects, v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind)) {
		for _, t := range beforeHistory(&rollout, repositories).Content().NotPromoted() {
			all = append(all, lint.Finding{
				Rule: runsUnpromoted, Severity: lint.SeverityError, Object: fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name),
				Message: fmt.Sprintf("runs %s, which was never promoted: the history of Rollout %s is empty", t.PulledTag(), rollout.Name),
				Remedy:  "pin the release that should run there in spec.wantedVersion of the Rollout",
			})
		}
	}
	return all
}

// beforeHistory returns what the engine needs to know of the repositories of a Rollout
// without a history.
func beforeHistory(rollout *v1alpha1.Rollout, repositories []targets.Repository) promotion.Input {
	in := promotion.Input{Rollout: rollout}
	for _, repository := range repositories {
		t := targets.Target{Repository: repository}
		if t.Repository.GetNamespace() != rollout.Namespace || targets.RolloutOf(t.Repository) != rollout.Name {
			continue
		}
		in.Targets.Owned = append(in.Targets.Owned, t.Owned()...)
		in.Targets.All = append(in.Targets.All, t.BeforeHistory(t.Observe(rollout, targets.Release{})))
	}
	return in
}

// decoded returns the objects of a kind. What cannot be decoded is a finding of lint.
func decoded[T any](objects []map[string]any, kind schema.GroupVersionKind) []T {
	var all []T
	for _, content := range objects {
		object := new(T)
		generic := unstructured.Unstructured{Object: content}
		if generic.GroupVersionKind().GroupKind() == kind.GroupKind() &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(content, object) == nil {
			all = append(all, *object)
		}
	}
	return all
}
