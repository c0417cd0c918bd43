// SPDX-License-Identifier: Apache-2.0

// Package kustomization evaluates HealthChecks of the class "kustomization":
// how far a Flux Kustomization and everything in its inventory is.
package kustomization

import (
	"context"
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// Checker evaluates HealthChecks of the class "kustomization".
type Checker struct {
	// Reader reads from the API server and not from a cache: health counts for
	// a release only if it was observed after that release was applied.
	Reader client.Reader
	// Mapper knows the kinds that the API server serves.
	Mapper meta.RESTMapper
	// Now is the clock.
	Now func() time.Time
	// NoCrossNamespaceRefs refuses Kustomizations of other namespaces.
	NoCrossNamespaceRefs bool

	served served
}

// mostObjects of an inventory are looked at: one evaluation must not hold a worker for
// long.
const mostObjects = 2000

var _ health.Checker = (*Checker)(nil)

// Check evaluates the Kustomization that the HealthCheck names.
func (c *Checker) Check(ctx context.Context, check *v1alpha1.HealthCheck) health.Result {
	ref, err := c.reference(check)
	if err != nil {
		return health.Unhealthy(sentence(err), time.Time{})
	}
	object, k, err := c.source(ctx, ref)
	if apierrors.IsNotFound(err) {
		return health.Unhealthy(fmt.Sprintf("Kustomization %s does not exist: create it, or name another in the annotation %s",
			ref, v1alpha1.KustomizationAnnotation), time.Time{})
	}
	if err != nil {
		return unreadable(ref, err)
	}
	result := c.evaluate(ctx, object, k, check.Status.Status == v1alpha1.HealthStatusHealthy)
	result.Basis = Basis(k, result.Status == v1alpha1.HealthStatusHealthy)
	return result
}

func (c *Checker) reference(check *v1alpha1.HealthCheck) (types.NamespacedName, error) {
	ref, err := Reference(check)
	if err == nil && c.NoCrossNamespaceRefs && ref.Namespace != check.GetNamespace() {
		err = fmt.Errorf("the annotation %s names the Kustomization %s, but references across namespaces are not allowed: "+
			"create the HealthCheck in the namespace %s", v1alpha1.KustomizationAnnotation, ref, ref.Namespace)
	}
	return ref, err
}

// source reads a Kustomization once and returns it in both the forms that it is
// needed in.
func (c *Checker) source(ctx context.Context, ref types.NamespacedName) (*unstructured.Unstructured, *kustomizev1.Kustomization, error) {
	object, k := &unstructured.Unstructured{}, &kustomizev1.Kustomization{}
	object.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
	if err := c.Reader.Get(ctx, ref, object); err != nil {
		return nil, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, k); err != nil {
		return nil, nil, fmt.Errorf("read Kustomization %s: %w", ref, err)
	}
	return object, k, nil
}

func (c *Checker) evaluate(ctx context.Context, object *unstructured.Unstructured, k *kustomizev1.Kustomization, healthy bool) health.Result {
	source := observeSource(object, k, healthy)
	switch {
	case k.Spec.KubeConfig != nil:
		return judgeRemote(source)
	case k.Status.Inventory == nil || len(k.Status.Inventory.Entries) == 0:
		return judgeWithoutInventory(source)
	}
	found, malformed := groups(k.Status.Inventory)
	r := &reading{Checker: c, owner: client.ObjectKeyFromObject(k), seen: []observation{source}}
	if malformed != nil {
		r.seen = append(r.seen, unseen(source.name, sentence(malformed)))
	}
	if n := objectsOf(found); n > mostObjects {
		r.seen = append(r.seen, unseen(source.name, fmt.Sprintf(
			"%d objects of its inventory have a health of their own, and at most %d are looked at: divide it into several Kustomizations", n, mostObjects)))
		found = nil
	}
	for _, g := range found {
		r.read(ctx, g)
	}
	result := judge(r.seen)
	result.Kinds, result.Err = r.kinds, r.err
	return result
}

// judgeRemote judges a Kustomization that applies to another cluster by what it
// says itself. Objects of the same names here would be other objects.
func judgeRemote(source observation) health.Result {
	result := judge([]observation{source})
	if result.Status == v1alpha1.HealthStatusHealthy {
		result.Message = source.name + " is applied to another cluster, where its objects are not looked at: " +
			"set spec.wait on it to include their health"
	}
	return result
}

func judgeWithoutInventory(source observation) health.Result {
	if source.Phase == workload.Current {
		source.Phase, source.Message = workload.Progressing, "Flux has applied nothing yet, its inventory is empty"
	}
	return judge([]observation{source})
}

func unreadable(ref types.NamespacedName, err error) health.Result {
	resource := schema.GroupResource{Group: kustomizev1.GroupVersion.Group, Resource: "kustomizations"}
	name := objectName(kustomizev1.KustomizationKind, ref.Namespace, ref.Name)
	result := judge([]observation{unseen(name, readFailure(resource, err))})
	result.Err = fmt.Errorf("read Kustomization %s: %w", ref, err)
	return result
}

// sentence begins an error with a capital letter, as a message does.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
