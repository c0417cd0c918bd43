// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"maps"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxrollouts/rollout-controller/internal/live"
)

// Live reads the target's object past the caches. If it does not exist, the error is
// NotFound.
func (t Target) Live(ctx context.Context, reader client.Reader, options ...client.GetOption) (Target, error) {
	live := Target{Variables: t.Variables, Paths: t.Paths, Digests: t.Digests, Ranked: t.Ranked, Source: t.Source, Elsewhere: t.Elsewhere,
		Artifact: t.Artifact, Artifacts: t.Artifacts}
	switch {
	case t.Repository != nil:
		live.Repository = RefTo(t.Repository).New()
	case t.HelmRelease != nil:
		live.HelmRelease = &helmv2.HelmRelease{}
	default:
		live.Kustomization = &kustomizev1.Kustomization{}
	}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(t.Object()), live.Object(), options...); err != nil {
		return live, fmt.Errorf("get %s: %w", t, err)
	}
	return live, nil
}

// LiveWithOwners is like Live, and keeps which managers own the version fields, and for
// whom they apply the object.
func (t Target) LiveWithOwners(ctx context.Context, reader client.Reader) (Target, error) {
	versions := fieldpath.NewSet()
	for _, f := range t.fields() {
		versions.Insert(t.pathOf(f))
	}
	owners := live.OwnersOf(versions, isOwn)
	return t.Live(ctx, reader, live.Also(func(whole client.Object) func(client.Object) {
		keepOwners, labels, id := owners(whole), parentLabels(whole), whole.GetAnnotations()[trackingID]
		return func(kept client.Object) {
			keepOwners(kept)
			kept.SetLabels(labels)
			annotations := map[string]string{trackingID: id}
			maps.Copy(annotations, kept.GetAnnotations())
			kept.SetAnnotations(annotations)
		}
	}))
}

// EachLive reads targets past the caches, together with the sources that they consume, each
// object once, and calls do with each target and its place among the given ones. A target
// and one source are in memory at a time. It omits objects that no longer exist.
func EachLive(ctx context.Context, reader client.Reader, targets []Target, do func(i int, live Target)) error {
	read := artifactReader{reader: reader, generators: map[client.ObjectKey]*generatorv1.ArtifactGenerator{}}
	for _, group := range bySource(targets) {
		source := liveSource{reader: reader, key: group.source}
		for _, i := range group.targets {
			live, err := targets[i].Live(ctx, reader)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err == nil {
				live.Source, err = source.of(ctx, live, targets[i].Source)
			}
			if err == nil {
				live.Artifact, err = read.again(ctx, live)
			}
			if err != nil {
				return err
			}
			do(i, live)
		}
	}
	return nil
}

// group are targets with the same source. If that is a target itself, it is the first.
type group struct {
	source  Ref
	targets []int
}

func bySource(targets []Target) []group {
	var groups []group
	at := map[Ref]int{}
	for i, t := range targets {
		key, consumes := t.consumes()
		if t.Repository != nil {
			key = RefTo(t.Repository)
		}
		n, known := at[key]
		if !known {
			n, groups = len(groups), append(groups, group{source: key})
			at[key] = n
		}
		if all := &groups[n].targets; t.Repository != nil && !consumes {
			*all = append([]int{i}, *all...)
		} else {
			*all = append(*all, i)
		}
	}
	return groups
}

// liveSource is a Repository that was read for the targets that consume it.
type liveSource struct {
	reader client.Reader
	key    Ref
	object Repository
	known  bool
}

// of returns the Repository that the target consumes. It returns nil if there is none. A
// GitRepository is only read if the cached one was written by a Rollout.
func (s *liveSource) of(ctx context.Context, t Target, cached Repository) (Repository, error) {
	if t.Repository != nil {
		s.object, s.known = t.Repository, true
		return nil, nil
	}
	key, consumes := t.consumes()
	switch {
	case !consumes, key.isGit() && cached == nil:
		return nil, nil
	case key == s.key && s.known:
		return s.object, nil
	}
	source, err := key.Read(ctx, s.reader)
	if err == nil && key == s.key {
		s.object, s.known = source, true
	}
	return source, err
}

// Outline returns the target with what shows whether it applies what a Repository pulls, and
// nothing else.
func (t Target) Outline() Target {
	metadata := metav1.ObjectMeta{Namespace: t.Object().GetNamespace(), Name: t.Object().GetName(), DeletionTimestamp: t.Object().GetDeletionTimestamp()}
	outline := Target{Elsewhere: t.Elsewhere, Artifact: t.Artifact}
	switch {
	case t.Repository != nil:
		outline.Repository = RefTo(t.Repository).New()
		outline.Repository.SetNamespace(metadata.Namespace)
		outline.Repository.SetName(metadata.Name)
		outline.Repository.SetDeletionTimestamp(metadata.DeletionTimestamp)
	case t.HelmRelease != nil:
		outline.HelmRelease = &helmv2.HelmRelease{ObjectMeta: metadata}
		outline.HelmRelease.Spec.ChartRef, outline.HelmRelease.Spec.Chart = t.HelmRelease.Spec.ChartRef, t.HelmRelease.Spec.Chart
		outline.HelmRelease.Status.HelmChart = t.HelmRelease.Status.HelmChart
	default:
		outline.Kustomization = &kustomizev1.Kustomization{ObjectMeta: metadata}
		outline.Kustomization.Spec.SourceRef = t.Kustomization.Spec.SourceRef
	}
	return outline
}
