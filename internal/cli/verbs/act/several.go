// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// several is one change of each Rollout that is named, or that a selector selects.
type several struct {
	*changing
	selector string
}

// ofSeveral makes a verb one that changes Rollouts with one question.
func ofSeveral(cmd *cobra.Command, c *changing, ask asked) *cobra.Command {
	s := &several{changing: c}
	cmd.Use += " NAME... | -l SELECTOR"
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "the Rollouts of the namespace with these labels, as in kubectl")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case (len(args) == 0) == (s.selector == ""):
			return fmt.Errorf("say which Rollouts: their names, or -l SELECTOR; see: %s --help", cmd.CommandPath())
		case len(args) == 1:
			return s.changing.run(cmd.Context(), args[0], ask)
		case s.wait:
			return errors.New("--wait is for one Rollout")
		}
		return s.run(cmd.Context(), args, ask)
	}
	return cmd
}

func (s *several) run(ctx context.Context, names []string, ask asked) error {
	selector, err := labels.Parse(s.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if err := s.begin(); err != nil {
		return err
	}
	open, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	user := s.user(ctx, open)
	predicted, err := s.predictAll(ctx, open, names, selector, user, ask)
	if err != nil || len(predicted) == 0 {
		return err
	}
	if err := s.agreeToAll(ctx, predicted); err != nil {
		return err
	}
	for _, p := range predicted {
		name := p.from.GetName()
		err := s.insist(ctx, open, name, p, func() (*prediction, error) { return s.predict(ctx, open, name, user, ask) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// predictAll predicts the change of each Rollout. It says for which of them there is none;
// for all of them is an answer.
func (s *several) predictAll(ctx context.Context, open program.Cluster, names []string, selector labels.Selector, user string, ask asked) ([]*prediction, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	facts, err := s.Take(ctx, open, namespace)
	if err != nil {
		return nil, err
	}
	if names, err = s.chosen(ctx, facts, namespace, names, selector); err != nil {
		return nil, err
	}
	var all []*prediction
	var refused bool
	for _, name := range names {
		p, err := s.predictIn(ctx, facts, client.ObjectKey{Namespace: namespace, Name: name}, user, ask)
		var no program.Exit
		switch {
		case s.saysSo(name+": ", err):
		case errors.As(err, &no) && no.Code == program.No:
			s.Err.Sentence(show.Warns, "%s: %s", name, no.Err)
			refused = true
		case err != nil:
			return nil, err
		default:
			all = append(all, p)
		}
	}
	if len(all) == 0 && refused {
		return nil, program.Refuse("nothing is to be changed")
	}
	return all, nil
}

// chosen returns the given names, or those of the Rollouts that the selector selects.
func (s *several) chosen(ctx context.Context, facts client.Reader, namespace string, names []string, selector labels.Selector) ([]string, error) {
	if len(names) > 0 {
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	list := &v1alpha1.RolloutList{}
	if err := facts.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if len(names) == 0 {
		return nil, program.Refuse("no Rollout of namespace %s has the labels %s", namespace, s.selector)
	}
	return names, nil
}

// agreeToAll shows all effects, and asks once if a release goes out at once.
func (s *several) agreeToAll(ctx context.Context, all []*prediction) error {
	promotes, unread := false, program.Unread{}
	for _, p := range all {
		s.shows(p)
		promotes = promotes || p.promotes
		maps.Copy(unread, p.unread)
	}
	s.sayUnread(unread)
	if s.mustAsk(promotes) {
		return s.AskUser(ctx)
	}
	return nil
}
