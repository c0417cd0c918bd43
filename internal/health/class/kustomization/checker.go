// SPDX-License-Identifier: Apache-2.0

// Package kustomization evaluates HealthChecks of the class "kustomization": the state of
// a Flux Kustomization or HelmRelease, and of everything in its inventory.
package kustomization

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/live"
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
	// NoCrossNamespaceRefs refuses what is in other namespaces.
	NoCrossNamespaceRefs bool

	kinds live.Kinds
}

// Objects reads objects of any kind, as JSON: only little of each is needed.
type Objects interface {
	// Get calls do with an object, and returns its error. If the object does not exist, the
	// error is NotFound. do must not read other objects.
	Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName, do func(json.RawMessage) error) error
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
func (c *Checker) Look(ctx context.Context, subject Subject) health.Finding {
	s, err := c.source(ctx, subject)
	if apierrors.IsNotFound(err) {
		return health.ForAll(health.Unhealthy(fmt.Sprintf("%s does not exist: create it, or name another in the annotation %s",
			subject, subject.Annotation()), time.Time{}))
	}
	if err != nil {
		return health.ForAll(unreadable(subject, err))
	}
	objects := c.inventory(ctx, s)
	return health.Finding{WasHealthy: evaluate(s, objects, true), WasNot: evaluate(s, objects, false)}
}

// NotStarted reports whether what is missing of a subject was not started, and nothing of
// it that has run has failed.
func (c *Checker) NotStarted(ctx context.Context, ref Subject) bool {
	return c.Look(ctx, ref).WasNot.Reason == v1alpha1.HealthNotStarted
}

func (c *Checker) reference(check *v1alpha1.HealthCheck) (Subject, error) {
	subject, err := Reference(check)
	if err == nil && c.NoCrossNamespaceRefs && subject.Namespace != check.GetNamespace() {
		err = fmt.Errorf("the annotation %s names %s, but references across namespaces are not allowed: "+
			"create the HealthCheck in the namespace %s", subject.Annotation(), subject, subject.Namespace)
	}
	return subject, err
}

func (c *Checker) source(ctx context.Context, subject Subject) (source, error) {
	var s source
	err := c.Objects.Get(ctx, subject.mapping(), subject.NamespacedName, func(raw json.RawMessage) (err error) {
		if s, err = decode(subject, raw); err != nil {
			err = fmt.Errorf("%w: %w", errUndecodable, err)
		}
		return err
	})
	return s, err
}

// inventory looks at the objects that Flux has applied in this cluster.
func (c *Checker) inventory(ctx context.Context, s source) *reading {
	r := &reading{Checker: c, owner: s.Subject}
	if s.remote {
		return r
	}
	found, malformed := groups(s.inventory)
	if malformed != nil {
		r.seen = append(r.seen, unseen(s.String(), sentence(malformed)))
	}
	if n := objectsOf(found); n > mostObjects {
		r.seen = append(r.seen, unseen(s.String(), fmt.Sprintf(
			"%d objects of its inventory have a health of their own, and at most %d are looked at: divide it into several %ss", n, mostObjects, s.Kind)))
		found = nil
	}
	for _, g := range found {
		r.read(ctx, g)
	}
	r.lookAtPods(ctx)
	return r
}

// evaluate returns the verdict for a check that was Healthy, or was not.
func evaluate(s source, objects *reading, healthy bool) health.Result {
	result := judgeAll(s, s.observe(healthy), objects.seen)
	result.Kinds, result.Err = objects.watch, objects.err
	result.Basis = s.basis(result.Status == v1alpha1.HealthStatusHealthy)
	return result
}

func judgeAll(s source, seen observation, objects []observation) health.Result {
	switch {
	case s.remote:
		return judgeAlone(seen, "is applied to another cluster, where its objects are not looked at: "+waitFor[s.Kind])
	case len(s.inventory) > 0:
		return judge(append([]observation{seen}, objects...))
	case s.Kind == helmv2.HelmReleaseKind:
		return judgeAlone(seen, "is ready, and its status has no inventory, so no objects of it are looked at: "+
			"helm-controller 1.5 and later writes one when it installs or upgrades")
	}
	if seen.Phase == workload.Current {
		seen.Phase, seen.Message = workload.Progressing, "Flux has applied nothing yet, its inventory is empty"
	}
	return judge([]observation{seen})
}

// waitFor says how Flux waits for objects in another cluster.
var waitFor = map[string]string{
	kustomizev1.KustomizationKind: "set spec.wait on it to include their health",
	helmv2.HelmReleaseKind:        "let Helm wait for them to include their health",
}

// judgeAlone judges a source by its own status. In this cluster, objects of the names that
// it has applied to another one would be other objects.
func judgeAlone(seen observation, healthy string) health.Result {
	result := judge([]observation{seen})
	if result.Status == v1alpha1.HealthStatusHealthy {
		result.Message = seen.name + " " + healthy
	}
	return result
}

func unreadable(subject Subject, err error) health.Result {
	result := judge([]observation{unseen(subject.String(), readFailure(subject.mapping().Resource.GroupResource(), err))})
	result.Err = fmt.Errorf("read %s: %w", subject, err)
	return result
}

// sentence returns the error with a capital letter first, as in a message.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
