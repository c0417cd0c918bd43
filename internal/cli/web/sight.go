// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sight is whose Rollouts a viewer sees.
type Sight struct {
	everything bool
	namespaces map[string]bool
}

// Everything sees all rows.
func Everything() Sight { return Sight{everything: true} }

// Sees reports whether the Rollouts of a namespace are seen.
func (s Sight) Sees(namespace string) bool { return s.everything || s.namespaces[namespace] }

// Namespaces returns the namespaces that are seen, sorted; an empty name for all of them.
func (s Sight) Namespaces() []string {
	if s.everything {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(s.namespaces))
}

// suffix tells revisions apart that are of different rights.
func (s Sight) suffix() string {
	if s.everything {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(s.Namespaces(), "/")))
	return ":" + hex.EncodeToString(sum[:8])
}

const (
	// rightsLast is how long an answer about rights is used. A stream asks again at its next
	// beat: after a minute at most.
	rightsLast = 45 * time.Second
	// askedAtOnce is how many namespaces are asked for at a time.
	askedAtOnce = 16
)

// Rights are those of a viewer to list Rollouts. They are asked for with the credentials of
// the viewer, and are of one session alone.
type Rights struct {
	// May asks whether the viewer may list the Rollouts of a namespace; of all of them if it
	// has no name.
	May   func(ctx context.Context, namespace string) (bool, error)
	Board *Board
	Now   func() time.Time

	mu      sync.Mutex
	asked   time.Time
	answers map[string]bool
}

// Sight returns what the viewer sees. Whoever cannot be asked for sees nothing: it is an
// error then.
func (r *Rights) Sight(ctx context.Context) (Sight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, known := r.Now(), r.answers
	if now.Sub(r.asked) >= rightsLast || known == nil {
		known = map[string]bool{}
	}
	if err := r.ask(ctx, known, ""); err != nil {
		return Sight{}, err
	}
	if known[""] {
		r.keep(known, now)
		return Everything(), nil
	}
	if err := r.ask(ctx, known, slices.Collect(maps.Keys(r.Board.Namespaces()))...); err != nil {
		return Sight{}, err
	}
	r.keep(known, now)
	seen := maps.Clone(known)
	maps.DeleteFunc(seen, func(_ string, may bool) bool { return !may })
	return Sight{namespaces: seen}, nil
}

// keep keeps answers. Their age is that of the oldest one.
func (r *Rights) keep(answers map[string]bool, now time.Time) {
	if len(r.answers) == 0 || now.Sub(r.asked) >= rightsLast {
		r.asked = now
	}
	r.answers = answers
}

// ask adds the answers that are not known.
func (r *Rights) ask(ctx context.Context, known map[string]bool, namespaces ...string) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for _, namespace := range namespaces {
		mu.Lock()
		_, is := known[namespace]
		mu.Unlock()
		if is {
			continue
		}
		group.Go(func() error {
			may, err := r.May(ctx, namespace)
			mu.Lock()
			defer mu.Unlock()
			if known[namespace] = may; err != nil {
				delete(known, namespace)
			}
			return err
		})
	}
	return group.Wait()
}
