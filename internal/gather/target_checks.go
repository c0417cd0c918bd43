// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// TargetChecks are the HealthChecks by which a Rollout knows that its targets are rolled
// out. The Rollout owns them, and they count as selected.
type TargetChecks struct {
	// Missing are those that do not exist, or that are not as they should be.
	Missing []v1alpha1.HealthCheck
	// Surplus are those that nothing asks for any more.
	Surplus []v1alpha1.HealthCheck
}

// withTargets returns the selected checks with those that the Rollout owns. A missing one
// is a problem: without it, pods of the release before would prove this one.
func (g Gatherer) withTargets(ctx context.Context, s *Snapshot, selected []v1alpha1.HealthCheck, targetsKnown bool) ([]v1alpha1.HealthCheck, error) {
	owned := &v1alpha1.HealthCheckList{}
	err := g.Client.List(ctx, owned, client.InNamespace(s.Rollout.Namespace), client.MatchingFields{checkOwnerIndex: string(s.Rollout.UID)})
	if err != nil {
		return nil, fmt.Errorf("list HealthChecks: %w", err)
	}
	// What is deleted below must be the Rollout's own, whatever the cache found.
	owned.Items = slices.DeleteFunc(owned.Items, func(check v1alpha1.HealthCheck) bool {
		owner := ownerOf(&check)
		return owner == nil || owner.UID != s.Rollout.UID
	})
	if !targetsKnown {
		return append(selected, owned.Items...), nil // which are wanted is not known
	}
	kept := s.compare(g.wantedChecks(s.Rollout, s.Found, selected), owned.Items)
	if missing := s.TargetChecks.Missing; len(missing) > 0 && s.Health.Problem == nil {
		s.Health.Problem = &verdict.Problem{Reason: v1alpha1.HealthCheckMissingReason, Message: MissingCheck(&missing[0]) + " does not exist yet"}
	}
	return append(selected, kept...), nil
}

// compare stores what is missing and what is too much, and returns the rest.
func (s *Snapshot) compare(wanted map[string]v1alpha1.HealthCheck, owned []v1alpha1.HealthCheck) []v1alpha1.HealthCheck {
	var kept []v1alpha1.HealthCheck
	for i := range owned {
		want, isWanted := wanted[owned[i].Name]
		switch {
		case !isWanted:
			s.TargetChecks.Surplus = append(s.TargetChecks.Surplus, owned[i])
		case !Correct(owned[i].DeepCopy(), &want):
			kept = append(kept, owned[i])
			delete(wanted, want.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s.TargetChecks.Missing = append(s.TargetChecks.Missing, wanted[name])
	}
	return kept
}

// MissingCheck names a missing check and what it is for, as the beginning of a sentence.
func MissingCheck(check *v1alpha1.HealthCheck) string {
	about := check.Namespace + "/" + check.Name
	if subject, err := kustomization.Reference(check); err == nil {
		return fmt.Sprintf("HealthCheck %s, which says whether %s is rolled out,", about, subject)
	}
	return "HealthCheck " + about
}

// wantedChecks returns the checks that a Rollout should own, by name: one for each target
// that Flux applies and that no selected check is about.
func (g Gatherer) wantedChecks(rollout *v1alpha1.Rollout, found []targets.Target, selected []v1alpha1.HealthCheck) map[string]v1alpha1.HealthCheck {
	wanted := map[string]v1alpha1.HealthCheck{}
	if rollout.Spec.TargetHealth != v1alpha1.TargetHealthRequired && !slices.ContainsFunc(selected, isMeasuredAndEnforced) {
		return wanted
	}
	about := subjectsOf(selected)
	for _, t := range found {
		if t.Repository == nil && !about[subjectOf(t)] {
			check := g.checkOf(rollout, t)
			wanted[check.Name] = check
		}
	}
	return wanted
}

func isMeasuredAndEnforced(check v1alpha1.HealthCheck) bool {
	return check.IsMeasured() && check.IsEnforced()
}

// subjectsOf returns what enforced checks of the class kustomization are about.
func subjectsOf(checks []v1alpha1.HealthCheck) map[kustomization.Subject]bool {
	about := map[kustomization.Subject]bool{}
	for i := range checks {
		if !checks[i].IsClass(v1alpha1.HealthCheckClassKustomization) || !checks[i].IsEnforced() {
			continue
		}
		if ref, err := kustomization.Reference(&checks[i]); err == nil {
			about[ref] = true
		}
	}
	return about
}

// checkOf returns the check of a target, for the instance that acts for its Rollout. Its
// name says to the reader of a list what it is about.
func (g Gatherer) checkOf(rollout *v1alpha1.Rollout, t targets.Target) v1alpha1.HealthCheck {
	class := v1alpha1.HealthCheckClassKustomization
	check := v1alpha1.HealthCheck{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       rollout.Namespace,
			Name:            truncate.Name(rollout.Name+"-"+strings.ToLower(t.Kind())+"-"+t.Object().GetName(), truncate.LongestName),
			Annotations:     map[string]string{subjectOf(t).Annotation(): t.Object().GetName()},
			OwnerReferences: OwnedBy(rollout),
		},
		Spec: v1alpha1.HealthCheckSpec{Class: &class},
	}
	for _, key := range g.InstanceLabels {
		if value, ok := rollout.Labels[key]; ok {
			metav1.SetMetaDataLabel(&check.ObjectMeta, key, value)
		}
	}
	return check
}

// Correct makes a check what it should be, and keeps what others have added to it: what an
// API server adds each time must not be taken away each time. It reports whether it changed
// something.
func Correct(check, wanted *v1alpha1.HealthCheck) bool {
	before := check.DeepCopy()
	if !check.IsClass(v1alpha1.HealthCheckClassKustomization) || !check.IsEnforced() {
		check.Spec = wanted.Spec
	}
	delete(check.Annotations, v1alpha1.KustomizationAnnotation)
	delete(check.Annotations, v1alpha1.HelmReleaseAnnotation)
	for key, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&check.ObjectMeta, key, value)
	}
	for key, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&check.ObjectMeta, key, value)
	}
	return !equality.Semantic.DeepEqual(before, check)
}

// OwnedBy returns the owners of an object that a Rollout owns. It does not block the deletion
// of the Rollout: some clusters allow that only to those who may change its finalizers.
func OwnedBy(rollout *v1alpha1.Rollout) []metav1.OwnerReference {
	isController := true
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RolloutKind, Name: rollout.Name, UID: rollout.UID, Controller: &isController,
	}}
}

// ownerOf returns the Rollout that owns a check; nil if none does.
func ownerOf(check client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(check)
	if owner == nil || owner.Kind != v1alpha1.RolloutKind || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return nil
	}
	return owner
}

func isOwned(check v1alpha1.HealthCheck) bool { return ownerOf(&check) != nil }

func indexedOwner(check client.Object) []string {
	owner := ownerOf(check)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}

// ofOwner returns the Rollout that owns a check, if it still exists. It belongs to the
// cache and must not be changed.
func ofOwner(ctx context.Context, c client.Reader, namespace string, owner *metav1.OwnerReference) ([]*v1alpha1.Rollout, error) {
	rollout := &v1alpha1.Rollout{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, rollout, client.UnsafeDisableDeepCopy)
	if err != nil || rollout.UID != owner.UID {
		return nil, client.IgnoreNotFound(err)
	}
	return []*v1alpha1.Rollout{rollout}, nil
}
