// SPDX-License-Identifier: Apache-2.0

// Package create has the verb create: it writes what an application needs so that a Rollout
// promotes its releases, or prints it as YAML for Git.
//
//	create.go    what each of its verbs does: look, check, ask, apply
//	rollout.go   a Rollout, and what is missing around it
//	target.go    the field of a Flux object that the Rollout writes
//	handover.go  the steps for a field that Git sets today
//	gate.go      a RolloutGate
//	schedule.go  a RolloutSchedule
//	window.go    times as users write them
//	check.go     what lint and explain say of the result
//	manifest.go  objects as they are sent and printed
package create

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// NewCreate groups the verbs that create objects.
func NewCreate(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Create a Rollout with what it needs, a gate or a schedule",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRollout(p), newGate(p), newSchedule(p))
	return cmd
}

// creating is what all verbs of this package do: look, check what they would create, and
// create it or print it.
type creating struct {
	*program.Program
	export, yes bool
	dryRun      string
	labels      map[string]string
	// local is true if --export needs no cluster.
	local bool
	// laid are objects that will be there, so that what they refer to is read as well.
	laid []client.Object
}

// newCreating adds the flags that all of them have.
func newCreating(p *program.Program, cmd *cobra.Command) *creating {
	c := &creating{Program: p}
	flags := cmd.Flags()
	flags.BoolVar(&c.export, "export", false, "write YAML for Git to the output, and nothing to the cluster")
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	flags.StringVar(&c.dryRun, "dry-run", "", "client: only say what would happen; server: send the objects, but store nothing")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.StringToStringVar(&c.labels, "label", nil, "labels of what is created: KEY=VALUE")
	cmd.Args, cmd.ValidArgsFunction = program.OneName(0, "a name for the new object"), cobra.NoFileCompletions
	return c
}

// complete completes the values of flags.
func complete(cmd *cobra.Command, flags map[string]cobra.CompletionFunc) {
	for name, of := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, of) // the flag exists
	}
}

const (
	dryRunClient = "client"
	dryRunServer = "server"
)

// plan is what a verb creates.
type plan struct {
	// objects are created, in this order. Those that exist already are not.
	objects []client.Object
	// annotated is a target as it will be, and annotation what is sent of it; nil if Git must
	// have it.
	annotated  client.Object
	annotation *manifest
	// git is what Git must have of the target: its manifest for --export, and else what is to
	// be added there.
	git []manifest
	// external are objects that exist elsewhere.
	external []lint.External
	// effect says what the objects do, and next what is to do after that.
	effect func(ctx context.Context, after *world) (string, error)
	next   []string
	// asks is true if a release may go out.
	asks bool
}

// all returns what will be there.
func (p *plan) all() []client.Object {
	if p.annotated == nil {
		return p.objects
	}
	return append(slices.Clone(p.objects), p.annotated)
}

// run makes a plan from what is there, checks it, and carries it out.
func (c *creating) run(ctx context.Context, planned func(context.Context, *world) (*plan, error)) error {
	if !slices.Contains([]string{"", dryRunClient, dryRunServer}, c.dryRun) {
		return fmt.Errorf("--dry-run is client or server, not %q", c.dryRun)
	}
	w, err := c.look(ctx)
	if err != nil {
		return err
	}
	p, err := planned(ctx, w)
	if err != nil {
		return err
	}
	if c.export {
		return c.print(ctx, w, p)
	}
	if err := c.missing(ctx, w, p); err != nil {
		return err
	}
	all, err := w.sent(p)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		c.Err.Sentence(show.Well, "nothing is missing: nothing was sent")
		return c.after(p)
	}
	return c.carryOut(ctx, w, p, all)
}

// missing leaves what has to be created. An object that exists is never overwritten: it is as
// it would be created, or the verb ends.
func (c *creating) missing(ctx context.Context, w *world, p *plan) error {
	var missing []client.Object
	for _, object := range p.objects {
		wanted, err := w.manifestOf(object)
		if err != nil {
			return err
		}
		found, err := w.stored(ctx, wanted)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, object)
			continue
		case err != nil:
			return err
		}
		if !covers(wanted.Object["spec"], found.Object["spec"]) {
			return program.Refuse("%s exists already with another spec, and is not overwritten: change it where it comes from, or choose another name", wanted)
		}
		c.Err.Sentence(show.Well, "%s is there already", wanted)
	}
	p.objects = missing
	return nil
}

// carryOut shows what is created, asks, and creates it. Everything is sent twice: the API
// server checks all of it before it stores the first object.
func (c *creating) carryOut(ctx context.Context, w *world, p *plan, all []manifest) error {
	if err := c.foretell(ctx, w, p, all); err != nil || c.dryRun == dryRunClient {
		return err
	}
	if p.asks && !c.yes && c.dryRun == "" {
		if err := c.AskUser(ctx); err != nil {
			return err
		}
	}
	if err := c.apply(ctx, w, p, all, client.DryRunAll); err != nil {
		return fmt.Errorf("nothing was created: %w", err)
	}
	if c.dryRun == dryRunServer {
		c.Err.Sentence(show.Well, "the API server would take it (dry run: nothing was stored)")
		return nil
	}
	if err := c.apply(ctx, w, p, all); err != nil {
		return err
	}
	for _, each := range all {
		c.Err.Sentence(show.Well, "%s: %s", each, map[bool]string{true: "annotated", false: "created"}[p.isAnnotation(each)])
	}
	return c.after(p)
}

// isAnnotation reports whether a manifest has only the annotations of the target.
func (p *plan) isAnnotation(m manifest) bool {
	return p.annotation != nil && m.String() == p.annotation.String()
}

// annotator owns the annotations of targets. Were it the owner of the whole target, which may
// have been created here, the API server would remove what is not sent again.
const annotator = program.FieldManager + "-annotations"

// apply sends the objects as one who owns their fields. It does not force: where another
// field manager has another value, the API server refuses.
func (c *creating) apply(ctx context.Context, w *world, p *plan, all []manifest, options ...client.ApplyOption) error {
	for _, each := range all {
		owner := client.FieldOwner(program.FieldManager)
		if p.isAnnotation(each) {
			owner = annotator
		}
		options := append(slices.Clone(options), owner)
		if err := w.open.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(each.DeepCopy()), options...); err != nil {
			return fmt.Errorf("%s: %w", each, err)
		}
	}
	return nil
}

// after prints what belongs to Git, and what is to do next.
func (c *creating) after(p *plan) error {
	for _, step := range p.next {
		first, rest, more := strings.Cut(step, "\n")
		c.Err.Sentence(show.Do, "%s", first)
		if more {
			for line := range strings.Lines(rest) { // to be copied: without an indent
				c.Err.Line("%s", strings.TrimSuffix(line, "\n"))
			}
		}
	}
	if c.export {
		return nil
	}
	file, err := yamlOf(p.git)
	if err == nil {
		_, err = c.Out.Out.Write(file)
	}
	return err
}

// name names an object that is created.
func (c *creating) name(object client.Object, namespace, name string) {
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(c.labels)
}

// describe stores why an object is there, for those whose releases it holds.
func describe(object client.Object, why string) {
	if why != "" {
		object.SetAnnotations(map[string]string{v1alpha1.DescriptionAnnotation: why})
	}
}
