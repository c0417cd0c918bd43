// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
)

type reconciling struct {
	*program.Program
	source  bool
	timeout time.Duration
	out     *program.Output
}

// NewReconcile returns the verb reconcile.
func NewReconcile(p *program.Program) *cobra.Command {
	r := &reconciling{Program: p}
	cmd := &cobra.Command{
		Use: "reconcile NAME", Short: "Look at a Rollout now, and with --with-source scan its registry first",
		Args: program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&r.source, "with-source", false, "let Flux scan the ImageRepository first")
	program.SpanVar(cmd.Flags(), &r.timeout, "timeout", 2*time.Minute, "how long to wait until it is done")
	r.out = program.NewObjects(cmd)
	return cmd
}

func (r *reconciling) run(ctx context.Context, name string) error {
	if err := r.out.Begin(r.Program); err != nil {
		return err
	}
	rollout, err := r.Rollout(ctx, name)
	if err != nil {
		return err
	}
	if rollout.Spec.Suspend {
		return program.Refuse("Rollout %s is suspended: nothing is reconciled until it is resumed\n%s", name, r.CommandLine(rollout.Namespace, "resume", name))
	}
	c, err := r.Connect(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	if r.source {
		if err := r.scan(ctx, c, rollout); err != nil {
			return err
		}
	}
	return r.requested(ctx, c, rollout, "Rollout", func() string { return rollout.Status.LastHandledReconcileAt })
}

// scan lets Flux scan the repository of the Rollout's policy.
func (r *reconciling) scan(ctx context.Context, c program.Cluster, rollout *v1alpha1.Rollout) error {
	policy := &imagev1.ImagePolicy{}
	key := client.ObjectKey{Namespace: rollout.Namespace, Name: rollout.Spec.ReleasesImagePolicy.Name}
	if err := c.Client.Get(ctx, key, policy); err != nil {
		return fmt.Errorf("read ImagePolicy %s: %w", key, err)
	}
	repository := &imagev1.ImageRepository{}
	key = imagepolicy.RepositoryOf(policy)
	if err := c.Client.Get(ctx, key, repository); err != nil {
		return fmt.Errorf("read ImageRepository %s: %w", key, err)
	}
	if repository.Spec.Suspend {
		return program.Refuse("ImageRepository %s is suspended: nothing is scanned until it is resumed\n%s", key,
			r.CommandLineOf("flux", key.Namespace, "resume", "image", "repository", key.Name))
	}
	return r.requested(ctx, c, repository, "ImageRepository", func() string { return repository.Status.LastHandledReconcileAt })
}

// requested asks for a reconciliation, and waits until it is handled.
func (r *reconciling) requested(ctx context.Context, c program.Cluster, object client.Object, kind string, handled func() string) error {
	token := r.Now().UTC().Format(time.RFC3339Nano)
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ReconcileRequestAnnotation] = token
	object.SetAnnotations(annotations)
	if err := c.Client.Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(program.FieldManager)); err != nil {
		return fmt.Errorf("annotate %s %s: %w", kind, object.GetName(), err)
	}
	r.Err.Sentence(show.Waits, "%s %s: waiting until it is reconciled", kind, object.GetName())
	for handled() != token {
		select {
		case <-ctx.Done():
			return program.Exit{Code: program.TimeRanOut, Err: fmt.Errorf("%s %s was not reconciled within %s: does its controller run?", kind, object.GetName(), r.timeout)}
		case <-time.After(pollInterval):
		}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil && !isTransient(err) {
			return fmt.Errorf("read %s %s: %w", kind, object.GetName(), err)
		}
	}
	r.Out.Sentence(show.Well, "%s %s is reconciled", kind, object.GetName())
	return r.out.PrintObject(object)
}

// pollInterval is how often an object is read while its controller is awaited.
const pollInterval = 300 * time.Millisecond

// isTransient reports whether reading again may help. Errors without a status come from
// the connection.
func isTransient(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
