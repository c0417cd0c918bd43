// SPDX-License-Identifier: Apache-2.0

package verbs

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
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
)

type reconciling struct {
	*program
	source  bool
	timeout time.Duration
}

func newReconcile(p *program) *cobra.Command {
	r := &reconciling{program: p}
	cmd := &cobra.Command{
		Use: "reconcile NAME", Short: "Look at a Rollout now, and with --with-source scan its registry first",
		Args: oneName(0, "the name of a Rollout"), ValidArgsFunction: p.completeRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&r.source, "with-source", false, "let Flux scan the ImageRepository first")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 2*time.Minute, "how long to wait until it is done")
	return cmd
}

func (r *reconciling) run(ctx context.Context, name string) error {
	rollout, err := r.rollout(ctx, name)
	if err != nil {
		return err
	}
	c, err := r.connect(ctx)
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
func (r *reconciling) scan(ctx context.Context, c cluster, rollout *v1alpha1.Rollout) error {
	policy := &imagev1.ImagePolicy{}
	key := client.ObjectKey{Namespace: rollout.Namespace, Name: rollout.Spec.ReleasesImagePolicy.Name}
	if err := c.client.Get(ctx, key, policy); err != nil {
		return fmt.Errorf("read ImagePolicy %s: %w", key, err)
	}
	repository := &imagev1.ImageRepository{}
	key = imagepolicy.RepositoryOf(policy)
	if err := c.client.Get(ctx, key, repository); err != nil {
		return fmt.Errorf("read ImageRepository %s: %w", key, err)
	}
	return r.requested(ctx, c, repository, "ImageRepository", func() string { return repository.Status.LastHandledReconcileAt })
}

// requested asks for a reconciliation, and waits until it is handled.
func (r *reconciling) requested(ctx context.Context, c cluster, object client.Object, kind string, handled func() string) error {
	token := r.now().UTC().Format(time.RFC3339Nano)
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ReconcileRequestAnnotation] = token
	object.SetAnnotations(annotations)
	if err := c.client.Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("annotate %s %s: %w", kind, object.GetName(), err)
	}
	r.err.Sentence(show.Waits, "%s %s: waiting until it is reconciled", kind, object.GetName())
	for handled() != token {
		select {
		case <-ctx.Done():
			return exit{timeRanOut, fmt.Errorf("%s %s was not reconciled within %s: does its controller run", kind, object.GetName(), r.timeout)}
		case <-time.After(pollInterval):
		}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil && !isTransient(err) {
			return fmt.Errorf("read %s %s: %w", kind, object.GetName(), err)
		}
	}
	r.out.Sentence(show.Well, "%s %s is reconciled", kind, object.GetName())
	return nil
}

// pollInterval is how often an object is read while its controller is awaited.
const pollInterval = 300 * time.Millisecond

// isTransient reports whether reading again may help. Errors without a status come from
// the connection.
func isTransient(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
