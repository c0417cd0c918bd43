// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// follow shows the Rollouts, and then each change, until the context ends.
func (g *getting) follow(ctx context.Context, names []string) error {
	if !g.out.Is("") && !g.out.Is("wide") {
		return errors.New("this format cannot be followed: leave out -w, or choose -o wide")
	}
	where, err := g.where(names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := g.Rollout(ctx, name); err != nil {
			return err
		}
	}
	c, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	changes := make(chan changed, program.PageSize)
	readable, link := newLink(ctx, g.Program)
	defer link.stop(nil)
	s := newScreen(g, names)
	if s.redraws() {
		link.say = s.note
	}
	go follow(readable, link.rollouts(c, where), changes)
	s.follow(readable, changes)
	return link.refused()
}

// changed is a Rollout as it is now; gone is true if it was deleted, or has other labels
// now. Without a Rollout, all that were there at first were sent.
type changed struct {
	rollout *v1alpha1.Rollout
	gone    bool
}

// follow sends each change of a Rollout until the context ends. It goes on after the API
// server was away.
func follow(ctx context.Context, from cache.ListerWatcher, changes chan<- changed) {
	send := func(object any, gone bool) {
		if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = deleted.Obj
		}
		rollout, _ := object.(*v1alpha1.Rollout)
		select {
		case changes <- changed{rollout, gone}:
		case <-ctx.Done():
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: from, ObjectType: &v1alpha1.Rollout{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { send(o, false) },
			UpdateFunc: func(_, o any) { send(o, false) },
			DeleteFunc: func(o any) { send(o, true) },
		},
	})
	go func() {
		if cache.WaitFor(ctx, "", controller.HasSyncedChecker()) {
			send(nil, false)
		}
	}()
	controller.RunWithContext(ctx)
}
