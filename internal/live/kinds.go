// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
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

// ErrManyKinds means that too many kinds were asked for that are not served. A later
// attempt may succeed.
var ErrManyKinds = errors.New("too many kinds were asked for that the API server does not serve")

// Kinds finds kinds that the API server serves, and remembers which it does not. The zero
// value is ready to use.
type Kinds struct {
	mu      sync.Mutex
	known   map[schema.GroupKind]bool
	absent  map[schema.GroupKind]time.Time
	unknown sync.Mutex // locked while a kind is asked for that may not be served
}

// Mapping returns how a kind is served. It prefers the given version, which may have been
// retired since. Use [meta.IsNoMatchError] to learn from the error that the kind is not
// served.
func (k *Kinds) Mapping(ctx context.Context, mapper meta.RESTMapper, kind schema.GroupVersionKind, now time.Time) (*meta.RESTMapping, error) {
	if ctx.Err() != nil { // a mapper does not check ctx
		return nil, ctx.Err()
	}
	if !k.isServed(kind.GroupKind()) { // a mapper would read all served kinds, which takes much memory
		k.unknown.Lock()
		defer k.unknown.Unlock()
	}
	if err := k.ask(kind.GroupKind(), now); err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = mapper.RESTMapping(kind.GroupKind())
	}
	k.answered(kind.GroupKind(), err, now)
	return mapping, err
}

// isServed reports whether the API server is known to serve a kind.
func (k *Kinds) isServed(kind schema.GroupKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[kind]
}

// ask returns an error if the kind must not be asked for now: it is known not to be
// served, or too many such kinds were asked for.
func (k *Kinds) ask(kind schema.GroupKind, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[kind] {
		return nil
	}
	if _, absent := k.absent[kind]; !absent && len(k.absent) < mostAbsent {
		return nil
	}
	for other, since := range k.absent {
		if now.Sub(since) >= absentFor {
			delete(k.absent, other)
		}
	}
	switch _, absent := k.absent[kind]; {
	case absent:
		return &meta.NoKindMatchError{GroupKind: kind}
	case len(k.absent) >= mostAbsent:
		return ErrManyKinds
	}
	return nil
}

// answered records the answer of the API server.
func (k *Kinds) answered(kind schema.GroupKind, err error, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		if k.known == nil {
			k.known = map[schema.GroupKind]bool{}
		}
		k.known[kind] = true
	case meta.IsNoMatchError(err):
		if k.absent == nil {
			k.absent = map[schema.GroupKind]time.Time{}
		}
		k.absent[kind] = now
	}
}
