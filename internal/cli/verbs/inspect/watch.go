// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

type watching struct {
	*program.Program
	everywhere, moving, plain bool
}

// NewWatch returns the verb watch.
func NewWatch(p *program.Program) *cobra.Command {
	w := &watching{Program: p}
	cmd := &cobra.Command{
		Use: "watch [NAME...]", Short: "Follow Rollouts while they deploy and bake, until you press Ctrl-C",
		Long: `Follow Rollouts. On a terminal the lines are drawn again in place; elsewhere, and with
--plain, each change is a new line.`,
		ValidArgsFunction: p.CompleteRollouts,
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&w.everywhere, "all-namespaces", "A", false, "follow the Rollouts of all namespaces")
	cmd.Flags().BoolVar(&w.moving, "moving", false, "only those that deploy or bake")
	cmd.Flags().BoolVar(&w.plain, "plain", false, "a line for each change, also on a terminal")
	return cmd
}

func (w *watching) run(ctx context.Context, names []string) error {
	if w.everywhere && len(names) > 0 {
		return errors.New("names and -A do not go together")
	}
	for _, name := range names {
		if _, err := w.Rollout(ctx, name); err != nil {
			return err
		}
	}
	namespace, err := w.Namespace()
	if err != nil {
		return err
	}
	if w.everywhere {
		namespace = ""
	}
	c, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	changes := make(chan changed, program.PageSize)
	readable, link := newLink(ctx, w.Program)
	defer link.stop(nil)
	s := newScreen(w, names)
	if s.redraws() {
		link.say = s.note
	}
	go follow(readable, link.rollouts(c, client.ListOptions{Namespace: namespace}), changes)
	s.follow(readable, changes)
	return link.refused()
}

// changed is a Rollout as it is now; gone is true if it was deleted.
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
		if rollout, ok := object.(*v1alpha1.Rollout); ok {
			select {
			case changes <- changed{rollout, gone}:
			case <-ctx.Done():
			}
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
	controller.RunWithContext(ctx)
}
