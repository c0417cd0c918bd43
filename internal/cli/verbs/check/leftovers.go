// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
)

// leftovers finds the freezes that are over.
func (c *checking) leftovers(objects []map[string]any) []lint.Finding {
	var all []lint.Finding
	for _, content := range objects {
		o := freezeIn(content)
		if o == nil || !inspect.FreezeOf(o, c.Now()).Over {
			continue
		}
		all = append(all, lint.Finding{
			Rule: leftover, Severity: lint.SeverityWarning, Object: objectName(o),
			Message: "is a freeze that is over: it holds nothing any more", Remedy: "remove it: " + c.unfreezeCommand(o),
		})
	}
	return all
}

// freezeIn returns the object that the verb freeze has made; nil if it is another one.
func freezeIn(content map[string]any) client.Object {
	generic := unstructured.Unstructured{Object: content}
	into, ok := map[string]client.Object{
		"RolloutGate": &v1alpha1.RolloutGate{}, "RolloutSchedule": &v1alpha1.RolloutSchedule{}, "ClusterRolloutSchedule": &v1alpha1.ClusterRolloutSchedule{},
	}[generic.GetKind()]
	if !ok || generic.GetLabels()[v1alpha1.ManagedByLabel] != request.FreezeManager {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, into); err != nil {
		return nil // the schema has a finding
	}
	return into
}

func objectName(o client.Object) string {
	if o.GetNamespace() == "" {
		return program.KindOf(o) + " " + o.GetName()
	}
	return program.KindOf(o) + " " + o.GetNamespace() + "/" + o.GetName()
}

// unfreezeCommand returns what removes one freeze. The verb unfreeze ends those of the
// whole cluster only together.
func (c *checking) unfreezeCommand(o client.Object) string {
	if o.GetNamespace() == "" {
		return c.CommandLineOf("kubectl", "", "delete", "clusterrolloutschedule", o.GetName())
	}
	return c.CommandLine(o.GetNamespace(), "unfreeze", o.GetName())
}

// causesIn returns the findings of lint that say more than that an Environment is not
// ready: they are why. What only warns of something else does not explain it.
func causesIn(found []lint.Finding) []lint.Finding {
	const noUpstream = "R603"
	return slices.DeleteFunc(slices.Clone(found), func(f lint.Finding) bool {
		return f.Severity != lint.SeverityError && f.Rule != noUpstream
	})
}

// without leaves out what lint finds in the objects of other findings, which say more.
func without(found, others []lint.Finding) []lint.Finding {
	return slices.DeleteFunc(found, func(f lint.Finding) bool {
		return slices.ContainsFunc(others, func(other lint.Finding) bool { return other.Object == f.Object })
	})
}
