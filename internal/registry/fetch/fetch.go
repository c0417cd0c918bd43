// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// requestedAt is the annotation by which users ask for a fetch.
const requestedAt = meta.ReconcileRequestAnnotation

// SourceOf returns what the report of an upstream must be about. The report of a [Result]
// may be about something else for a moment after the Environment has changed.
func SourceOf(e *environmentsv1.Environment, u environmentsv1.Upstream) report.Source {
	return report.Source{
		Application: e.Spec.Name, Environment: u.Environment, Cluster: u.Cluster, Namespace: u.Namespace, Rollout: u.Rollout,
	}
}

// memory is the report that was verified last.
type memory struct {
	report report.Report
	// digest is that of its manifest; empty if none was verified.
	digest string
	// limit is up to which limit the releases would be the same, and bytes is their size.
	limit, bytes int
	// keys is the fingerprint of the keys that it was verified with.
	keys string
	// at is when the last fetch that found it began.
	at time.Time
}

// replicasLag is how long the replicas of a registry may return an older report, after one of
// them has returned a newer one.
const replicasLag = 5 * time.Minute

// isLagging reports whether a report was refused that may be that of a replica that is
// behind: the newest one was read shortly before.
func (m memory) isLagging(known environmentsv1.UpstreamStatus, want report.Expected, err error, now time.Time) bool {
	var refusal *report.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != report.Outdated {
		return false
	}
	recent := func(read time.Time) bool { return !read.After(now) && now.Sub(read) < replicasLag }
	return m.report.Source == want.Source && m.report.Sequence == want.Sequence && recent(m.at) ||
		known.Sequence == want.Sequence && known.VerifiedTime != nil && recent(known.VerifiedTime.Time)
}

// expected returns what the next report must say to be used. Of an upstream that was moved
// to another cluster, the numbers may be lower, and those that only a key has signed that is
// not trusted any more do not count.
func (m memory) expected(e *environmentsv1.Environment, u environmentsv1.Upstream, keys report.TrustedKeys, now time.Time) report.Expected {
	want := report.Expected{Source: SourceOf(e, u), Latest: report.Latest(now)}
	trusted := keys.For(u.Cluster)
	for _, known := range environment.RecordOf(e, u).Keys {
		if trusted.Has(known.Key) {
			want.Sequence = max(want.Sequence, known.Sequence)
		}
	}
	if m.report.Source == want.Source && slices.ContainsFunc(m.report.SignedBy, trusted.Has) {
		want.Sequence = max(want.Sequence, m.report.Sequence)
	}
	return want
}

// known returns the digest of the report, if it would be verified again, and no more of it would
// be kept.
func (m memory) known(keys string, want report.Expected, limit int) string {
	if m.keys != keys || m.limit < limit || m.report.Source != want.Source || m.report.Sequence < want.Sequence {
		return ""
	}
	return m.digest
}

// finding is what a fetch has found.
type finding struct {
	// gone means that the Environment no longer has such an upstream.
	gone bool
	// interval is the longest pause that the Environment allows.
	interval time.Duration
	// source is what the report must be about.
	source report.Source
	// verified means that memory is what the registry has.
	verified bool
	memory   memory
	problem  *verdict.Problem
	// failed means that the registry, or what is needed to ask it, did not answer.
	failed bool
	// cause is the error behind the problem, for the log.
	cause error
	// busyFor is for how long the registry asked to wait.
	busyFor time.Duration
}

func (f finding) outcome(isNew bool) outcome {
	o := outcome{interval: f.interval, isNew: isNew, failed: f.failed}
	if f.verified && f.problem == nil {
		o.report = &f.memory.report
	}
	return o
}

// fetch reads the report of an upstream once.
func (s *Store) fetch(ctx context.Context, u Upstream, before memory) finding {
	e := &environmentsv1.Environment{}
	err := s.environments.Get(ctx, u.Environment, e, client.UnsafeDisableDeepCopy)
	spec := named(e, u.Name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return finding{interval: lastRetry, failed: true, cause: err, problem: unreadableBecause(u.Name, "its Environment could not be read")}
	case err != nil || spec == nil:
		return finding{gone: true}
	}
	s.observe(u, e)
	ctx, cancel := context.WithTimeout(ctx, gather.LongestFetch)
	defer cancel()
	f := s.fetchFrom(ctx, e, *spec, before, s.limitFor(u, e))
	f.interval, f.source = e.GetRequeueInterval(), SourceOf(e, *spec)
	return f
}

// named returns the upstream of an Environment whose report is in a registry; nil if there
// is none of this name.
func named(e *environmentsv1.Environment, name string) *environmentsv1.Upstream {
	if e.Spec.Backend.Type != environmentsv1.BackendOCI {
		return nil
	}
	all := e.GetUpstreams()
	i := slices.IndexFunc(all, func(u environmentsv1.Upstream) bool { return u.Environment == name && u.IsRemote() })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// observe records which Environment a fetch is about. It drops the upstreams that the
// Environment no longer has.
func (s *Store) observe(u Upstream, e *environmentsv1.Environment) {
	var names []string
	for _, other := range e.GetUpstreams() {
		if other.IsRemote() {
			names = append(names, other.Environment)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.upstreams[u]; k != nil {
		k.seen = versionOf(e)
	}
	s.keepOnly(u.Environment, names)
	s.admit()
}

// fetchFrom asks the registry. It keeps of the report what fits the limit.
func (s *Store) fetchFrom(ctx context.Context, e *environmentsv1.Environment, u environmentsv1.Upstream, before memory, limit int) finding {
	keys, none, err := s.keys(ctx, e)
	switch {
	case err != nil:
		return finding{failed: true, cause: err, problem: unreadableBecause(u.Environment, "the trusted keys could not be read")}
	case none != nil:
		return finding{failed: true, problem: none}
	}
	place, err := s.place(ctx, e, u)
	if err != nil {
		return unread(u, place, err)
	}
	want, fingerprint := before.expected(e, u, keys, s.clock.Now()), keys.Fingerprint()
	known := before.known(fingerprint, want, limit)
	stored, err := s.pull(ctx, place, known)
	switch {
	case err != nil:
		return unread(u, place, err)
	case known != "" && stored.Digest == known:
		return accept(e, u, before)
	}
	verified, err := report.Verify(stored.Envelope, keys, want)
	switch {
	case before.isLagging(environment.RecordOf(e, u), want, err, s.clock.Now()):
		return finding{failed: true, cause: err, problem: unreadableBecause(u.Environment, "the registry still returns an older report")}
	case err != nil:
		return refused(u, place, err)
	}
	reached := fit(&verified, limit)
	return accept(e, u, memory{report: verified, limit: reached, bytes: bytesOf(verified), digest: stored.Digest, keys: fingerprint})
}

// accept returns a report that was verified. It does not count if the Environment and the
// upstream come after each other.
func accept(e *environmentsv1.Environment, u environmentsv1.Upstream, m memory) finding {
	f := finding{verified: true, memory: m}
	after := func(r environmentsv1.Relationship) bool {
		return r.Environment == e.Spec.Environment && r.Type == environmentsv1.After
	}
	if u.Type == environmentsv1.After && slices.ContainsFunc(m.report.Upstreams, after) {
		f.problem = cycle(e, u)
	}
	return f
}

// unread returns what it means that a registry could not be asked or has no report.
func unread(u environmentsv1.Upstream, place registry.Place, err error) finding {
	f := finding{cause: err, problem: unreadable(u, place, err)}
	var busy *registry.Busy
	if errors.As(err, &busy) {
		f.busyFor = busy.After
	}
	f.failed = !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrNotReport)
	return f
}

// environment reads an Environment; nil if it cannot be read.
func (s *Store) environment(ctx context.Context, key types.NamespacedName) *environmentsv1.Environment {
	e := &environmentsv1.Environment{}
	if err := s.environments.Get(ctx, key, e, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return e
}
