// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A request for a kind that is not served makes a mapper repeat the full discovery, under
// a lock that the whole process shares. A user who may write the status of a
// Kustomization can name any number of such kinds.
const (
	// absentFor is how long a kind that is not served is not asked for again.
	absentFor = time.Minute
	// mostAbsent is how many such kinds are asked for in that time.
	mostAbsent = 60
)

// errManyKinds means that too many kinds were asked for that are not served.
var errManyKinds = errors.New("too many kinds were asked for that the API server does not serve")

// served caches which kinds the API server serves, of those that were asked for.
type served struct {
	mu     sync.Mutex
	known  map[schema.GroupKind]bool
	absent map[schema.GroupKind]time.Time
}

// knows reports whether the API server is known to serve a kind.
func (s *served) knows(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[kind]
}

// ask returns an error if the kind must not be asked for now: it is known not to be
// served, or too many such kinds were asked for.
func (s *served) ask(kind schema.GroupKind, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[kind] {
		return nil
	}
	if _, absent := s.absent[kind]; !absent && len(s.absent) < mostAbsent {
		return nil
	}
	for other, since := range s.absent {
		if now.Sub(since) >= absentFor {
			delete(s.absent, other)
		}
	}
	switch _, absent := s.absent[kind]; {
	case absent:
		return &meta.NoKindMatchError{GroupKind: kind}
	case len(s.absent) >= mostAbsent:
		return errManyKinds
	}
	return nil
}

// answered records the answer of the API server.
func (s *served) answered(kind schema.GroupKind, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		if s.known == nil {
			s.known = map[schema.GroupKind]bool{}
		}
		s.known[kind] = true
	case meta.IsNoMatchError(err):
		if s.absent == nil {
			s.absent = map[schema.GroupKind]time.Time{}
		}
		s.absent[kind] = now
	}
}
