// SPDX-License-Identifier: Apache-2.0

// Package publish stores the signed reports of this cluster's environments in registries,
// for environments in other clusters. It does that independently of the reconcilers: none
// of them ever waits for a registry.
//
// The reconciler of an Environment calls [Publisher.Publish] in each pass, with what the
// environment says now. As long as that is what the status of the Environment names as
// published last, the place is only compared with that, about once an hour. Otherwise the
// Publisher stores it, and the
// Environment is reconciled again when it is known how that ended. Only the latest content
// counts: what was replaced before it was stored is never stored.
//
//   - publish.go  what reconcilers see
//   - subject.go  what is known of one Environment, and when it is its turn
//   - pace.go     how soon one report may follow another
//   - serve.go    the workers
//   - attempt.go  one attempt: read the own place once, sign, store
//   - place.go    whose report is in the place
//   - key.go      the key and the UID of this cluster
//
// Nothing but the status is remembered from one process to the next. A process that
// stored a report and ended before the status was written is no exception: the next one
// reads the place first. If what it finds there is its own and says the same, it only
// takes over the number. In case of doubt it stores the report again, which is always
// safe, because the new one has a higher number.
package publish

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// Publication is what has become of the report of an Environment.
type Publication struct {
	// Pending is true if a write is due or under way, and the last attempt did not fail.
	Pending bool
	// Stored is what this process has stored last; nil if it has stored nothing. Its
	// reference may be that of an earlier place.
	Stored *environmentsv1.ReportStatus
	// Problem is why the last attempt failed: SigningKeyMissing, PublishFailed or
	// ReportTaken. It stands until an attempt succeeds, the spec changes, or nothing has to
	// be stored any more. Its message does not change from one attempt to the next. It is
	// nil if nothing failed.
	Problem *verdict.Problem
}

type (
	// Push stores an envelope. It is [registry.Reports.Push].
	Push func(ctx context.Context, place registry.Place, envelope []byte, known string) (string, error)
	// Pull reads an envelope. It is [registry.Reports.Pull].
	Pull func(ctx context.Context, place registry.Place, known string) (registry.Stored, error)
	// PlaceOf finds how an Environment reaches a report. The reader may have a cache.
	PlaceOf func(ctx context.Context, reader client.Reader, e *environmentsv1.Environment, repository, tag string) (registry.Place, error)
	// Key returns the key of this cluster, or why there is none. Its error is that of the
	// API server.
	Key func(ctx context.Context) (report.SigningKey, *verdict.Problem, error)
)

// Identity is who signs.
type Identity struct {
	// Cluster is the name of this cluster. Without it, nothing is published.
	Cluster string
	// UID tells clusters of the same name apart: it is that of the namespace kube-system,
	// or empty if it may not be read. It is asked until it returns no error.
	UID func(context.Context) (string, error)
	// Replaces is the UID of a cluster that is gone, and whose reports this one takes over;
	// empty for none.
	Replaces string
}

// Publisher stores reports. Add it to the manager, and add its Source to the controller
// whose reconciler calls Publish.
type Publisher struct {
	environments client.Reader
	push         Push
	pull         Pull
	place        PlaceOf
	key          Key
	cluster      string
	replaces     string
	uid          *once
	log          logr.Logger
	clock        clock.WithTicker
	queue        background.Queue[types.NamespacedName]
	woken        background.Waker

	mu       sync.Mutex
	subjects map[types.NamespacedName]*subject
	// attempted are those with an attempt under way: what is stored now may not be what is
	// stored when it ends.
	attempted map[types.NamespacedName]bool
	wake      func(types.NamespacedName)
}

// New returns a Publisher that requests nothing before it is started. The reader is passed
// to place.
func New(environments client.Reader, push Push, pull Pull, place PlaceOf, key Key, identity Identity, log logr.Logger) *Publisher {
	return newPublisher(environments, push, pull, place, key, identity, log, clock.RealClock{})
}

func newPublisher(
	environments client.Reader, push Push, pull Pull, place PlaceOf, key Key, identity Identity, log logr.Logger, clock clock.WithTicker,
) *Publisher {
	p := &Publisher{
		environments: environments, push: push, pull: pull, place: place, key: key,
		cluster: identity.Cluster, replaces: identity.Replaces, uid: &once{read: identity.UID}, log: log, clock: clock,
		queue:    background.NewQueue(func(key types.NamespacedName) string { return key.Namespace }, firstRetry, lastRetry, clock),
		subjects: map[types.NamespacedName]*subject{}, attempted: map[types.NamespacedName]bool{},
	}
	p.wake = p.woken.Wake
	return p
}

// Publish hands over what an Environment says now of its releases, instead of what it said
// in the last call, and returns what has become of it so far. What the status of the
// Environment names as published in its present place is not stored again. It is cheap,
// keeps nothing of its arguments, and never waits.
func (p *Publisher) Publish(e *environmentsv1.Environment, releases []environmentsv1.Release) Publication {
	key := client.ObjectKeyFromObject(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Spec.Backend.Type != environmentsv1.BackendOCI || e.Spec.Backend.Project == "" {
		delete(p.subjects, key)
		return Publication{}
	}
	s := p.subjects[key]
	if s == nil {
		s = &subject{}
		p.subjects[key] = s
	}
	publishable, unpublishable := report.Publishable(releases)
	s.take(e, contentOf(e, p.cluster, publishable), unpublishable)
	p.plan(key, s)
	s.shown = s.publication()
	return s.publication()
}

// contentOf returns the report of an Environment, without what is only known when it is
// signed. The tenant who writes the Environment does not choose for which cluster,
// namespace and Rollout it speaks.
func contentOf(e *environmentsv1.Environment, cluster string, releases []environmentsv1.Release) report.Report {
	copied := (&environmentsv1.EnvironmentStatus{Releases: releases}).DeepCopy() // they are the caller's
	r := report.Report{Releases: copied.Releases, Source: report.Source{
		Application: e.Spec.Name, Environment: e.Spec.Environment,
		Cluster: cluster, Namespace: e.Namespace, Rollout: e.Spec.RolloutRef.Name,
	}}
	for _, u := range e.GetUpstreams() {
		r.Upstreams = append(r.Upstreams, environmentsv1.Relationship{Environment: u.Environment, Type: u.Type})
	}
	return r
}

// plan queues an Environment whose content is not stored yet.
func (p *Publisher) plan(key types.NamespacedName, s *subject) {
	if uid, known := p.uid.known(); known && s.wanted != nil {
		content := s.wanted.content
		content.ClusterUID = uid
		s.digest = content.Digest()
	}
	switch {
	case !s.isStored():
		p.queue.AddAfter(key, s.due().Sub(p.clock.Now()))
	case !p.attempted[key]:
		s.problem, s.wanted = nil, nil
		s.plansComparison(p.clock.Now())
		p.queue.AddAfter(key, s.compare.Sub(p.clock.Now()))
	}
}

// Forget drops what is known of an Environment that was deleted. What is stored stays.
func (p *Publisher) Forget(environment types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subjects, environment)
}

// Source returns a source that wakes an Environment after an attempt whose end it does not
// know yet.
func (p *Publisher) Source() source.Source { return p.woken.Source() }

// NeedLeaderElection returns true: only a reconciler calls Publish.
func (p *Publisher) NeedLeaderElection() bool { return true }
