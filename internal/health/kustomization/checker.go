// SPDX-License-Identifier: Apache-2.0

// Package kustomization evaluates HealthChecks of the class "kustomization": the state of
// a Flux Kustomization and of everything in its inventory.
package kustomization

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/live"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// Checker evaluates HealthChecks of the class "kustomization".
type Checker struct {
	// Objects reads from the API server and not from a cache: health counts for a
	// release only if it was observed after that release was applied.
	Objects Objects
	// Mapper maps the kinds that the API server serves.
	Mapper meta.RESTMapper
	// Now is the clock.
	Now func() time.Time
	// NoCrossNamespaceRefs refuses Kustomizations of other namespaces.
	NoCrossNamespaceRefs bool

	kinds live.Kinds
	large sync.Mutex // locked while a large object is decoded
}

// Objects reads objects of any kind, as JSON: only little of each is needed.
type Objects interface {
	// Get returns an object. If it does not exist, the error is NotFound.
	Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName) (json.RawMessage, error)
	// Select calls do for each object of a kind and namespace that a selector selects, and
	// for no more after an error of do. It asks for a page of objects at a time.
	Select(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, page int64, do func(json.RawMessage) error) error
}

// mostObjects is how many objects of an inventory are looked at: one evaluation must not
// occupy a worker for long.
const mostObjects = 2000

// Subject returns what the HealthCheck is about. It returns a verdict instead if the
// HealthCheck names nothing, or something that it may not see.
func (c *Checker) Subject(check *v1alpha1.HealthCheck) (Subject, *health.Result) {
	ref, err := c.reference(check)
	if err != nil {
		verdict := health.Unhealthy(sentence(err), time.Time{})
		return Subject{}, &verdict
	}
	return ref, nil
}

// Look looks at a subject and everything in its inventory, once for all HealthChecks that
// are about it.
func (c *Checker) Look(ctx context.Context, ref Subject) health.Finding {
	k, err := c.source(ctx, ref)
	if apierrors.IsNotFound(err) {
		return health.ForAll(health.Unhealthy(fmt.Sprintf("%s does not exist: create it, or name another in the annotation %s",
			ref, v1alpha1.KustomizationAnnotation), time.Time{}))
	}
	if err != nil {
		return health.ForAll(unreadable(ref, err))
	}
	objects := c.inventory(ctx, k)
	return health.Finding{WasHealthy: evaluate(k, objects, true), WasNot: evaluate(k, objects, false)}
}

// NotStarted reports whether what is missing of a subject was not started, and nothing of
// it that has run has failed.
func (c *Checker) NotStarted(ctx context.Context, ref Subject) bool {
	return c.Look(ctx, ref).WasNot.Reason == v1alpha1.HealthNotStarted
}

func (c *Checker) reference(check *v1alpha1.HealthCheck) (Subject, error) {
	ref, err := Reference(check)
	if err == nil && c.NoCrossNamespaceRefs && ref.Namespace != check.GetNamespace() {
		err = fmt.Errorf("the annotation %s names %s, but references across namespaces are not allowed: "+
			"create the HealthCheck in the namespace %s", v1alpha1.KustomizationAnnotation, ref, ref.Namespace)
	}
	return ref, err
}

// kustomizations is the mapping of the kind Kustomization.
var kustomizations = &meta.RESTMapping{
	Resource:         kustomizev1.GroupVersion.WithResource("kustomizations"),
	GroupVersionKind: kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
	Scope:            meta.RESTScopeNamespace,
}

func (c *Checker) source(ctx context.Context, ref Subject) (*kustomizev1.Kustomization, error) {
	object, err := c.Objects.Get(ctx, kustomizations, ref.NamespacedName)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller asks what error it is
	}
	k := &kustomizev1.Kustomization{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, k); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	return k, nil
}

// inventory looks at the objects that the Kustomization has applied in this cluster.
func (c *Checker) inventory(ctx context.Context, k *kustomizev1.Kustomization) *reading {
	r := &reading{Checker: c, owner: Of(client.ObjectKeyFromObject(k))}
	if isRemote(k) || hasNoInventory(k) {
		return r
	}
	found, malformed := groups(k.Status.Inventory)
	if malformed != nil {
		r.seen = append(r.seen, unseen(r.owner.String(), sentence(malformed)))
	}
	if n := objectsOf(found); n > mostObjects {
		r.seen = append(r.seen, unseen(r.owner.String(), fmt.Sprintf(
			"%d objects of its inventory have a health of their own, and at most %d are looked at: divide it into several Kustomizations", n, mostObjects)))
		found = nil
	}
	for _, g := range found {
		r.read(ctx, g)
	}
	r.lookAtPods(ctx)
	return r
}

// evaluate returns the verdict for a check that was Healthy, or was not.
func evaluate(k *kustomizev1.Kustomization, objects *reading, healthy bool) health.Result {
	var result health.Result
	source := observeSource(k, healthy)
	switch {
	case isRemote(k):
		result = judgeRemote(source)
	case hasNoInventory(k):
		result = judgeWithoutInventory(source)
	default:
		result = judge(append([]observation{source}, objects.seen...))
	}
	result.Kinds, result.Err = objects.watch, objects.err
	result.Basis = Basis(k, result.Status == v1alpha1.HealthStatusHealthy)
	return result
}

func isRemote(k *kustomizev1.Kustomization) bool { return k.Spec.KubeConfig != nil }

func hasNoInventory(k *kustomizev1.Kustomization) bool {
	return k.Status.Inventory == nil || len(k.Status.Inventory.Entries) == 0
}

// judgeRemote judges a Kustomization that applies to another cluster by its own status.
// Objects of the same names in this cluster would be other objects.
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

func unreadable(ref Subject, err error) health.Result {
	resource := kustomizations.Resource.GroupResource()
	result := judge([]observation{unseen(ref.String(), readFailure(resource, err))})
	result.Err = fmt.Errorf("read %s: %w", ref, err)
	return result
}

// sentence returns the error with a capital letter first, as in a message.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
