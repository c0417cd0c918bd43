// SPDX-License-Identifier: Apache-2.0

// Package fetch reads the reports of upstreams in other clusters from registries, and
// verifies them. It does so independently of the reconcilers: none of them ever waits for
// a registry.
//
// The reconciler of a Rollout calls [Store.Ask] with the upstreams that a candidate waits
// for, and with the times at which it needs a fresh fetch. The reconciler of an Environment
// calls [Store.Once] when its spec has changed or a user asks. Both read the results with
// [Store.Last]. The Store requests nothing that nobody asks for.
//
// The files in reading order:
//
//	store.go  what callers see
//	lookups.go who asks for which fetches, and how many upstreams there may be
//	work.go   the workers
//	fetch.go  one fetch
//	bytes.go  how much of a report is kept
//	pace.go   when the next fetch is. Pure
//	words.go  what users read of a fetch that failed
//	keys.go   the keys that reports are verified with
package fetch

import (
	"context"
	"sync"
	"time"

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

// Upstream identifies an upstream of an Environment whose report is in a registry.
type Upstream struct {
	// Environment is the one that comes after the upstream.
	Environment types.NamespacedName
	// Name is the environment of one of its spec.upstreams.
	Name string
}

// Result is what the fetches of an upstream have found.
type Result struct {
	// Report is the one that this process has verified last. It has the newest releases, up to
	// what the status of the Environment has room for, or less if memory is short. Its Sequence is 0 if there was
	// none. All callers share it. Do not modify it.
	Report report.Report
	// At is a time at which the registry had exactly this report: when the last fetch that
	// found it began. It is zero if there was none.
	At time.Time
	// Problem is why the last fetch found nothing that counts; nil if it did. The Report is
	// then an older one, or it must not be used.
	Problem *verdict.Problem
}

// Lookup is a fetch that a Rollout needs.
type Lookup struct {
	Upstream
	// At is when to fetch, or soon after, but never before. A time that has passed means at
	// once. It is fetched once. If At is zero, a candidate waits for the upstream: it is
	// fetched once, and then again and again.
	At time.Time
}

// Pull reads the report in a place, unless its digest is known. It returns within a
// limited time. See [registry.Reports.Pull].
type Pull func(ctx context.Context, place registry.Place, known string) (registry.Stored, error)

// Keys returns the keys that the reports of an Environment's upstreams are verified with,
// or why there are none. The error means that they could not be read, and a retry may
// help.
type Keys func(ctx context.Context, e *environmentsv1.Environment) (report.TrustedKeys, *verdict.Problem, error)

// Place returns where the report of an upstream is, and how it is reached.
type Place func(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (registry.Place, error)

// NewPlace returns the places that Environments and the Rollouts of a cache name.
func NewPlace(reader client.Reader) Place {
	return func(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream) (registry.Place, error) {
		return registry.PlaceOf(ctx, reader, e, u.Repository, report.Tag(u.Namespace, u.Rollout))
	}
}

// Store stores what was read of upstreams, and reads what is asked for. Add it to the
// manager, and add its sources to the controllers of Environments and Rollouts.
type Store struct {
	environments               client.Reader
	pull                       Pull
	keys                       Keys
	place                      Place
	log                        logr.Logger
	clock                      clock.WithTicker
	queue                      background.Queue[Upstream]
	ofEnvironments, ofRollouts background.Waker

	mu        sync.Mutex
	upstreams map[Upstream]*upstream
	// asked are the upstreams that a Rollout asks for.
	asked map[types.NamespacedName][]Upstream
	// rejected asked for an upstream when there were too many.
	rejected map[caller]bool
	// ofEnvironment are the names of the upstreams, by Environment. ofNamespace counts them
	// by namespace.
	ofEnvironment map[types.NamespacedName][]string
	ofNamespace   map[string]int
	// bytes is how much of reports is in memory, by namespace.
	bytes map[string]int

	wakeEnvironment, wakeRollout func(types.NamespacedName)
}

// caller is a Rollout, or an Environment.
type caller struct {
	types.NamespacedName
	rollout bool
}

// New returns a Store that reads nothing before it is started. The reader of Environments
// may be a cache.
func New(environments client.Reader, pull Pull, keys Keys, place Place, log logr.Logger) *Store {
	return newStore(environments, pull, keys, place, log, clock.RealClock{})
}

func newStore(environments client.Reader, pull Pull, keys Keys, place Place, log logr.Logger, clock clock.WithTicker) *Store {
	namespace := func(u Upstream) string { return u.Environment.Namespace }
	s := &Store{
		environments: environments, pull: pull, keys: keys, place: place, log: log, clock: clock,
		queue:         background.NewQueue(namespace, firstRetry, lastRetry, clock),
		upstreams:     map[Upstream]*upstream{},
		asked:         map[types.NamespacedName][]Upstream{},
		rejected:      map[caller]bool{},
		ofEnvironment: map[types.NamespacedName][]string{},
		ofNamespace:   map[string]int{},
		bytes:         map[string]int{},
	}
	s.wakeEnvironment, s.wakeRollout = s.ofEnvironments.Wake, s.ofRollouts.Wake
	return s
}

// Last returns what the fetches of an upstream have found so far. It returns false if none
// has ended yet. While a fetch is due that Once has asked for, the result has no time: the
// spec of the Environment, and with it the trusted keys, may have changed since.
func (s *Store) Last(u Upstream) (Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.upstreams[u]
	if k == nil || k.ended.IsZero() {
		return Result{}, false
	}
	last := k.result
	if k.once.open || k.once.asked && k.running {
		last.At = time.Time{}
	}
	return last, true
}

// Ask replaces the lookups of a Rollout. Those that it had before are not new: what was
// fetched for them is not fetched again.
func (s *Store) Ask(rollout types.NamespacedName, lookups []Lookup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, wanted := byUpstream(lookups)
	delete(s.rejected, caller{rollout, true})
	for _, u := range s.asked[rollout] {
		if wanted[u] == nil {
			s.leave(u, rollout)
		}
	}
	delete(s.asked, rollout)
	for _, u := range order {
		if s.join(u, rollout, wanted[u]) {
			s.asked[rollout] = append(s.asked[rollout], u)
		}
	}
	s.admit()
}

// Once asks for a fetch at once, and for further ones as long as there is a problem. A fetch
// that is under way, or that will be repeated because of a problem, is enough, unless the
// Environment has changed or a user has asked since.
func (s *Store) Once(u Upstream) {
	u, seen := u.kept(), versionOf(s.environment(context.Background(), u.Environment))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rejected, caller{u.Environment, false})
	k := s.open(u)
	if k == nil {
		s.rejected[caller{u.Environment, false}] = true
		return
	}
	if k.once.open {
		return
	}
	if k.seen == seen && (k.running || k.once.asked) {
		k.once.asked = true
		return
	}
	k.once = once{asked: true, open: true, at: s.clock.Now()}
	k.pace.failures = 0
	s.plan(u, k)
}

// Forget drops what is known of the upstreams of an Environment, and all lookups for them.
func (s *Store) Forget(environment types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rejected, caller{environment, false})
	s.keepOnly(environment, nil)
	s.admit()
}

// Environments returns a source that wakes an Environment when the report or the problem
// of one of its upstreams has changed, and after each fetch that Once asked for.
func (s *Store) Environments() source.Source { return s.ofEnvironments.Source() }

// Rollouts returns a source that wakes a Rollout after each fetch that it asked for with a
// time, whatever was found.
func (s *Store) Rollouts() source.Source { return s.ofRollouts.Source() }

// NeedLeaderElection returns true: only reconcilers ask.
func (s *Store) NeedLeaderElection() bool { return true }
