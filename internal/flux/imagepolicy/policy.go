// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"context"
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Offer contains the releases that an ImagePolicy offers, and the location of its images.
type Offer struct {
	releases.Policy
	// Repository is the ImageRepository of the policy. It is nil if it cannot be read, or
	// if the policy's namespace may not use it. Nothing is offered then.
	Repository *imagev1.ImageRepository
}

// Reader reads the offers of ImagePolicies.
type Reader struct {
	// Client reads ImagePolicies, ImageRepositories and Namespaces.
	Client client.Reader
	// NoCrossNamespaceRefs refuses policies whose ImageRepository is in another
	// namespace, even if the spec.accessFrom of the repository allows it.
	NoCrossNamespaceRefs bool
}

// Read returns the offer of an ImagePolicy. Anything wrong with it is a Problem in the
// offer. An error is returned in addition only if a retry may help.
func (r Reader) Read(ctx context.Context, key types.NamespacedName) (Offer, error) {
	policy := &imagev1.ImagePolicy{}
	err := r.Client.Get(ctx, key, policy, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return unusable(key.Name, v1alpha1.ImagePolicyNotFoundReason, fmt.Sprintf(
			"ImagePolicy %s does not exist: create it in this namespace, or correct spec.releasesImagePolicy.name", key)), nil
	case err != nil:
		return unusable(key.Name, v1alpha1.ImagePolicyUnreadableReason,
			fmt.Sprintf("ImagePolicy %s could not be read%s", key, because(err))), fmt.Errorf("get ImagePolicy %s: %w", key, err)
	case r.NoCrossNamespaceRefs && RepositoryOf(policy).Namespace != key.Namespace:
		return unusable(key.Name, v1alpha1.AccessDeniedReason, fmt.Sprintf(
			"ImagePolicy %s refers to ImageRepository %s, but references across namespaces are not allowed: "+
				"create an ImageRepository in the namespace of the policy", key, RepositoryOf(policy))), nil
	}
	order, err := releases.NewOrder(orderOf(policy))
	if err != nil {
		return unusable(key.Name, v1alpha1.InvalidImagePolicyReason,
			fmt.Sprintf("ImagePolicy %s cannot be used: %v", key, err)), nil
	}
	offer := Offer{Policy: releases.Policy{Name: policy.Name, Order: order, Latest: latestOf(policy), LatestImage: latestImageOf(policy)}}
	err = r.readRepository(ctx, policy, &offer)
	if !offer.Blocking {
		complainPolicy(&offer, policy) // a missing release often follows from a problem of the repository
	}
	return offer, err
}

// RepositoryOf returns the ImageRepository whose tags the policy ranks.
func RepositoryOf(policy *imagev1.ImagePolicy) types.NamespacedName {
	ref := policy.Spec.ImageRepositoryRef
	if ref.Namespace == "" {
		return types.NamespacedName{Namespace: policy.Namespace, Name: ref.Name}
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// readRepository completes the offer with the result of the last scan, or with the reason
// why the registry cannot be scanned. It shows nothing of an ImageRepository that the
// policy's namespace may not use, not even whether it exists.
func (r Reader) readRepository(ctx context.Context, policy *imagev1.ImagePolicy, offer *Offer) error {
	key := RepositoryOf(policy)
	lets, err := r.access(ctx, policy.Namespace, key)
	if err != nil {
		return failed(offer, key, err)
	}
	repository := &imagev1.ImageRepository{}
	err = r.Client.Get(ctx, key, repository, client.UnsafeDisableDeepCopy)
	switch absent := apierrors.IsNotFound(err); {
	case err != nil && !absent:
		return failed(offer, key, fmt.Errorf("get ImageRepository %s: %w", key, err))
	case !lets(repository):
		deny(offer, policy)
	case absent:
		complain(offer, fmt.Sprintf("ImageRepository %s does not exist: create it, or correct spec.imageRepositoryRef of ImagePolicy %s",
			key, policy.Name))
	default:
		show(offer, repository, policy.Namespace)
	}
	return nil
}

// failed reports only that reading an ImageRepository failed. This may happen before it
// is known who may use it.
func failed(offer *Offer, key types.NamespacedName, err error) error {
	complain(offer, fmt.Sprintf("ImageRepository %s could not be read", key))
	return err
}

// because returns what is wrong with an object that cannot be decoded.
func because(err error) string {
	if object := unreadable.Because(err); object != nil {
		return ": " + object.Cause
	}
	return ""
}

// deny blocks every promotion. Its message is the same whether the ImageRepository does
// not exist or does not allow the namespace, because this namespace may not know which is
// true.
func deny(offer *Offer, policy *imagev1.ImagePolicy) {
	offer.Blocking = true
	offer.Problem = &verdict.Problem{Reason: v1alpha1.AccessDeniedReason, Message: fmt.Sprintf(
		"ImagePolicy %s may not use ImageRepository %s: it does not exist, or its spec.accessFrom does not let in namespace %s; "+
			"correct spec.imageRepositoryRef, or have the namespace added to spec.accessFrom",
		client.ObjectKeyFromObject(policy), RepositoryOf(policy), policy.Namespace)}
}

func show(offer *Offer, repository *imagev1.ImageRepository, namespace string) {
	offer.Repository = repository
	offer.Image = imagename.Canonical(repository.Spec.Image)
	if repository.Spec.Suspend {
		suspended(offer, "ImageRepository "+nameIn(namespace, repository))
	}
	if complaint := complaintOf(repository.Status.Conditions); complaint != "" {
		complain(offer, fmt.Sprintf("ImageRepository %s cannot scan the registry: %s; check its spec.image, the registry and its credentials",
			client.ObjectKeyFromObject(repository), complaint))
	}
	if scan := repository.Status.LastScanResult; scan != nil {
		offer.Scanned, offer.Complete = scan.LatestTags, scan.TagCount <= len(scan.LatestTags)
	}
}

// access returns a function that reports whether a namespace may use an ImageRepository
// of that name, by the rules of Flux: its own namespace may, others if spec.accessFrom
// selects them. It reads everything that it needs before the ImageRepository is read, so
// a failure reveals nothing about it.
func (r Reader) access(ctx context.Context, namespace string, key types.NamespacedName) (func(*imagev1.ImageRepository) bool, error) {
	if namespace == key.Namespace {
		return func(*imagev1.ImageRepository) bool { return true }, nil
	}
	of := &metav1.PartialObjectMetadata{}
	of.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: namespace}, of); err != nil {
		return nil, fmt.Errorf("get Namespace %s: %w", namespace, err)
	}
	return func(repository *imagev1.ImageRepository) bool {
		return accessOf(repository).Admits(of.Labels)
	}, nil
}

// accessOf converts spec.accessFrom, which has the same form and meaning as our own type.
func accessOf(repository *imagev1.ImageRepository) *v1alpha1.AccessFrom {
	from := repository.Spec.AccessFrom
	if from == nil {
		return nil
	}
	access := &v1alpha1.AccessFrom{}
	for _, selector := range from.NamespaceSelectors {
		access.NamespaceSelectors = append(access.NamespaceSelectors, v1alpha1.NamespaceSelector(selector))
	}
	return access
}

// complainPolicy records what is wrong with the policy. While the policy is not ready,
// its last release stays on offer, because Flux keeps it too.
func complainPolicy(offer *Offer, policy *imagev1.ImagePolicy) {
	if policy.Spec.Suspend {
		suspended(offer, "ImagePolicy "+policy.Name)
	}
	if complaint := complaintOf(policy.Status.Conditions); complaint != "" && !willFollow(offer, policy) {
		complain(offer, fmt.Sprintf("ImagePolicy %s is not ready: %s", policy.Name, complaint))
	}
	if offer.Latest == nil || offer.Order.Kind() != releases.BySemver || offer.Order.Comparable(offer.Latest.Tag) {
		return
	}
	offer.Problem = &verdict.Problem{
		Reason: v1alpha1.InvalidReleaseTagReason,
		Message: fmt.Sprintf("ImagePolicy %s orders by semver but names tag %q, which is not a semantic version: correct its range or filterTags",
			policy.Name, offer.Latest.Tag),
	}
	offer.Latest = nil
}

// willFollow reports whether a policy is not ready only because it was evaluated before
// the first scan of its ImageRepository, or before Flux had loaded the tags after a
// restart. Flux evaluates it again within half a minute, and no user has to act.
func willFollow(offer *Offer, policy *imagev1.ImagePolicy) bool {
	ready := apimeta.FindStatusCondition(policy.Status.Conditions, meta.ReadyCondition)
	if ready.Reason != meta.DependencyNotReadyReason || offer.Repository == nil {
		return false
	}
	scan := offer.Repository.Status.LastScanResult
	return scan == nil && !offer.Repository.Spec.Suspend || scan != nil && scan.TagCount > 0
}

// suspended records that Flux looks for no releases, because a user wants that, or has
// forgotten it. Other problems stay as they are until then.
func suspended(offer *Offer, object string) {
	message := object + " is suspended: new releases are not seen; resume it"
	if problem := offer.Problem; problem != nil && problem.Reason == v1alpha1.SuspendedReason {
		message = problem.Message + "; " + message
	}
	offer.Problem = &verdict.Problem{Reason: v1alpha1.SuspendedReason, Message: message}
}

// nameIn returns the name of an object, with its namespace if that is another one.
func nameIn(namespace string, o client.Object) string {
	if o.GetNamespace() == namespace {
		return o.GetName()
	}
	return client.ObjectKeyFromObject(o).String()
}

// complain keeps only the first complaint.
func complain(offer *Offer, message string) {
	if offer.Problem == nil {
		offer.Problem = &verdict.Problem{Reason: v1alpha1.ImagePolicyNotReadyReason, Message: message}
	}
}

func complaintOf(conditions []metav1.Condition) string {
	ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return ready.Message
}

func unusable(policy, reason, message string) Offer {
	return Offer{Policy: releases.Policy{
		Name:     policy,
		Problem:  &verdict.Problem{Reason: reason, Message: message},
		Blocking: true,
	}}
}

func latestOf(policy *imagev1.ImagePolicy) *v1alpha1.VersionInfo {
	ref := policy.Status.LatestRef
	if ref == nil || ref.Tag == "" {
		return nil
	}
	release := &v1alpha1.VersionInfo{Tag: ref.Tag}
	if ref.Digest != "" {
		release.Digest = &ref.Digest
	}
	return release
}

func latestImageOf(policy *imagev1.ImagePolicy) string {
	if ref := policy.Status.LatestRef; ref != nil && ref.Name != "" {
		return imagename.Canonical(ref.Name)
	}
	return ""
}

func orderOf(policy *imagev1.ImagePolicy) releases.OrderSpec {
	spec := releases.OrderSpec{Kind: releases.ByAppearance}
	switch choice := policy.Spec.Policy; {
	case choice.SemVer != nil:
		spec.Kind, spec.Range = releases.BySemver, choice.SemVer.Range
	case choice.Numerical != nil:
		spec.Kind, spec.Descending = releases.ByNumber, choice.Numerical.Order == imagePolicyDescending
	case choice.Alphabetical != nil:
		spec.Kind, spec.Descending = releases.ByAlphabet, choice.Alphabetical.Order == imagePolicyDescending
	}
	if tags := policy.Spec.FilterTags; tags != nil {
		spec.Pattern, spec.Extract = tags.Pattern, tags.Extract
	}
	return spec
}

// imagePolicyDescending is the order in which the latest tag is the lowest one.
const imagePolicyDescending = "desc"
