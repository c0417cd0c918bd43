// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// statusGrace is how old an Environment is at most while nobody has looked at it.
const statusGrace = time.Minute

// environmentsIn returns the Environments among objects. What cannot be decoded is a
// finding of lint.
func environmentsIn(objects []map[string]any) []environmentsv1.Environment {
	return decoded[environmentsv1.Environment](objects, environmentsv1.GroupVersion.WithKind(environmentsv1.EnvironmentKind))
}

// environments finds Environments that are not ready, and those for which no controller
// acts.
func (h installationHealth) environments(objects []map[string]any) []lint.Finding {
	all := environmentsIn(objects)
	findings := h.environmentsOff(all)
	areOff := len(findings) > 0
	for i := range all {
		e := &all[i]
		f := lint.Finding{Object: "Environment " + e.Namespace + "/" + e.Name, Severity: lint.SeverityError}
		ready := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ReadyCondition)
		switch {
		case ready != nil && ready.Status == metav1.ConditionFalse:
			if !apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.StalledCondition) {
				f.Severity = lint.SeverityWarning // it may become ready by itself
			}
			f.Rule, f.Message = notReady, fmt.Sprintf("is not ready (%s): %s", ready.Reason, ready.Message)
			f.Remedy = h.remedyFor(ready.Reason)
		case !areOff && h.isOverlooked(e):
			f.Rule, f.Message = environmentsOff, "has no status: no controller has reconciled it yet"
			f.Remedy = "look at the logs of the controller: it starts the controller environment only if it may list Environments"
		default:
			continue
		}
		findings = append(findings, f)
	}
	return findings
}

func (h installationHealth) isOverlooked(e *environmentsv1.Environment) bool {
	return isOurs(e) && e.Status.ObservedGeneration == 0 && h.now.Sub(e.CreationTimestamp.Time) > statusGrace
}

// isOurs reports whether this controller acts for an Environment.
func isOurs(e *environmentsv1.Environment) bool {
	return e.Spec.Backend.Type != environmentsv1.BackendGitHub
}

// environmentsOff finds that all known instances leave the controller of Environments out.
func (h installationHealth) environmentsOff(all []environmentsv1.Environment) []lint.Finding {
	needed := slices.ContainsFunc(all, func(e environmentsv1.Environment) bool { return isOurs(&e) })
	if !needed || h.unknownInstances() != "" || slices.ContainsFunc(h.instances, func(i installation.Instance) bool { return i.Environments }) {
		return nil
	}
	return []lint.Finding{{
		Rule: environmentsOff, Severity: lint.SeverityError,
		Message: "there are Environments, and no instance of the controller acts for them: --controllers leaves environment out",
		Remedy:  "add environment to --controllers; until then, Rollouts with Environments promote nothing automatically",
	}}
}

// unservedEnvironments finds that Rollouts name Environments that the API server does not
// serve.
func unservedEnvironments(objects []map[string]any) []lint.Finding {
	for _, content := range objects {
		name, _, _ := unstructured.NestedString(content, "spec", "environmentRef", "name")
		if generic := (unstructured.Unstructured{Object: content}); generic.GetKind() == "Rollout" && name != "" {
			return []lint.Finding{{
				Rule: notServed, Severity: lint.SeverityError,
				Message: fmt.Sprintf("the API server serves no Environment of %s, and Rollout %s/%s names one", environmentsv1.GroupVersion, generic.GetNamespace(), generic.GetName()),
				Remedy:  "install its CustomResourceDefinition",
			}}
		}
	}
	return nil
}
