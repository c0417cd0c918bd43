// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"context"
	"errors"
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func (s *Scanner) watchPolicies(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&imagev1.ImagePolicy{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}),
		)).
		Watches(&imagev1.ImageRepository{},
			handler.EnqueueRequestsFromMapFunc(policiesOf(mgr.GetClient())),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: foundOtherTags})).
		Complete(ctrlreconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			return s.applyOne(ctx, req.NamespacedName)
		}))
}

// foundOtherTags says that a scan changed more than its time.
func foundOtherTags(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*imagev1.ImageRepository), e.ObjectNew.(*imagev1.ImageRepository)
	if after.Status.LastScanResult == nil {
		return false
	}
	return before.Status.LastScanResult == nil ||
		before.Status.LastScanResult.Revision != after.Status.LastScanResult.Revision
}

// policiesOf finds the policies that choose from a repository's tags.
func policiesOf(c client.Client) handler.MapFunc {
	return func(ctx context.Context, repo client.Object) []ctrl.Request {
		var policies imagev1.ImagePolicyList
		if err := c.List(ctx, &policies); err != nil {
			return nil
		}
		var requests []ctrl.Request
		for i := range policies.Items {
			if repositoryKey(&policies.Items[i]) == client.ObjectKeyFromObject(repo) {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&policies.Items[i])})
			}
		}
		return requests
	}
}

func repositoryKey(policy *imagev1.ImagePolicy) client.ObjectKey {
	key := client.ObjectKey{Namespace: policy.Spec.ImageRepositoryRef.Namespace, Name: policy.Spec.ImageRepositoryRef.Name}
	if key.Namespace == "" {
		key.Namespace = policy.Namespace
	}
	return key
}

// applyOne applies a policy to the tags that are known.
func (s *Scanner) applyOne(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy := &imagev1.ImagePolicy{}
	if err := s.direct.Get(ctx, key, policy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return s.attend(ctx, policy, policy.Spec.Suspend, func(ctx context.Context, store func() error) outcome {
		if err := announce(policy, policy.Status.ObservedGeneration, store); err != nil {
			return outcome{err: err}
		}
		return s.choose(ctx, policy)
	})
}

func (s *Scanner) choose(ctx context.Context, policy *imagev1.ImagePolicy) outcome {
	repo := &imagev1.ImageRepository{}
	if err := s.direct.Get(ctx, repositoryKey(policy), repo); err != nil {
		return failed(policy, missingReason(err), fmt.Errorf("failed to get the referred ImageRepository: %w", describeMissing(policy, err)))
	}
	if _, err := imageName(repo); err != nil {
		return stalled(policy, imagev1.ImageURLInvalidReason, err)
	}
	tags := s.tags[repo.Status.CanonicalImageName]
	tag, err := latest(policy.Spec, tags)
	switch {
	case errors.As(err, &invalidPolicyError{}):
		return stalled(policy, "InvalidPolicy", err)
	case len(tags) == 0:
		conditions.MarkFalse(policy, meta.ReadyCondition, imagev1.DependencyNotReadyReason, "no tags in database")
		return outcome{done: policy.GetInterval() == 0}
	case err != nil:
		return failed(policy, metav1.StatusFailure, err)
	}
	if err := s.point(ctx, policy, repo, tag); err != nil {
		return outcome{err: err}
	}
	conditions.Delete(policy, meta.ReadyCondition)
	return outcome{again: ctrl.Result{RequeueAfter: policy.GetInterval()}, done: true, message: describe(policy)}
}

// missingReason and describeMissing word the absence of a repository.
func missingReason(err error) string {
	if apierrors.IsNotFound(err) {
		return imagev1.DependencyNotReadyReason
	}
	return metav1.StatusFailure
}

func describeMissing(policy *imagev1.ImagePolicy, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("referenced %s does not exist: %w", imagev1.ImageRepositoryKind, err)
}

// point makes the status name a tag, with its digest if the policy wants it.
func (s *Scanner) point(ctx context.Context, policy *imagev1.ImagePolicy, repo *imagev1.ImageRepository, tag string) error {
	ref := imagev1.ImageRef{Name: repo.Spec.Image, Tag: tag}
	known, reflection := policy.Status.LatestRef, policy.GetDigestReflectionPolicy()
	if reflection == imagev1.ReflectIfNotPresent && known != nil && known.Name == ref.Name && known.Tag == ref.Tag {
		ref.Digest = known.Digest
	}
	if ref.Digest == "" && reflection != imagev1.ReflectNever {
		digest, err := s.digest(ctx, repo, tag)
		if err != nil {
			return fmt.Errorf("failed fetching digest of %s: %w", ref.String(), err)
		}
		ref.Digest = digest
	}
	if known == nil || *known != ref {
		policy.Status.ObservedPreviousRef, policy.Status.LatestRef = known, &ref
	}
	return nil
}

func (s *Scanner) digest(ctx context.Context, repo *imagev1.ImageRepository, tag string) (string, error) {
	image, err := imageName(repo)
	if err != nil {
		return "", err
	}
	access, err := s.access(ctx, repo, image)
	if err != nil {
		return "", fmt.Errorf("failed to configure authentication options: %w", err)
	}
	head, err := remote.Head(image.Tag(tag), access...)
	if err != nil {
		return "", fmt.Errorf("failed fetching descriptor for %q: %w", image.Tag(tag), err)
	}
	return head.Digest.String(), nil
}

// describe is the message of a policy that has chosen.
func describe(policy *imagev1.ImagePolicy) string {
	chosen, before := policy.Status.LatestRef, policy.Status.ObservedPreviousRef
	message := fmt.Sprintf("Latest image tag for %s resolved to %s", chosen.Name, chosen.Tag)
	if chosen.Digest != "" {
		message += " with digest " + chosen.Digest
	}
	if before != nil && *before != *chosen {
		message += fmt.Sprintf(" (previously %s)", before)
	}
	return message
}
