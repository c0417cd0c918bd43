// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

const (
	// perPage is how many objects one list request asks for.
	perPage = 100
	// mostObjects is how many objects one measurement looks at.
	mostObjects = 1000
)

var (
	errTooMany     = errors.New("too many objects")
	errUndecodable = errors.New("the object cannot be decoded")
)

// Objects reads objects of any kind, as JSON; [live.Objects] implements it.
type Objects interface {
	// Get calls do with an object, and returns its error. If the object does not exist, the
	// error is NotFound. do must not read other objects.
	Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName, do func(json.RawMessage) error) error
	// Select calls do for each object of a kind and namespace that a selector selects. It
	// asks for a page of objects at a time, until do returns an error.
	Select(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, page int64,
		do func(json.RawMessage) error) error
}

// Reader measures. It reads from the API server and not from a cache.
type Reader struct {
	// Objects reads the objects.
	Objects Objects
	// Mapper maps the kinds that the API server serves.
	Mapper meta.RESTMapper
	// Now is the clock.
	Now func() time.Time

	kinds live.Kinds
}

// Measure judges the objects of a namespace, and reports whether there are as many as there
// must be. If they were not seen before, they may come later, and are not missing yet.
func (r *Reader) Measure(ctx context.Context, namespace string, c *Criteria, seen bool) (outcome health.Outcome, exist bool) {
	kind, err := r.kinds.Mapping(ctx, r.Mapper, c.kind, r.Now())
	if err != nil {
		return unserved(c.kind, err), false
	}
	if kind.Scope.Name() != meta.RESTScopeNameNamespace {
		return health.Invalid(fmt.Sprintf("spec.object.kind: %s is not namespaced: only objects of the HealthCheck's namespace can be checked", c.kind.Kind)), false
	}
	if err := mayBeJudged(kind.GroupVersionKind.GroupKind()); err != nil {
		return health.Invalid(err.Error()), false
	}
	l := &look{Reader: r, Criteria: c, kind: kind.GroupVersionKind}
	if l.judges, err = c.health.plan(condition.NewAllowance(evaluations)); err != nil {
		return health.Invalid(err.Error()), false // the spec was checked with the same limits
	}
	if err := l.find(ctx, kind, namespace); err != nil {
		return unread(kind.Resource.GroupResource(), err), false
	}
	return l.verdict(seen), l.total >= l.minimum
}

// look collects the phases of the objects.
type look struct {
	*Reader
	*Criteria

	kind   schema.GroupVersionKind // the one that is served
	judges judges                  // none: as kstatus judges
	total  int
	in     map[workload.Phase][]string // names by phase
	err    error                       // why the first of those that could not be judged could not
}

func (l *look) find(ctx context.Context, kind *meta.RESTMapping, namespace string) error {
	do := func(raw json.RawMessage) error { return l.judge(ctx, raw) }
	if l.selector != nil {
		return l.Objects.Select(ctx, kind, namespace, l.selector, perPage, do)
	}
	err := l.Objects.Get(ctx, kind, types.NamespacedName{Namespace: namespace, Name: l.name}, do)
	return client.IgnoreNotFound(err)
}

// judge records the phase of an object, and nothing else of it.
func (l *look) judge(ctx context.Context, raw json.RawMessage) error {
	if l.total++; l.total > mostObjects {
		return errTooMany
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
		return errUndecodable // the error may quote the object
	}
	object.SetGroupVersionKind(l.kind) // objects in a list do not contain their kind
	phase, err := l.phase(ctx, object)
	if l.in == nil {
		l.in = map[workload.Phase][]string{}
	}
	l.in[phase] = append(l.in[phase], object.GetName())
	if l.err == nil {
		l.err = err
	}
	return ctx.Err()
}

func (l *look) phase(ctx context.Context, object *unstructured.Unstructured) (workload.Phase, error) {
	if len(l.judges) == 0 {
		return workload.Of(object).Phase, nil
	}
	return l.judges.judge(ctx, object)
}

// unserved returns the outcome if a kind cannot be asked for. That is not a problem of the
// HealthCheck: the release itself may install the kind.
func unserved(kind schema.GroupVersionKind, err error) health.Outcome {
	if meta.IsNoMatchError(err) {
		return health.Unobserved(fmt.Sprintf("the API server serves no %s: install it, or correct spec.object", kind.GroupKind()))
	}
	return unread(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, err)
}

// unread returns the outcome if the objects cannot be read. It does not quote the error,
// which differs from one attempt to the next.
func unread(resource schema.GroupResource, err error) health.Outcome {
	switch {
	case apierrors.IsForbidden(err):
		return health.Invalid(fmt.Sprintf("this controller may not read %s: let the ClusterRole health-reader-role get and list them", resource))
	case errors.Is(err, errTooMany):
		return health.Unobserved(fmt.Sprintf("more than %d %s are selected: select fewer with spec.object.selector", mostObjects, resource))
	case errors.Is(err, errUndecodable):
		return health.Unobserved(fmt.Sprintf("one of the %s cannot be decoded", resource))
	case errors.Is(err, live.ErrManyKinds):
		return health.Unobserved("too many kinds were asked for that the API server does not serve; trying again")
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return health.Unobserved("the API server did not answer in time")
	}
	return health.Unobserved("the API server could not be asked; trying again")
}
