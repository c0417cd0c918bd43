// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// evaluations is how much the expressions may work for all objects together, as a multiple
// of the limit of one evaluation. Flux sets no limit: there only those write expressions
// who may apply anything.
const evaluations = 10

// expressions judge objects as Flux does with spec.healthCheckExprs of a Kustomization.
type expressions struct {
	inOrder []expression // of RFC 0009
}

// expression is a field of the spec, and what it means if it is true.
type expression struct {
	field     string
	means     workload.Phase
	condition *condition.Expression
}

func compileExpressions(spec *v1alpha1.ObjectSpec) (*expressions, error) {
	if spec.Current == "" {
		if spec.Failed != "" || spec.InProgress != "" {
			return nil, errors.New("spec.object.current: it is required with failed or inProgress")
		}
		return nil, nil
	}
	all := &expressions{}
	for _, from := range []struct {
		field, source string
		means         workload.Phase
	}{
		{"spec.object.inProgress", spec.InProgress, workload.Progressing},
		{"spec.object.failed", spec.Failed, workload.Failed},
		{"spec.object.current", spec.Current, workload.Current},
	} {
		if from.source == "" {
			continue
		}
		compiled, err := condition.Object(from.field, from.source)
		if err != nil {
			return nil, err
		}
		all.inOrder = append(all.inOrder, expression{from.field, from.means, compiled})
	}
	return all, nil
}

// judges are expressions that are planned for the objects of one measurement.
type judges []judge

type judge struct {
	expression
	plan *condition.Plan
}

// plan plans the expressions for one measurement. Without expressions there are no judges.
func (e *expressions) plan(allowance *condition.Allowance) (judges, error) {
	if e == nil {
		return nil, nil
	}
	var all judges
	for _, from := range e.inOrder {
		planned, err := from.condition.Plan(allowance)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from.field, err)
		}
		all = append(all, judge{from, planned})
	}
	return all, nil
}

// judge returns the phase of an object. The error is in the words of this project, and
// quotes nothing of the object.
//
// Unlike in Flux, an object that is being deleted is Terminating whatever the expressions
// say. kstatus, too, judges it so.
func (j judges) judge(ctx context.Context, object *unstructured.Unstructured) (workload.Phase, error) {
	switch {
	case object.GetDeletionTimestamp() != nil:
		return workload.Terminating, nil
	case isOutdated(object):
		return workload.Progressing, nil
	}
	for _, judge := range j {
		holds, err := judge.plan.Holds(ctx, object.Object)
		if err != nil {
			return workload.Unknown, fmt.Errorf("%s: %w", judge.field, err)
		}
		if holds {
			return judge.means, nil
		}
	}
	return workload.Progressing, nil
}

// isOutdated reports whether the status is about another generation. As in Flux, it is
// not if the object does not report a number.
func isOutdated(object *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil || !found {
		return false
	}
	generation, found, err := unstructured.NestedInt64(object.Object, "metadata", "generation")
	return err == nil && found && observed != generation
}
