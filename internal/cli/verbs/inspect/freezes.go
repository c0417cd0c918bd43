// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

// FreezeLists are the kinds of freezes in a namespace.
func FreezeLists() []client.ObjectList {
	return []client.ObjectList{&v1alpha1.RolloutGateList{}, &v1alpha1.RolloutScheduleList{}}
}

// FreezesOf returns the objects that the verb freeze has made; in all namespaces if the
// name is empty.
func FreezesOf(ctx context.Context, from client.Reader, namespace string, lists ...client.ObjectList) ([]client.Object, error) {
	var all []client.Object
	for _, list := range lists {
		if err := from.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.ManagedByLabel: request.FreezeManager}); err != nil {
			return nil, fmt.Errorf("list freezes: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, item.(client.Object))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list freezes: %w", err)
		}
	}
	return all, nil
}

// freezeAnswers are freezes, as -o shows them.
type freezeAnswers struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Freeze `json:"items"`
}

// Freeze is one freeze.
type Freeze struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Until is when it ends; nil if it does not end by itself.
	Until *metav1.Time `json:"until,omitempty"`
	// Over is true if it holds nothing any more.
	Over bool `json:"over,omitempty"`
	// Rollouts is how many it holds; nil if the controller has not counted them yet.
	Rollouts *int32 `json:"rollouts,omitempty"`
	Why      string `json:"why,omitempty"`
}

// FreezeOf returns what an object that the verb freeze has made holds at a time.
func FreezeOf(o client.Object, now time.Time) Freeze {
	a := Freeze{Kind: program.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), Why: o.GetAnnotations()[v1alpha1.DescriptionAnnotation]}
	if gate, isGate := o.(*v1alpha1.RolloutGate); isGate {
		a.Rollouts = new(int32(1))
		a.Over = gate.IsPassing() && gate.Spec.AllowedVersions == nil
		return a
	}
	schedule := gather.ScheduleOf(o)
	state, _ := schedule.Evaluate(now) // what cannot be evaluated is closed, without an end
	if a.Over = state.Open; !a.Over && !state.Next.IsZero() {
		a.Until = &metav1.Time{Time: state.Next}
	}
	if schedule.Status.ObservedGeneration > 0 {
		a.Rollouts = &schedule.Status.MatchingRollouts
	}
	return a
}

// End says when a freeze ends.
func (a Freeze) End(now time.Time, zone *time.Location) string {
	switch {
	case a.Over:
		return "over"
	case a.Until == nil:
		return "it is unfrozen"
	}
	return show.Moment(a.Until.Time, now, zone)
}

type listingFreezes struct {
	*program.Program
	out        *program.Output
	everywhere bool
}

// NewFreezes returns the verb freezes, an old word for freeze without arguments.
func NewFreezes(p *program.Program) *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{Use: "freezes", Short: "List what the verb freeze has made: until when, and why", Args: cobra.NoArgs, Hidden: true}
	out := program.NewOutput(cmd)
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the freezes of all namespaces")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return ListFreezes(cmd.Context(), p, out, everywhere) }
	return cmd
}

// ListFreezes lists what the verb freeze has made, in the namespace or everywhere.
func ListFreezes(ctx context.Context, p *program.Program, out *program.Output, everywhere bool) error {
	l := &listingFreezes{p, out, everywhere}
	objects, err := l.objects(ctx)
	if err != nil {
		return err
	}
	answers := freezeAnswers{TypeMeta: program.AnswerKind("FreezeList"), Items: []Freeze{}}
	for _, object := range objects {
		answers.Items = append(answers.Items, FreezeOf(object, l.Now()))
	}
	switch {
	case l.out.Is("name"):
		for _, a := range answers.Items {
			l.Program.Out.Line("%s.%s/%s", strings.ToLower(a.Kind), v1alpha1.GroupVersion.Group, a.Name)
		}
	case !l.out.IsText():
		return l.out.Print(l.Program, answers)
	case len(objects) == 0:
		l.Err.Line("no freezes found")
	default:
		l.table(answers).Write(l.Program.Out)
	}
	return nil
}

// objects returns the freezes of the namespace or of all, and those of the cluster.
func (l *listingFreezes) objects(ctx context.Context) ([]client.Object, error) {
	namespace, err := l.Namespace()
	if err != nil {
		return nil, err
	}
	if l.everywhere {
		namespace = ""
	}
	c, err := l.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inCluster, err := FreezesOf(ctx, c.Client, "", &v1alpha1.ClusterRolloutScheduleList{})
	if apierrors.IsForbidden(err) {
		l.Err.Sentence(show.Warns, "you may not list ClusterRolloutSchedules: freezes of the whole cluster are not shown")
	} else if err != nil {
		return nil, err
	}
	own, err := FreezesOf(ctx, c.Client, namespace, FreezeLists()...)
	return append(inCluster, own...), err
}

func (l *listingFreezes) table(answers freezeAnswers) show.Table {
	table := show.Table{Header: []string{"KIND", "NAME", "UNTIL", "ROLLOUTS", "WHY"}}
	if l.everywhere {
		table.Header = append([]string{"NAMESPACE"}, table.Header...)
	}
	for _, a := range answers.Items {
		count := "-"
		if a.Rollouts != nil {
			count = strconv.Itoa(int(*a.Rollouts))
		}
		row := []string{a.Kind, a.Name, a.End(l.Now(), l.Zone), count, a.Why}
		if l.everywhere {
			row = append([]string{program.OrDash(&a.Namespace)}, row...)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}
