// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// To ask for a kind that is not served costs a mapper all of discovery, under a lock that
// the whole process shares, and who may write the status of a Kustomization can name any
// number of them.
const (
	// absentFor is how long a kind that is not served is not asked for again.
	absentFor = time.Minute
	// mostAbsent is how many such kinds are asked for in that time.
	mostAbsent = 60
)

// errManyKinds means that too many kinds were asked for that are not served.
var errManyKinds = errors.New("too many kinds were asked for that the API server does not serve")

// served remembers which kinds the API server serves, as far as it was asked.
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

// ask returns whether there is an answer already: that the kind is not served, or that it
// must not be asked for now.
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

// answered remembers what the API server said.
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
