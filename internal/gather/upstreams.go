// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// environmentRolloutIndex finds Environments by the name of their Rollout.
	environmentRolloutIndex = ".spec.rolloutRef.name"
	// environmentUpstreamIndex finds Environments by the Rollouts of their upstreams,
	// "namespace/name".
	environmentUpstreamIndex = fieldindex.Everywhere + ".spec.upstreams.rollout"
)

// IndexEnvironments adds the field indexes that a [Gatherer] with Environments needs. The
// API server must serve them.
func IndexEnvironments(ctx context.Context, indexer client.FieldIndexer) error {
	err := errors.Join(
		indexer.IndexField(ctx, &environmentsv1.Environment{}, environmentRolloutIndex, func(o client.Object) []string {
			return []string{o.(*environmentsv1.Environment).Spec.RolloutRef.Name}
		}),
		indexer.IndexField(ctx, &environmentsv1.Environment{}, environmentUpstreamIndex, upstreamRollouts))
	if err != nil {
		return fmt.Errorf("index Environments: %w", err)
	}
	return nil
}

func upstreamRollouts(o client.Object) []string {
	var rollouts []string
	for _, u := range o.(*environmentsv1.Environment).GetUpstreams() {
		if key := u.Namespace + "/" + u.Rollout; !u.IsRemote() && !slices.Contains(rollouts, key) {
			rollouts = append(rollouts, key)
		}
	}
	return rollouts
}

// EnvironmentsOf returns the Environments that name a Rollout, sorted by name. They belong
// to the cache and must not be changed.
func EnvironmentsOf(ctx context.Context, c client.Reader, rollout client.ObjectKey, options ...client.ListOption) ([]environmentsv1.Environment, error) {
	list := &environmentsv1.EnvironmentList{}
	if err := c.List(ctx, list, append(options, client.InNamespace(rollout.Namespace),
		client.MatchingFields{environmentRolloutIndex: rollout.Name}, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list Environments: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b environmentsv1.Environment) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// EnvironmentsAfter returns the Environments that name another one as an upstream, of
// either type. They belong to the cache and must not be changed.
func EnvironmentsAfter(ctx context.Context, c client.Reader, e *environmentsv1.Environment, options ...client.ListOption) ([]environmentsv1.Environment, error) {
	list := &environmentsv1.EnvironmentList{}
	if err := c.List(ctx, list, append(options, client.UnsafeDisableDeepCopy,
		client.MatchingFields{environmentUpstreamIndex: e.Namespace + "/" + e.Spec.RolloutRef.Name})...); err != nil {
		return nil, fmt.Errorf("list Environments by upstream: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(other environmentsv1.Environment) bool {
		return !slices.ContainsFunc(other.GetUpstreams(), func(u environmentsv1.Upstream) bool { return isNamed(&other, u, e) })
	}), nil
}

// isNamed reports whether an upstream of an Environment is another one: its application,
// its environment and its Rollout are those that are named.
func isNamed(by *environmentsv1.Environment, u environmentsv1.Upstream, e *environmentsv1.Environment) bool {
	return !u.IsRemote() && e.Namespace == u.Namespace && e.Spec.RolloutRef.Name == u.Rollout &&
		e.Spec.Environment == u.Environment && e.Spec.Name == by.Spec.Name
}

// gatherUpstreams reads what must have proven a release before it may come here.
func (g Gatherer) gatherUpstreams(ctx context.Context, s *Snapshot) error {
	wanted := s.Rollout.Spec.EnvironmentRef
	if !g.Environments {
		if wanted != nil {
			s.Upstreams.Problem = "spec.environmentRef names an Environment, but the controller cannot read Environments here: " +
				"install their CRD, and grant the rights of the manager role"
		}
		return nil
	}
	all, err := EnvironmentsOf(ctx, g.Client, client.ObjectKeyFromObject(s.Rollout))
	if err != nil {
		s.Upstreams.Problem = "the Environments could not be read" + unreadable.Why(err)
		return err
	}
	if wanted != nil && !slices.ContainsFunc(all, func(e environmentsv1.Environment) bool { return e.Name == wanted.Name }) {
		s.Upstreams.Problem = fmt.Sprintf("Environment %s, which spec.environmentRef names, does not exist or names another Rollout: "+
			"create it, or correct one of the two", wanted.Name)
	}
	var errs []error
	for i := range all {
		e, err := g.Environment(ctx, &all[i])
		switch {
		case e.Spec.Backend.Type == environmentsv1.BackendGitHub:
			e.Problem = gateProblem(&all[i], s)
		case e.Problem == nil && e.Status.ObservedGeneration == 0:
			// A CRD of another controller would also remove the upstreams from what is read.
			e.Problem = unreadableUpstream("Environment %s has no status yet: the controller environment writes it, and needs the CRD of this version", e.Name)
			s.Unsettled = s.Unsettled || isNew(&all[i], s.Now)
		}
		s.Upstreams.Environments = append(s.Upstreams.Environments, e)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// SettlesWithin is how long something new may lack what was created together with it.
const SettlesWithin = 10 * time.Second

// isNew reports whether an object was created so recently that what it needs may follow.
func isNew(o client.Object, now time.Time) bool {
	age := now.Sub(o.GetCreationTimestamp().Time)
	return age.Abs() < SettlesWithin // the API server has a clock of its own
}

// gateProblem returns why an Environment of type github holds: its controller has not
// written its RolloutGate yet, or not which versions that allows. An environment without
// any release is not held: it has nothing to protect.
func gateProblem(e *environmentsv1.Environment, s *Snapshot) *verdict.Problem {
	after := e.Spec.Relationship != nil && e.Spec.Relationship.Type == environmentsv1.After
	if !after || s.Rollout.Current() == nil {
		return nil
	}
	for i := range s.Gates.Gates {
		gate := &s.Gates.Gates[i]
		if ref := e.Status.RolloutGateRef; ref != nil && ref.Name == gate.Name && gate.Spec.AllowedVersions != nil {
			return nil
		}
	}
	return &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: fmt.Sprintf(
		"Environment %s of type github has no RolloutGate with allowedVersions yet: its controller must write it", e.Name)}
}

// Environment reads what the upstreams of an Environment say. The result refers to
// objects of the cache, which must not be changed.
func (g Gatherer) Environment(ctx context.Context, e *environmentsv1.Environment) (upstream.Environment, error) {
	read := upstream.Environment{Environment: e}
	switch e.Spec.Backend.Type {
	case environmentsv1.BackendCluster, environmentsv1.BackendOCI, "":
	case environmentsv1.BackendGitHub:
		return read, nil
	default:
		read.Problem = &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: fmt.Sprintf(
			"Environment %s has backend.type %s, which this version of the controller does not know: upgrade it", e.Name, e.Spec.Backend.Type)}
		return read, nil
	}
	var errs []error
	for _, u := range e.GetUpstreams() {
		upstream, err := g.upstream(ctx, e, u)
		read.Upstreams = append(read.Upstreams, upstream)
		errs = append(errs, err)
	}
	if cycle := environment.Cycle(e, func(e *environmentsv1.Environment) []*environmentsv1.Environment { return g.comesAfter(ctx, e) }); cycle != nil {
		read.Problem = &verdict.Problem{Reason: environmentsv1.UpstreamCycleReason, Message: fmt.Sprintf(
			"Environment %s comes after itself (%s): remove one of these upstreams", e.Name, strings.Join(cycle, " after "))}
	}
	return read, errors.Join(errs...)
}

// upstream reads what an upstream says of its releases.
func (g Gatherer) upstream(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (upstream.Upstream, error) {
	if u.IsRemote() {
		return g.remote(e, u), nil
	}
	read := upstream.Upstream{Upstream: u}
	found, problem, err := g.findUpstream(ctx, e, u)
	switch {
	case problem != nil:
		read.Problem = problem
	case found.Spec.Backend.Type == environmentsv1.BackendGitHub:
		read.Problem = unreadableUpstream("the Environment of %s has backend.type github, and does not say here what it has proven: give it type cluster", u.Environment)
	case found.Status.ObservedGeneration == 0:
		read.Problem = unreadableUpstream("the Environment of %s has no status yet: it will be written as soon as the controller sees it", u.Environment)
	default:
		read.Releases = environment.Recorded(found)
		read.Seen = seen(e, u, 0, read.Releases)
	}
	return read, err
}

func unreadableUpstream(format string, args ...any) *verdict.Problem {
	return &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: fmt.Sprintf(format, args...)}
}

// seen returns when an Environment first saw what an upstream says; zero if it has not
// recorded that yet.
func seen(e *environmentsv1.Environment, u environmentsv1.Upstream, sequence int64, recorded []environmentsv1.Release) time.Time {
	known := environment.RecordOf(e, u)
	if known.VerifiedTime == nil || known.ObservedDigest != environment.Observed(sequence, recorded) {
		return time.Time{}
	}
	return known.VerifiedTime.Time
}

// findUpstream returns the Environment of an upstream, or why there is none. The error is
// set if that may change without an event.
func (g Gatherer) findUpstream(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (*environmentsv1.Environment, *verdict.Problem, error) {
	if u.Namespace != e.Namespace {
		return g.findForeignUpstream(ctx, e, u)
	}
	all, err := EnvironmentsOf(ctx, g.Client, client.ObjectKey{Namespace: u.Namespace, Name: u.Rollout})
	if err != nil {
		return nil, unreadableUpstream("the Environment of %s could not be read%s", u.Environment, unreadable.Why(err)), err
	}
	if found := amongThose(all, e, u); found != nil {
		return found, nil, nil
	}
	return nil, &verdict.Problem{Reason: environmentsv1.UpstreamNotFoundReason, Message: fmt.Sprintf(
		"there is no %s: create it, or correct spec.upstreams", described(e, u))}, nil
}

// findForeignUpstream does the same in another namespace. Of an Environment that does not
// admit this namespace, nothing is said, not even whether it exists.
func (g Gatherer) findForeignUpstream(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (*environmentsv1.Environment, *verdict.Problem, error) {
	if g.NoCrossNamespaceRefs {
		return nil, &verdict.Problem{Reason: v1alpha1.AccessDeniedReason, Message: fmt.Sprintf(
			"the upstream %s is in namespace %s, but references across namespaces are not allowed: name one of this namespace", u.Environment, u.Namespace)}, nil
	}
	all, err := EnvironmentsOf(ctx, g.Client, client.ObjectKey{Namespace: u.Namespace, Name: u.Rollout})
	own, err2 := namespaceLabels(ctx, g.Client, e.Namespace)
	if err = errors.Join(err, err2); err != nil {
		cause := unreadable.Why(err)
		if unreadable.Because(err) != nil {
			cause = "" // it names an object that nobody here may know of
		}
		return nil, unreadableUpstream("the Environment of %s in namespace %s could not be read%s", u.Environment, u.Namespace, cause), err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(found environmentsv1.Environment) bool { return !found.Spec.AccessFrom.Admits(own) })
	if found := amongThose(all, e, u); found != nil {
		return found, nil, nil
	}
	return nil, &verdict.Problem{Reason: v1alpha1.AccessDeniedReason, Message: fmt.Sprintf(
		"namespace %s has no %s whose spec.accessFrom lets in namespace %s: create it there, or add the namespace", u.Namespace, described(e, u), e.Namespace)}, nil
}

// amongThose returns the one that an upstream names; nil if there is none.
func amongThose(all []environmentsv1.Environment, e *environmentsv1.Environment, u environmentsv1.Upstream) *environmentsv1.Environment {
	for i := range all {
		if isNamed(e, u, &all[i]) {
			return &all[i]
		}
	}
	return nil
}

// described returns what an upstream names, as part of a sentence.
func described(e *environmentsv1.Environment, u environmentsv1.Upstream) string {
	return fmt.Sprintf("Environment %s of application %s for Rollout %s", u.Environment, e.Spec.Name, u.Rollout)
}

// comesAfter returns the Environments that an Environment comes after, as far as it can
// read them.
func (g Gatherer) comesAfter(ctx context.Context, e *environmentsv1.Environment) []*environmentsv1.Environment {
	return g.readable(ctx, e, slices.DeleteFunc(e.GetUpstreams(), func(u environmentsv1.Upstream) bool {
		return u.Type == environmentsv1.Parallel
	}))
}

// mostFurther is how many environments further up the chain are looked for.
const mostFurther = 16

// Neighbors returns the environments that an Environment comes after, or is parallel to,
// as far as they let its namespace read them, or as their reports tell.
func (g Gatherer) Neighbors(ctx context.Context, e *environmentsv1.Environment) environment.Neighbors {
	near := environment.Neighbors{Upstreams: g.readable(ctx, e, e.GetUpstreams())}
	known := append([]*environmentsv1.Environment{e}, near.Upstreams...)
	for _, u := range e.GetUpstreams() {
		if u.IsRemote() {
			near.Upstreams = append(near.Upstreams, g.asEnvironment(e, u))
		}
	}
	for i := 1; i < len(known) && len(near.Further) < mostFurther; i++ {
		for _, u := range g.readable(ctx, e, known[i].GetUpstreams()) {
			if !slices.ContainsFunc(known, func(k *environmentsv1.Environment) bool { return k.UID == u.UID }) {
				known, near.Further = append(known, u), append(near.Further, u)
			}
		}
	}
	return near
}

// readable returns those of some upstreams, of one application, that are in this API server
// and that an Environment may read.
func (g Gatherer) readable(ctx context.Context, reader *environmentsv1.Environment, upstreams []environmentsv1.Upstream) []*environmentsv1.Environment {
	var all []*environmentsv1.Environment
	for _, u := range upstreams {
		if u.IsRemote() {
			continue
		}
		if found, _, _ := g.findUpstream(ctx, reader, u); found != nil {
			all = append(all, found)
		}
	}
	return all
}

// EnvironmentView returns an environment as its record needs it.
func (g Gatherer) EnvironmentView(ctx context.Context, rollout *v1alpha1.Rollout, recorded []environmentsv1.Release) (environment.View, error) {
	s := Snapshot{Input: promotion.Input{Rollout: rollout}}
	err := g.health(ctx, &s, false)
	return s.view(recorded), err
}

// liveView does the same past the caches.
func (g Gatherer) liveView(ctx context.Context, rollout *v1alpha1.Rollout, recorded []environmentsv1.Release) (environment.View, error) {
	s := Snapshot{Input: promotion.Input{Rollout: rollout}}
	err := g.health(ctx, &s, false)
	if err == nil {
		s.Health.Checks, err = g.liveChecks(ctx, s.Health.Checks)
	}
	return s.view(recorded), err
}

// view returns what the health of a snapshot says of an environment.
func (s *Snapshot) view(recorded []environmentsv1.Release) environment.View {
	view := environment.View{Rollout: s.Rollout, Recorded: recorded}
	view.LastError, view.Recovered = lastError(s.Health.Checks)
	if s.Health.Problem != nil {
		view.Unhealthy = s.Health.Problem.Message
	} else {
		view.Unhealthy = evidence.NamesOf(evidence.Unhealthy(s.Health.Checks))
		view.Pending = slices.ContainsFunc(s.Health.Checks, func(c v1alpha1.HealthCheck) bool { return c.Status.Status != v1alpha1.HealthStatusHealthy })
	}
	return view
}

// lastError returns when one of the HealthChecks last saw an error, and since when those that
// did are Healthy again. The time of an error is that of its first sight.
func lastError(checks []v1alpha1.HealthCheck) (last, recovered time.Time) {
	for i := range checks {
		of := &checks[i].Status
		if of.LastErrorTime == nil {
			continue
		}
		if of.LastErrorTime.After(last) {
			last = of.LastErrorTime.Time
		}
		if of.Status == v1alpha1.HealthStatusHealthy && of.LastChangeTime != nil && of.LastChangeTime.After(recovered) {
			recovered = of.LastChangeTime.Time
		}
	}
	return last, recovered
}
