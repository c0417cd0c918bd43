// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

const (
	// mostUpstreams is how many upstreams may be known before others must wait. Above it,
	// namespaces with few of them may have as many again.
	mostUpstreams = 10_000
	// mostUpstreamsOf is how many upstreams count as few for one namespace.
	mostUpstreamsOf = 2_000
	// keepFor is how long a report is kept in memory that nobody asks for any more. By then,
	// the status of its Environment has what it says.
	keepFor = 10 * time.Minute
)

// upstream is what is known of an upstream, and who wants to know more.
type upstream struct {
	result Result
	memory memory
	// by are the lookups of Rollouts.
	by   map[types.NamespacedName]lookups
	once once
	pace pace
	// asked is set if something was asked for since the last fetch began.
	asked bool
	// running is set while a fetch is under way. seen is the version of the Environment that
	// the last fetch has read, or reads; zero until it is known.
	running bool
	seen    version
	// ended is when the last fetch ended. No other one begins before notBefore.
	ended, notBefore time.Time
	// failing is set while the reason why it cannot be read is in the log.
	failing bool
}

// lookups are the times at which a Rollout wants a fetch, and whether it had that. The zero
// time means that a candidate waits.
type lookups map[time.Time]bool

// once is what the Environment asked for.
type once struct {
	asked bool
	// open is set until a fetch begins.
	open bool
	// at is when to fetch.
	at time.Time
}

// version tells whether a user has changed an Environment, or asked for a fetch.
type version struct {
	uid         types.UID
	generation  int64
	requestedAt string
}

func versionOf(e *environmentsv1.Environment) version {
	if e == nil {
		return version{}
	}
	return version{uid: e.UID, generation: e.Generation, requestedAt: strings.Clone(e.Annotations[requestedAt])}
}

// kept returns the same upstream with a copy of its name: that may be a part of an object
// in a cache, which would be kept as a whole.
func (u Upstream) kept() Upstream {
	u.Name = strings.Clone(u.Name)
	return u
}

// waits reports whether a candidate waits for the upstream.
func (k *upstream) waits() bool {
	for _, w := range k.by {
		if _, waits := w[time.Time{}]; waits {
			return true
		}
	}
	return false
}

// due returns when the next fetch should be. It returns false if nobody needs one.
func (k *upstream) due() (time.Time, bool) {
	var wanted []time.Time
	if k.once.asked {
		wanted = append(wanted, k.once.at)
	}
	if k.waits() {
		wanted = append(wanted, k.pace.next)
	}
	for _, w := range k.by {
		for at, had := range w {
			if !at.IsZero() && !had {
				wanted = append(wanted, at)
			}
		}
	}
	if len(wanted) == 0 {
		return time.Time{}, false
	}
	first := slices.MinFunc(wanted, time.Time.Compare)
	if first.Before(k.notBefore) {
		first = k.notBefore
	}
	return first, true
}

// next returns when there is something to do: to fetch, or to forget what nobody needs.
func (k *upstream) next() (time.Time, bool) {
	if at, wanted := k.due(); wanted {
		return at, true
	}
	return k.ended.Add(keepFor), len(k.by) == 0 && !k.ended.IsZero()
}

// byUpstream returns the upstreams of the lookups in their order, and the times of each.
func byUpstream(all []Lookup) ([]Upstream, map[Upstream]lookups) {
	var order []Upstream
	wanted := map[Upstream]lookups{}
	for _, w := range all {
		u := w.kept()
		if wanted[u] == nil {
			order, wanted[u] = append(order, u), lookups{}
		}
		wanted[u][w.At.Round(0).UTC()] = false // the same time is the same key
	}
	return order, wanted
}

// join records the lookups of a Rollout for an upstream. It returns false if there are too
// many upstreams already.
func (s *Store) join(u Upstream, rollout types.NamespacedName, wanted lookups) bool {
	k := s.open(u)
	if k == nil {
		s.rejected[caller{rollout, true}] = true
		return false
	}
	before := k.by[rollout]
	for at := range wanted {
		had, known := before[at]
		wanted[at] = had
		k.asked = k.asked || !known
		if at.IsZero() && !known {
			k.pace.begin(s.clock.Now())
		}
	}
	k.by[rollout] = wanted
	s.plan(u, k)
	return true
}

// leave drops the lookups of a Rollout for an upstream. What is known of it is kept for a
// while.
func (s *Store) leave(u Upstream, rollout types.NamespacedName) {
	if k := s.upstreams[u]; k != nil {
		delete(k.by, rollout)
		s.plan(u, k)
	}
}

// open returns what is known of an upstream; nil if there are too many others.
func (s *Store) open(u Upstream) *upstream {
	if k := s.upstreams[u]; k != nil {
		return k
	}
	if s.isFull(u.Environment.Namespace) {
		return nil
	}
	k := &upstream{by: map[types.NamespacedName]lookups{}}
	s.upstreams[u] = k
	s.ofEnvironment[u.Environment] = append(s.ofEnvironment[u.Environment], u.Name)
	s.ofNamespace[u.Environment.Namespace]++
	return k
}

// isFull reports whether no more upstreams of a namespace can be known now. One namespace
// may use the whole limit while no other needs it. Others may then use as much again.
func (s *Store) isFull(namespace string) bool {
	all, its := len(s.upstreams), s.ofNamespace[namespace]
	return all >= 2*mostUpstreams || all >= mostUpstreams && its >= mostUpstreamsOf
}

// admit wakes one of those that were rejected, if there is room. When it asks, it wakes
// the next one.
func (s *Store) admit() {
	if len(s.upstreams) >= 2*mostUpstreams {
		return
	}
	for c := range s.rejected {
		if s.isFull(c.Namespace) {
			continue
		}
		delete(s.rejected, c)
		if c.rollout {
			s.wakeRollout(c.NamespacedName)
		} else {
			s.wakeEnvironment(c.NamespacedName)
		}
		return
	}
}

// keepOnly drops the upstreams that an Environment no longer has.
func (s *Store) keepOnly(environment types.NamespacedName, names []string) {
	for _, name := range slices.Clone(s.ofEnvironment[environment]) {
		if !slices.Contains(names, name) {
			s.drop(Upstream{Environment: environment, Name: name})
		}
	}
}

func (s *Store) drop(u Upstream) {
	k := s.upstreams[u]
	if k == nil {
		return
	}
	for rollout := range k.by {
		s.asked[rollout] = slices.DeleteFunc(s.asked[rollout], func(asked Upstream) bool { return asked == u })
		if len(s.asked[rollout]) == 0 {
			delete(s.asked, rollout)
		}
	}
	delete(s.upstreams, u)
	s.count(u, k.memory.bytes, 0)
	of := slices.DeleteFunc(s.ofEnvironment[u.Environment], func(name string) bool { return name == u.Name })
	if s.ofEnvironment[u.Environment] = of; len(of) == 0 {
		delete(s.ofEnvironment, u.Environment)
	}
	if s.ofNamespace[u.Environment.Namespace]--; s.ofNamespace[u.Environment.Namespace] == 0 {
		delete(s.ofNamespace, u.Environment.Namespace)
	}
}
