// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// dependenciesOf returns the objects that a decision depends on: those that were gathered,
// and what they refer to.
func dependenciesOf(ctx context.Context, v program.View) ([]client.Object, error) {
	d := &dependencies{from: v.Facts, all: []client.Object{v.Rollout}}
	for i := range v.Gates.Gates {
		d.all = append(d.all, &v.Gates.Gates[i])
	}
	for i := range v.Gates.Copies {
		d.all = append(d.all, &v.Gates.Copies[i])
	}
	if v.Gates.Mirror != nil {
		d.all = append(d.all, v.Gates.Mirror)
	}
	for i := range v.Health.Checks {
		d.all = append(d.all, &v.Health.Checks[i])
	}
	for _, schedule := range v.Schedules {
		d.all = append(d.all, schedule.Object)
	}
	for _, target := range v.Found {
		d.all = append(d.all, reported(target))
		d.source(ctx, target)
	}
	d.images(ctx, v)
	d.environments(ctx, v)
	d.quarantines(ctx, v)
	d.namespaces(ctx)
	return d.all, d.err
}

// reported returns the object of a target as a report has it: patches, variables and
// values may contain passwords. Of variables and values it has only those that Rollouts
// write.
func reported(target targets.Target) client.Object {
	switch {
	case target.HelmRelease != nil:
		release := target.HelmRelease.DeepCopy()
		targets.KeepWrittenValues(release)
		return release
	case target.Kustomization != nil:
		return reportedKustomization(target.Kustomization)
	}
	return target.Object()
}

func reportedKustomization(k *kustomizev1.Kustomization) *kustomizev1.Kustomization {
	kept := k.DeepCopy()
	kept.Spec = kustomizev1.KustomizationSpec{
		SourceRef: k.Spec.SourceRef, Path: k.Spec.Path, Interval: k.Spec.Interval, Timeout: k.Spec.Timeout, DependsOn: k.Spec.DependsOn,
		Suspend: k.Spec.Suspend, Prune: k.Spec.Prune, Wait: k.Spec.Wait, HealthChecks: k.Spec.HealthChecks,
	}
	if written := targets.WrittenVariables(k); written != nil {
		kept.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: written}
	}
	return kept
}

// dependencies collects objects that others refer to.
type dependencies struct {
	from client.Reader
	all  []client.Object
	err  error
}

// add reads an object. One that does not exist, or may not be read, is a part of the
// answer.
func (d *dependencies) add(ctx context.Context, object client.Object, key types.NamespacedName) bool {
	switch err := d.from.Get(ctx, key, object); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false
	case err != nil:
		d.err = fmt.Errorf("read %s: %w", key, err)
		return false
	}
	d.all = append(d.all, object)
	return true
}

// source adds the OCIRepository that a target applies, or the GitRepository if a Rollout
// writes it.
func (d *dependencies) source(ctx context.Context, target targets.Target) {
	ref, is := targets.ConsumedBy(target.Object())
	isGit := ref.Kind == sourcev1.GitRepositoryKind
	if is && (!isGit || target.Source != nil) && !d.has(ref) {
		d.add(ctx, ref.New(), ref.NamespacedName)
	}
}

func (d *dependencies) has(ref targets.Ref) bool {
	return slices.ContainsFunc(d.all, func(o client.Object) bool {
		repository, is := o.(targets.Repository)
		return is && targets.RefTo(repository) == ref
	})
}

func (d *dependencies) images(ctx context.Context, v program.View) {
	policy := &imagev1.ImagePolicy{}
	if d.add(ctx, policy, types.NamespacedName{Namespace: v.Rollout.Namespace, Name: v.Rollout.Spec.ReleasesImagePolicy.Name}) {
		d.add(ctx, &imagev1.ImageRepository{}, imagepolicy.RepositoryOf(policy))
	}
}

// environments adds the Environments of the Rollout, those before them, and the one that
// the Rollout names. What cannot be read is in the explanation.
func (d *dependencies) environments(ctx context.Context, v program.View) {
	if ref := v.Rollout.Spec.EnvironmentRef; ref != nil {
		d.add(ctx, &environmentsv1.Environment{}, types.NamespacedName{Namespace: v.Rollout.Namespace, Name: ref.Name})
	}
	rollouts := []types.NamespacedName{client.ObjectKeyFromObject(v.Rollout)}
	for i := 0; i < len(rollouts); i++ {
		found, _ := gather.EnvironmentsOf(ctx, d.from, rollouts[i])
		for n := range found {
			d.environment(&found[n])
			for _, u := range found[n].GetUpstreams() {
				key := types.NamespacedName{Namespace: u.Namespace, Name: u.Rollout}
				if !u.IsRemote() && !slices.Contains(rollouts, key) {
					rollouts = append(rollouts, key)
				}
			}
		}
	}
}

func (d *dependencies) environment(e *environmentsv1.Environment) {
	known := slices.ContainsFunc(d.all, func(o client.Object) bool {
		_, is := o.(*environmentsv1.Environment)
		return is && client.ObjectKeyFromObject(o) == client.ObjectKeyFromObject(e)
	})
	if !known {
		d.all = append(d.all, e)
	}
}

// quarantines adds those of the releases that the Rollout knows.
func (d *dependencies) quarantines(ctx context.Context, v program.View) {
	known := slices.Clone(v.Decision.Ledger)
	for i := range v.Rollout.Status.History {
		known = append(known, v.Rollout.Status.History[i].Version)
	}
	for i := range v.Quarantines.All {
		q := &v.Quarantines.All[i]
		if !slices.ContainsFunc(known, func(release v1alpha1.VersionInfo) bool { return promotion.IsAbout(v.Input, &q.Spec, release) }) {
			continue
		}
		if name, own := q.OwnName(); own {
			d.add(ctx, &v1alpha1.ReleaseQuarantine{}, types.NamespacedName{Namespace: v.Rollout.Namespace, Name: name})
		} else if name, ofCluster := strings.CutPrefix(q.Name, v1alpha1.ClusterReleaseQuarantineKind+" "); ofCluster {
			d.add(ctx, &v1alpha1.ClusterReleaseQuarantine{}, types.NamespacedName{Name: name})
		}
	}
}

// namespaces adds the namespaces of the objects: selectors are about their labels.
func (d *dependencies) namespaces(ctx context.Context) {
	seen := map[string]bool{"": true}
	for _, object := range d.all {
		if name := object.GetNamespace(); !seen[name] {
			seen[name] = true
			namespace := &metav1.PartialObjectMetadata{}
			namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
			d.add(ctx, namespace, types.NamespacedName{Name: name})
		}
	}
}
