// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// values contains the fields to change; nil removes one.
type values map[string]any

// edit changes fields of an object as a user does. A deleted object stays deleted.
func (c *crowd) edit(o client.Object, name string, changed values) error {
	body, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	o.SetNamespace(c.Namespace)
	o.SetName(name)
	return client.IgnoreNotFound(c.Patch(c.Ctx, o, client.RawPatch(types.MergePatchType, body), client.FieldOwner("kubectl-edit")))
}

func annotations(pairs values) values { return values{"metadata": values{"annotations": pairs}} }

func substituteFrom(variable string) string {
	return v1alpha1.SubstituteAnnotationPrefix + variable + v1alpha1.SubstituteAnnotationSuffix
}

// edits contains random edits of users to a Rollout and what it drives.
var edits = []func(c *crowd, name string, random *rand.Rand) error{
	func(c *crowd, name string, random *rand.Rand) error { // a pin
		return c.edit(&v1alpha1.Rollout{}, name, values{"spec": values{"wantedVersion": c.someTag(random)}})
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		return c.edit(&v1alpha1.Rollout{}, name, values{"spec": values{"wantedVersion": nil}})
	},
	func(c *crowd, name string, random *rand.Rand) error {
		return c.edit(&v1alpha1.Rollout{}, name, annotations(values{
			v1alpha1.ForceDeployAnnotation: c.someTag(random), v1alpha1.DeployMessageAnnotation: "now", v1alpha1.DeployUserAnnotation: "ada"}))
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		return c.edit(&v1alpha1.Rollout{}, name, annotations(values{v1alpha1.RetryAnnotation: "", v1alpha1.UnblockFailedAnnotation: "true"}))
	},
	func(c *crowd, name string, random *rand.Rand) error {
		return c.edit(&v1alpha1.Rollout{}, name, values{"spec": values{"suspend": random.IntN(2) == 0}})
	},
	func(c *crowd, name string, _ *rand.Rand) error { // a gate
		gate := fixture.MakeGate(name, name).Closed().Obj()
		gate.Namespace = c.Namespace
		return client.IgnoreAlreadyExists(c.Create(c.Ctx, gate))
	},
	func(c *crowd, name string, random *rand.Rand) error {
		return c.edit(&v1alpha1.RolloutGate{}, name, values{"spec": values{"passing": random.IntN(2) == 0}})
	},
	func(c *crowd, name string, _ *rand.Rand) error { // a check
		check := &v1alpha1.HealthCheck{}
		if err := c.Get(c.Ctx, c.Key(name), check); err != nil {
			return client.IgnoreNotFound(err)
		}
		return c.checkSays(check, v1alpha1.HealthStatusUnhealthy)
	},
	func(c *crowd, name string, _ *rand.Rand) error { // the targets
		return c.edit(&sourcev1.OCIRepository{}, name, annotations(values{v1alpha1.RolloutAnnotation: nil}))
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		return c.edit(&sourcev1.OCIRepository{}, name, annotations(values{v1alpha1.RolloutAnnotation: name}))
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		return c.edit(&kustomizev1.Kustomization{}, name, annotations(values{substituteFrom("VERSION"): nil}))
	},
	func(c *crowd, name string, random *rand.Rand) error {
		return c.edit(&kustomizev1.Kustomization{}, name, annotations(values{
			substituteFrom("VERSION"): name, substituteFrom("MORE"): c.someName(random)}))
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		more := fixture.MakeRepository("more-" + name).DrivenBy(name).Obj()
		more.Namespace = c.Namespace
		return client.IgnoreAlreadyExists(c.Create(c.Ctx, more))
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		more := fixture.MakeRepository("more-" + name).Obj()
		more.Namespace = c.Namespace
		return client.IgnoreNotFound(c.Delete(c.Ctx, more))
	},
	func(c *crowd, name string, _ *rand.Rand) error { // by hand
		return c.edit(&sourcev1.OCIRepository{}, name, values{"spec": values{"ref": values{"tag": "0.0.9"}}})
	},
	func(c *crowd, name string, _ *rand.Rand) error {
		return c.edit(&kustomizev1.Kustomization{}, name, values{"spec": values{"postBuild": values{"substitute": values{"VERSION": "0.0.9", "TIER": nil}}}})
	},
}

// calm undoes the edits that keep a Rollout from being promoted.
func (c *crowd) calm(name string) error {
	for _, step := range []func() error{
		func() error {
			return c.edit(&v1alpha1.Rollout{}, name, values{"spec": values{"wantedVersion": nil, "suspend": nil},
				"metadata": values{"annotations": values{v1alpha1.ForceDeployAnnotation: nil, v1alpha1.RetryAnnotation: nil}}})
		},
		func() error { return c.edit(&v1alpha1.RolloutGate{}, name, values{"spec": values{"passing": true}}) },
		func() error {
			return c.edit(&sourcev1.OCIRepository{}, name, annotations(values{v1alpha1.RolloutAnnotation: name}))
		},
		func() error {
			return c.edit(&kustomizev1.Kustomization{}, name, annotations(values{substituteFrom("VERSION"): name}))
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("calm %s: %w", name, err)
		}
	}
	return nil
}
