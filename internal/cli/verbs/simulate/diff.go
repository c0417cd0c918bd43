// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

type comparing struct {
	*program.Program
	out        *program.Output
	everywhere bool
	// unread is what the user may not read of what is decided on.
	unread program.Unread
}

// Comparison is the answer of the verb diff.
type Comparison struct {
	metav1.TypeMeta `json:",inline"`
	// Rollouts are those that were compared, those that differ and those that do not.
	Rollouts []ComparedRollout `json:"rollouts"`
}

// ComparedRollout has what is decided about a Rollout before and after.
type ComparedRollout struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Differs   bool   `json:"differs"`
}

// NewDiff returns the verb diff.
func NewDiff(p *program.Program) *cobra.Command {
	c := &comparing{Program: p}
	cmd := &cobra.Command{
		Use: "diff -f FILE [NAME...]", Short: "Show which decisions a set of manifests would change",
		Long: `Compare what is decided now with what would be decided if these manifests were
applied: a schedule, a gate, a Rollout. It compares decisions, and not texts.

It looks at the Rollouts in the namespaces of the manifests. A manifest without a
namespace is in that of -n or of the context. A cluster-wide schedule or quarantine is
about all namespaces, or with -n about that one.

Exit code 0 if no decision differs, 2 if one does, and 1 if the comparison failed.
"kubectl diff" and "flux diff" are different: they end with 1 if something differs.`,
		Example: fmt.Sprintf(`  %[1]s diff -f nights.yaml
  %[1]s diff -f nights.yaml -A`, p.Called),
		ValidArgsFunction: p.CompleteRollouts,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	c.out = program.NewOutput(cmd)
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "compare the Rollouts of all namespaces")
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func (c *comparing) run(ctx context.Context, names []string) error {
	switch {
	case len(c.Files) == 0:
		return errors.New("name the manifests to compare with: -f FILE")
	case c.everywhere && len(names) > 0:
		return errors.New("names and -A do not go together")
	}
	answer, err := c.compareAll(ctx, names)
	if err != nil {
		return err
	}
	if c.unread.Any() {
		c.Err.Sentence(show.Warns, "you may not read %s: decided as if there were none", c.unread)
	}
	if !c.out.IsText() {
		err = c.out.Print(c.Program, answer)
	} else {
		c.text(answer)
	}
	if err == nil && answer.differs() {
		return program.Exit{Code: program.No}
	}
	return err
}

func (c Comparison) differs() bool {
	for _, r := range c.Rollouts {
		if r.Differs {
			return true
		}
	}
	return false
}

// compareAll compares the Rollouts of each namespace that the manifests are about.
func (c *comparing) compareAll(ctx context.Context, names []string) (Comparison, error) {
	answer := Comparison{TypeMeta: program.AnswerKind("Comparison"), Rollouts: []ComparedRollout{}}
	namespace, err := c.Namespace()
	if err != nil {
		return answer, err
	}
	scheme, _, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		return answer, err
	}
	open, err := c.Connect(ctx)
	if err != nil {
		return answer, err
	}
	laid, err := c.DecodeFiles(scheme, namespace)
	if err != nil {
		return answer, err
	}
	namespaces := c.namespaces(laid)
	for _, namespace := range namespaces {
		before, after, err := c.bothSides(ctx, open, namespace, laid)
		if err != nil {
			return answer, err
		}
		compared, err := c.compare(ctx, before, after, namespace, names)
		if err != nil {
			return answer, err
		}
		answer.Rollouts = append(answer.Rollouts, compared...)
	}
	return answer, c.nothing(ctx, open, answer, namespaces, names)
}

// namespaces returns the namespaces that manifests are about; the empty one is all of them.
func (c *comparing) namespaces(laid []client.Object) []string {
	var all []string
	for _, object := range laid {
		if namespace, is := object.(*corev1.Namespace); is {
			all = append(all, namespace.Name)
		} else {
			all = append(all, object.GetNamespace())
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	given := ptr.Deref(c.Kubeconfig.Namespace, "")
	switch everything := slices.Contains(all, ""); {
	case c.everywhere || everything && given == "":
		return []string{""}
	case everything:
		all[0] = given
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nothing returns an error if Rollouts that were named do not exist, and if nothing was
// compared at all.
func (c *comparing) nothing(ctx context.Context, open program.Cluster, answer Comparison, namespaces, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(answer.Rollouts, func(r ComparedRollout) bool { return r.Name == name }) {
			return c.NoSuchRollout(ctx, open.Client, namespaces[0], name)
		}
	}
	switch where := strings.Join(namespaces, ", "); {
	case len(answer.Rollouts) > 0:
		return nil
	case where == "":
		return errors.New("nothing was compared: there is no Rollout")
	default:
		return fmt.Errorf("nothing was compared: there is no Rollout in namespace %s", where)
	}
}

// bothSides returns what is there, and what would be there.
func (c *comparing) bothSides(ctx context.Context, open program.Cluster, namespace string, laid []client.Object) (before, after *snapshot.Snapshot, err error) {
	if before, err = c.Take(ctx, open, namespace, laid...); err != nil {
		return nil, nil, err
	}
	if laid, err = merged(ctx, before, laid); err != nil {
		return nil, nil, err
	}
	after, err = before.With(laid...)
	return before, after, err
}

// merged gives Rollouts and gates of manifests what only the cluster has: who they are,
// and their status. A manifest says nothing about that.
func merged(ctx context.Context, before *snapshot.Snapshot, laid []client.Object) ([]client.Object, error) {
	for _, object := range laid {
		there := object.DeepCopyObject().(client.Object)
		if err := before.Get(ctx, client.ObjectKeyFromObject(object), there); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", object.GetName(), err)
		} else if err != nil {
			continue
		}
		object.SetUID(there.GetUID())
		object.SetGeneration(there.GetGeneration())
		if rollout, ok := object.(*v1alpha1.Rollout); ok {
			rollout.Status = there.(*v1alpha1.Rollout).Status
		}
	}
	return laid, nil
}

// compare decides about each Rollout of a namespace on either side.
func (c *comparing) compare(ctx context.Context, before, after *snapshot.Snapshot, namespace string, names []string) ([]ComparedRollout, error) {
	all := &v1alpha1.RolloutList{}
	if err := after.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var compared []ComparedRollout
	for i := range all.Items {
		key := client.ObjectKeyFromObject(&all.Items[i])
		if len(names) > 0 && !slices.Contains(names, key.Name) {
			continue
		}
		was, err := c.decided(ctx, before, key)
		if err != nil {
			return nil, err
		}
		is, err := c.decided(ctx, after, key)
		if err != nil {
			return nil, err
		}
		compared = append(compared, ComparedRollout{key.Namespace, key.Name, was, is, was != is})
	}
	return compared, nil
}

// decided returns what is decided about a Rollout, in words.
func (c *comparing) decided(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey) (string, error) {
	if err := facts.Get(ctx, key, &v1alpha1.Rollout{}); client.IgnoreNotFound(err) == nil && err != nil {
		return "does not exist", nil
	}
	v, err := c.ViewIn(ctx, facts, key, c.Now())
	if err != nil {
		return "", err
	}
	if v.Unread.Any() && !v.Unread.OnlyHold() {
		return "", fmt.Errorf("decisions about Rollout %s cannot be compared: you may not read %s", key, v.Unread)
	}
	c.unread = v.Unread
	d := v.Visible
	switch {
	case v.Rollout.Spec.Suspend:
		return "suspended", nil
	case d.Action.Promotes():
		return d.Release.Tag + " goes now", nil
	case d.Problem != nil:
		return d.Problem.Message, nil
	case len(d.Candidates) == 0:
		return "no candidate", nil
	case d.Candidates[0].Eligible():
		return verdict.Waiting(d.Candidates[0].Release.Tag, d.Message), nil
	}
	return fmt.Sprintf("%s is held: %s", d.Candidates[0].Release.Tag, reasonsWithTimes(d.Candidates[0].Holds)), nil
}

func reasonsWithTimes(holds []verdict.Hold) string {
	all := make([]string, 0, len(holds))
	for _, hold := range holds {
		all = append(all, hold.Reason+": "+hold.Message)
	}
	return strings.Join(all, "; ")
}

func (c *comparing) text(answer Comparison) {
	p := c.Program.Out
	same := 0
	for _, r := range answer.Rollouts {
		if !r.Differs {
			same++
			continue
		}
		p.Line("%s", p.Bold(r.Namespace+"/"+r.Name))
		p.Line("  - %s", r.Before)
		p.Line("  + %s", r.After)
	}
	p.Line("%s, %d unchanged", verdict.Count(len(answer.Rollouts), "Rollout"), same)
}
