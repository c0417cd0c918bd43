// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// WithConsumersElsewhere adds the names of what consumes the Repositories among targets
// from other namespaces. Only the names are of interest: any namespace may refer to any
// source, and its state must not decide about a Rollout of another one.
func WithConsumersElsewhere(ctx context.Context, reader client.Reader, targets []Target, helmReleases bool) ([]Target, error) {
	var all []Target
	for _, t := range targets {
		if t.Repository != nil {
			names, err := elsewhere(ctx, reader, RefTo(t.Repository), helmReleases)
			if err != nil {
				return nil, err
			}
			byArtifacts, err := elsewhereByArtifacts(ctx, reader, t, helmReleases)
			if err != nil {
				return nil, err
			}
			t.Elsewhere = slices.Compact(slices.Sorted(slices.Values(append(names, byArtifacts...))))
		}
		all = append(all, t)
	}
	return all, nil
}

// elsewhere returns the names of what consumes a Repository from other namespaces,
// sorted.
func elsewhere(ctx context.Context, reader client.Reader, repository Ref, helmReleases bool) ([]string, error) {
	kustomizations, charts := &kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{}
	if err := listElsewhere(ctx, reader, kustomizations, ForeignSourceIndex, repository); err != nil {
		return nil, fmt.Errorf("list Kustomizations of other namespaces: %w", err)
	}
	if helmReleases {
		if err := listElsewhere(ctx, reader, charts, ForeignChartIndex, repository); err != nil {
			return nil, fmt.Errorf("list HelmReleases of other namespaces: %w", err)
		}
	}
	var found []Target
	for i := range kustomizations.Items {
		found = append(found, Target{Kustomization: &kustomizations.Items[i]})
	}
	for i := range charts.Items {
		found = append(found, Target{HelmRelease: &charts.Items[i]})
	}
	return namesOf(slices.DeleteFunc(found, func(t Target) bool { return t.isDeleting() || !t.takesElsewhere(repository) })), nil
}

// takesElsewhere reports whether the target consumes a Repository of another namespace.
func (t Target) takesElsewhere(repository Ref) bool {
	ref, ok := ConsumedElsewhere(t.Object())
	return ok && ref == repository
}

// ConsumedBy returns the Repository that a Kustomization or HelmRelease consumes, and whether
// there is one.
func ConsumedBy(o client.Object) (Ref, bool) {
	switch o := o.(type) {
	case *kustomizev1.Kustomization:
		return SourceOf(o)
	case *helmv2.HelmRelease:
		return ChartOf(o)
	}
	return Ref{}, false
}

// ConsumedElsewhere returns the Repository of another namespace that a Kustomization or
// HelmRelease consumes, and whether there is one.
func ConsumedElsewhere(o client.Object) (Ref, bool) {
	key, ok := ConsumedBy(o)
	return key, ok && key.Namespace != o.GetNamespace()
}

// listElsewhere lists what consumes a Repository from other namespaces. What cannot be
// decoded still has a name.
func listElsewhere(ctx context.Context, reader client.Reader, list client.ObjectList, index string, repository Ref) error {
	return reader.List(ctx, list, client.MatchingFields{index: repository.String()}, client.UnsafeDisableDeepCopy, unreadable.Left{})
}

func namesOf(targets []Target) []string {
	var names []string
	for _, t := range sorted(targets) {
		names = append(names, t.String())
	}
	return names
}

func (t Target) isDeleting() bool { return !t.Object().GetDeletionTimestamp().IsZero() }

// Consumed adds what is known to apply a Repository to what was observed of it. All
// are the targets of its Rollout. Of other targets it returns what was observed.
func (t Target) Consumed(seen content.Target, all []Target, helmReleases bool) content.Target {
	if t.Repository == nil {
		return seen
	}
	seen.PulledOnly = !slices.ContainsFunc(all, t.isConsumedBy)
	switch {
	case seen.State != v1alpha1.TargetApplied:
	case len(t.Elsewhere) > 0:
		seen.Reason, seen.Message = v1alpha1.TargetConsumerElsewhere, consumedElsewhere(t.Elsewhere)
	case seen.PulledOnly:
		seen.Reason, seen.Message = v1alpha1.TargetNoConsumer, notConsumed(helmReleases)
	}
	return seen
}

// isConsumedBy reports whether another target applies what the Repository pulls. One
// that is being deleted applies nothing any more.
func (t Target) isConsumedBy(other Target) bool {
	if other.Artifact != nil {
		return other.Artifact.isMadeOf(RefTo(t.Repository)) && !other.isDeleting()
	}
	ref, ok := other.consumes()
	return ok && ref == RefTo(t.Repository) && !other.isDeleting()
}

// notConsumed says that nothing is known to apply a Repository. It says nothing of
// HelmReleases if they are not read.
func notConsumed(helmReleases bool) string {
	if helmReleases {
		return "no Kustomization or HelmRelease in this namespace applies it, so it counts as applied once Flux has pulled it: " +
			"check the sourceRef or chartRef of what should apply it"
	}
	return "no Kustomization in this namespace applies it, so it counts as applied once Flux has pulled it: check the sourceRef of what should apply it"
}

// mostConsumers is how many consumers of other namespaces a message names.
const mostConsumers = 3

func consumedElsewhere(names []string) string {
	if len(names) == 1 {
		return names[0] + " applies it from another namespace, and is not waited for: only Kustomizations and HelmReleases of this namespace are followed"
	}
	return firstOf(names) + " apply it from other namespaces, and are not waited for: only Kustomizations and HelmReleases of this namespace are followed"
}

// firstOf returns the first names, and counts the others.
func firstOf(names []string) string {
	if more := len(names) - mostConsumers; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostConsumers], ", "), more)
	}
	return strings.Join(names, ", ")
}
