// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// link is how an informer reads Rollouts. The informer repeats what fails for as long as
// the context lasts. The link says once that Rollouts cannot be read, and ends the
// context if the user may not read at all.
type link struct {
	*program.Program
	stop context.CancelCauseFunc
	ctx  context.Context
	// fresh is true if the first list must not be older than its request.
	fresh bool
	// say tells the user that Rollouts can be read no more, or again.
	say func(sign show.Sign, format string, args ...any)

	mu sync.Mutex
	// succeeded has the verbs that were answered once. An API server that has just started
	// refuses them for a moment, because it knows no rights yet.
	succeeded map[string]bool
	lost      bool
}

// The verbs of a link.
const (
	verbList  = "list"
	verbWatch = "watch"
)

// newLink returns a link, and the context in which it must be used.
func newLink(ctx context.Context, p *program.Program) (context.Context, *link) {
	l := &link{Program: p, say: p.Err.Sentence, succeeded: map[string]bool{}}
	l.ctx, l.stop = context.WithCancelCause(ctx)
	return l.ctx, l
}

// rollouts reads Rollouts for an informer.
func (l *link) rollouts(c program.Cluster, where client.ListOptions) cache.ListerWatcher {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		all := where
		all.Raw = &raw
		return &all
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.RolloutList{}
			if l.fresh && raw.ResourceVersion == "0" {
				raw.ResourceVersion = ""
			}
			err := c.Client.List(ctx, list, options(raw))
			l.note(verbList, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Client.Watch(ctx, &v1alpha1.RolloutList{}, options(raw))
			l.note(verbWatch, err)
			return events, err
		},
	}
}

// errRefused is the cause of the end of a context.
type errRefused struct{ error }

// note notes how a request has ended.
func (l *link) note(verb string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil, apierrors.IsResourceExpired(err), apierrors.IsInvalid(err):
		return // the informer begins again with other options
	case err == nil:
		l.succeeded[verb] = true
		l.found(verb)
	case isRefusal(err) && !l.succeeded[verb]:
		l.stop(errRefused{fmt.Errorf("%s Rollouts: %w", verb, err)})
	case !l.lost:
		l.lost = true
		l.say(show.Warns, "Rollouts cannot be read for now, and the API server is asked again: %s", err)
	}
}

// found says that Rollouts can be read again. A list alone is not enough: what follows
// Rollouts is a watch.
func (l *link) found(verb string) {
	if l.lost && verb == verbWatch {
		l.lost = false
		l.say(show.Well, "Rollouts can be read again")
	}
}

// isRefusal reports whether an API server refuses a request, as opposed to failing.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// refused returns why the context was ended; nil if the user may read.
func (l *link) refused() error {
	var refused errRefused
	if errors.As(context.Cause(l.ctx), &refused) {
		return refused.error
	}
	return nil
}
