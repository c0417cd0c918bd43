// SPDX-License-Identifier: Apache-2.0

// Package object measures HealthChecks of the class "object": the phase of objects of one
// kind in the namespace of the HealthCheck.
//
//	criteria.go    a spec that was checked: which objects, and how they are judged
//	expression.go  the CEL expressions
//	reader.go      one measurement: finds the objects, and judges each
//	verdict.go     what all of them together mean
package object

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// leastByDefault is how many objects there must be if spec.object.minimum is not set.
const leastByDefault = 1

// secrets are never read: not even their number may be found out.
var secrets = schema.GroupKind{Kind: "Secret"}

// Criteria are which objects are judged, and how. They do not depend on a namespace.
type Criteria struct {
	kind     schema.GroupVersionKind
	name     string          // empty if a selector selects the objects
	selector labels.Selector // nil if the object has a name
	minimum  int
	health   *expressions // nil: as kstatus judges
}

// Compile checks a spec without asking anybody. An error is a problem of the HealthCheck:
// it begins with the name of the field.
func Compile(spec *v1alpha1.ObjectSpec) (*Criteria, error) {
	c := &Criteria{name: spec.Name, minimum: int(ptr.Deref(spec.Minimum, leastByDefault))}
	var err error
	if c.kind, err = kindOf(spec); err != nil {
		return nil, err
	}
	if (spec.Name == "") == (spec.Selector == nil) {
		return nil, errors.New("spec.object: give either name or selector")
	}
	if spec.Selector != nil {
		if c.selector, err = metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
			return nil, fmt.Errorf("spec.object.selector: %w", err)
		}
	}
	c.health, err = compileExpressions(spec)
	return c, err
}

func kindOf(spec *v1alpha1.ObjectSpec) (schema.GroupVersionKind, error) {
	version, err := schema.ParseGroupVersion(spec.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("spec.object.apiVersion: %w", err)
	}
	kind := version.WithKind(spec.Kind)
	return kind, mayBeJudged(kind.GroupKind())
}

// mayBeJudged rejects kinds of which nothing may be found out, and the kinds of this API:
// a Rollout that waits for the HealthCheck would wait for itself.
func mayBeJudged(kind schema.GroupKind) error {
	switch {
	case kind == secrets:
		return errors.New("spec.object.kind: Secrets cannot be checked")
	case kind.Group == v1alpha1.GroupVersion.Group:
		return fmt.Errorf("spec.object.apiVersion: objects of %s cannot be checked: a Rollout would wait for itself", kind.Group)
	}
	return nil
}
