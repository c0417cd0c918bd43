// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func TestRepositoryIsObserved(t *testing.T) {
	pulled := func() *fixture.RepositoryBuilder {
		return fixture.MakeRepository("web").Generation(2).Tag("1.1.0").Pulled(fixture.Revision("1.1.0")).Ready()
	}
	for name, tt := range map[string]struct {
		repository *fixture.RepositoryBuilder
		state      v1alpha1.TargetState
		reason     v1alpha1.TargetReason
		message    string
	}{
		"applied once the artifact of the tag was pulled at this generation": {
			repository: pulled(), state: v1alpha1.TargetApplied,
		},
		"pending without a reference": {
			repository: fixture.MakeRepository("web"), state: v1alpha1.TargetPending,
		},
		"pending with another tag": {
			repository: pulled().Tag("1.0.0"), state: v1alpha1.TargetPending,
		},
		"pending while the generation is not observed": {
			repository: pulled().Observed(1), state: v1alpha1.TargetPending,
		},
		"pending while the artifact is that of the tag before": {
			repository: pulled().Pulled(fixture.Revision("1.0.0")), state: v1alpha1.TargetPending,
		},
		"pending while there is no artifact": {
			repository: fixture.MakeRepository("web").Tag("1.1.0").Ready(), state: v1alpha1.TargetPending,
		},
		"pending if the artifact's tag only begins like ours": {
			repository: pulled().Pulled(fixture.Revision("1.1.0-rc.1")), state: v1alpha1.TargetPending,
		},
		"pending if the artifact was pulled by its digest": {
			repository: pulled().Pulled("sha256:1234"), state: v1alpha1.TargetPending,
		},
		"pending while Flux works": {
			repository: pulled().Condition(meta.ReadyCondition, unknown, 2, "building").Condition(meta.ReconcilingCondition, yes, 2, "building"),
			state:      v1alpha1.TargetPending,
		},
		"pending while Flux works on what was ready": {
			repository: pulled().Condition(meta.ReconcilingCondition, yes, 2, "new generation"),
			state:      v1alpha1.TargetPending,
		},
		"pending while stalled": {
			repository: pulled().Condition(meta.StalledCondition, yes, 2, "invalid URL"), state: v1alpha1.TargetPending,
		},
		"failed if Flux says so of this generation": {
			repository: pulled().Condition(meta.ReadyCondition, no, 2, "manifest unknown"),
			state:      v1alpha1.TargetFailed, reason: v1alpha1.TargetNotPulled, message: "manifest unknown",
		},
		"failed if Flux says so in a pass that knew of the write": {
			repository: pulled().Requested("now", "now").Condition(meta.ReadyCondition, no, 2, "manifest unknown"),
			state:      v1alpha1.TargetFailed, reason: v1alpha1.TargetNotPulled, message: "manifest unknown",
		},
		"pending if Flux says so in a pass that began before the write": {
			repository: pulled().Requested("now", "before").Condition(meta.ReadyCondition, no, 2, "latest: manifest unknown"),
			state:      v1alpha1.TargetPending,
		},
		"pending if Flux said so of an older generation": {
			repository: pulled().Condition(meta.ReadyCondition, no, 1, "manifest unknown"), state: v1alpha1.TargetPending,
		},
		"in conflict with a digest": {
			repository: pulled().Digest("sha256:1"),
			state:      v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked, message: "spec.ref.digest outranks spec.ref.tag in Flux: remove it",
		},
		"in conflict with a range": {
			repository: pulled().Semver("1.x"),
			state:      v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked, message: "spec.ref.semver outranks spec.ref.tag in Flux: remove it",
		},
		"in conflict with both, the stronger is named": {
			repository: pulled().Semver("1.x").Digest("sha256:1").Suspended(),
			state:      v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked, message: "spec.ref.digest outranks spec.ref.tag in Flux: remove it",
		},
		"pending while it is being deleted, whatever it reports": {
			repository: pulled().Deleting(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetDeleting, message: "is being deleted",
		},
		"pending while suspended, whatever it reports": {
			repository: pulled().Suspended(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSuspended, message: "is suspended: resume it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := repository(tt.repository).Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			want := content.Target{
				Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "web", State: tt.state, Reason: tt.reason, Message: tt.message,
				Image: "registry.example.com/web",
			}
			if tt.state == v1alpha1.TargetApplied {
				want.Digest = strings.TrimPrefix(fixture.Revision("1.1.0"), "1.1.0@")
			}
			NewWithT(t).Expect(got).To(Equal(want))
		})
	}
}

func TestKustomizationIsObserved(t *testing.T) {
	now, before := fixture.Revision("1.1.0"), fixture.Revision("1.0.0")
	source := fixture.MakeRepository("web").Tag("1.1.0").Pulled(now)
	driven := func() *fixture.RepositoryBuilder { return fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0") }
	consumer := func() *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("web").Generation(2).Ready().Applied(now)
	}
	carrier := func() *fixture.KustomizationBuilder {
		return consumer().DrivenBy("shop", "VERSION").Substitute("VERSION", "1.1.0")
	}
	fromGit := func() *fixture.KustomizationBuilder {
		return carrier().From("GitRepository", "fleet").Applied("main@sha1:1234")
	}
	owned := func(r *v1alpha1.Rollout) {
		r.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": fixture.Namespace}
	}
	const cycle = "applies this Rollout and waits for it, while the Rollout waits for what it applies: " +
		"apply the Rollout from another Kustomization, or set spec.wait to false"
	for name, tt := range map[string]struct {
		kustomization *fixture.KustomizationBuilder
		source        *fixture.RepositoryBuilder // web at 1.1.0 by default
		rollout       func(*v1alpha1.Rollout)
		state         v1alpha1.TargetState
		reason        v1alpha1.TargetReason
		message       string
	}{
		"applied once it consumed what the source offers": {
			kustomization: consumer(), source: source, state: v1alpha1.TargetApplied,
		},
		"pending while it applied what the source offered before": {
			kustomization: consumer().Applied(before), source: source, state: v1alpha1.TargetPending,
		},
		"pending while it applied nothing": {
			kustomization: consumer().Applied(""), source: source, state: v1alpha1.TargetPending,
		},
		"pending while the source offers nothing": {
			kustomization: consumer(), source: fixture.MakeRepository("web"), state: v1alpha1.TargetPending,
		},
		"pending while its generation is not observed": {
			kustomization: consumer().Observed(1), source: source, state: v1alpha1.TargetPending,
		},
		"pending while Flux works": {
			kustomization: consumer().Condition(meta.ReadyCondition, unknown, 2, "Progressing"), source: source, state: v1alpha1.TargetPending,
		},
		"pending while Flux works on what was ready": {
			kustomization: consumer().Condition(meta.ReconcilingCondition, yes, 2, "Progressing"), source: source, state: v1alpha1.TargetPending,
		},
		"pending while suspended, whatever it reports": {
			kustomization: consumer().Suspended(), source: source, state: v1alpha1.TargetPending, reason: v1alpha1.TargetSuspended, message: "is suspended: resume it",
		},
		"pending while its source does not exist": {
			kustomization: consumer(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSourceMissing, message: "its OCIRepository web does not exist",
		},
		"failed if Flux could not apply what the source offers": {
			kustomization: consumer().Applied(before).Attempted(now).Condition(meta.ReadyCondition, no, 2, "no such field"),
			source:        source, state: v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "no such field",
		},
		"pending if Flux could not apply what the source offered before": {
			kustomization: consumer().Applied(before).Condition(meta.ReadyCondition, no, 2, "no such field"),
			source:        source, state: v1alpha1.TargetPending,
		},
		"pending if Flux failed at an older generation": {
			kustomization: consumer().Attempted(now).Condition(meta.ReadyCondition, no, 1, "no such field"),
			source:        source, state: v1alpha1.TargetPending,
		},
		"pending if Flux tried nothing, because another one was not ready": {
			kustomization: fromGit().Condition(meta.ReadyCondition, no, 2, "dependency 'shop/db' not found").Because(meta.DependencyNotReadyReason),
			state:         v1alpha1.TargetPending, reason: v1alpha1.TargetDependencyNotReady, message: "dependency 'shop/db' not found",
		},
		"pending with a source that we drive, because another one was not ready": {
			kustomization: consumer().Applied(before).Condition(meta.ReadyCondition, no, 2, "dependency 'shop/db' not found").Because(meta.DependencyNotReadyReason),
			source:        driven().Pulled(now), state: v1alpha1.TargetPending, reason: v1alpha1.TargetDependencyNotReady, message: "dependency 'shop/db' not found",
		},
		"pending without a word of Flux while the source that we drive has not pulled the version": {
			kustomization: consumer().Applied(before).Condition(meta.ReadyCondition, no, 2, "dependency 'shop/db' not found").Because(meta.DependencyNotReadyReason),
			source:        driven().Pulled(before), state: v1alpha1.TargetPending,
		},
		"pending without a word of Flux about an older generation": {
			kustomization: fromGit().Condition(meta.ReadyCondition, no, 1, "dependency 'shop/db' not found").Because(meta.DependencyNotReadyReason),
			state:         v1alpha1.TargetPending,
		},
		"pending without a word of Flux from a pass that began before the write": {
			kustomization: fromGit().Requested("now", "before").Condition(meta.ReadyCondition, no, 2, "dependency 'shop/db' not found").Because(meta.DependencyNotReadyReason),
			state:         v1alpha1.TargetPending,
		},
		"pending if Flux could not fetch what it should apply": {
			kustomization: fromGit().Condition(meta.ReadyCondition, no, 2, "connection refused").Because(meta.ArtifactFailedReason),
			state:         v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "connection refused",
		},
		"pending if Flux may not use the source": {
			kustomization: consumer().Applied(before).Condition(meta.ReadyCondition, no, 2, "no cross-namespace references").Because("AccessDenied"),
			source:        source, state: v1alpha1.TargetPending, reason: v1alpha1.TargetAccessDenied, message: "no cross-namespace references",
		},
		"pending if Flux does not understand an expression": {
			kustomization: consumer().Applied(before).Condition(meta.ReadyCondition, no, 2, "invalid expression").Because(meta.InvalidCELExpressionReason),
			source:        source, state: v1alpha1.TargetPending, reason: v1alpha1.TargetNotApplied, message: "invalid expression",
		},
		"pending with the failure of a source that we do not drive": {
			kustomization: carrier().Condition(meta.ReadyCondition, no, 2, "Source artifact not found").Because(meta.ArtifactFailedReason),
			source:        fixture.MakeRepository("web").Condition(meta.ReadyCondition, no, 1, "manifests/latest: not found"),
			state:         v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "its OCIRepository web has failed: manifests/latest: not found",
		},
		"pending with no more than the reason of a source in another namespace": {
			kustomization: carrier().From("OCIRepository", "web").FromNamespace("b").Condition(meta.ReadyCondition, no, 2, "Source artifact not found").Because(meta.ArtifactFailedReason),
			source:        fixture.MakeRepository("web").InNamespace("b").Condition(meta.ReadyCondition, no, 1, "manifests/latest: not found"),
			state:         v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "its OCIRepository b/web has failed (Reported)",
		},
		"pending with a source that we do not drive and that is suspended": {
			kustomization: carrier().Condition(meta.ReadyCondition, no, 2, "Source artifact not found").Because(meta.ArtifactFailedReason),
			source:        fixture.MakeRepository("web").Suspended(),
			state:         v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: "its OCIRepository web is suspended: resume it",
		},
		"pending while it is being deleted, whatever it reports": {
			kustomization: consumer().Deleting().Suspended(), source: source,
			state: v1alpha1.TargetPending, reason: v1alpha1.TargetDeleting, message: "is being deleted",
		},
		"pending if Flux gave up to apply something newer": {
			kustomization: fromGit().Condition(meta.ReadyCondition, no, 2, "new reconciliation triggered").Because(meta.HealthCheckCanceledReason),
			state:         v1alpha1.TargetPending,
		},
		"pending while the source that we drive still offers what failed before": {
			kustomization: consumer().Applied(before).Attempted(before).Condition(meta.ReadyCondition, no, 2, "no such field"),
			source:        driven().Pulled(before), state: v1alpha1.TargetPending,
		},
		"pending while the source that we drive still offers what was applied before": {
			kustomization: consumer().Applied(before), source: driven().Pulled(before), state: v1alpha1.TargetPending,
		},
		"applied once the source that we drive offers the version, and it is applied": {
			kustomization: consumer(), source: driven().Pulled(now), state: v1alpha1.TargetApplied,
		},
		"applied once the substitute was applied": {
			kustomization: carrier(), source: source, state: v1alpha1.TargetApplied,
		},
		"pending while it carries another substitute": {
			kustomization: carrier().Substitute("VERSION", "1.0.0"), source: source, state: v1alpha1.TargetPending,
		},
		"applied from a source that is no OCIRepository by the generation alone": {
			kustomization: fromGit(), state: v1alpha1.TargetApplied,
		},
		"pending from a source that is no OCIRepository while the generation is not observed": {
			kustomization: fromGit().Observed(1), state: v1alpha1.TargetPending,
		},
		"failed in a pass that knew of the substitute": {
			kustomization: fromGit().Requested("now", "now").Condition(meta.ReadyCondition, no, 2, "no such field"),
			state:         v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "no such field",
		},
		"pending if Flux failed in a pass that began before the substitute was written": {
			kustomization: fromGit().Requested("now", "before").Condition(meta.ReadyCondition, no, 2, "no such field"),
			state:         v1alpha1.TargetPending,
		},
		"failed from a source that is no OCIRepository": {
			kustomization: fromGit().Condition(meta.ReadyCondition, no, 2, "no such field"),
			state:         v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "no such field",
		},
		"in conflict if Flux does not accept the variable": {
			kustomization: consumer().DrivenBy("shop", "MY-VAR"), source: source, state: v1alpha1.TargetConflict,
			reason: v1alpha1.TargetInvalidField, message: `Flux does not accept "MY-VAR" as the name of a variable: ` +
				"rename the annotation rollout.kuberik.com/substitute.MY-VAR.from",
		},
		"in conflict if it applies the Rollout and waits for all": {
			kustomization: consumer().Waits(), source: source, rollout: owned, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: cycle,
		},
		"in conflict if it applies the Rollout and waits for it": {
			kustomization: consumer().WaitsFor("Rollout", "", "shop"), source: source, rollout: owned,
			state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: cycle,
		},
		"applied if it waits for another Rollout": {
			kustomization: consumer().WaitsFor("Rollout", "", "cart"), source: source, rollout: owned, state: v1alpha1.TargetApplied,
		},
		"applied if it applies the Rollout and does not wait": {
			kustomization: consumer(), source: source, rollout: owned, state: v1alpha1.TargetApplied,
		},
		"applied if it waits but another Kustomization applies the Rollout": {
			kustomization: consumer().Waits(), source: source, state: v1alpha1.TargetApplied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rollout := fixture.MakeRollout("shop").Obj()
			if tt.rollout != nil {
				tt.rollout(rollout)
			}
			web := kustomization(tt.kustomization)
			if tt.source != nil {
				web.Source = tt.source.Obj()
			}
			seen := web.Observe(rollout, byTag("1.1.0"))
			seen.Waits = 0 // TestHowLongFluxWaits
			g.Expect(seen).To(Equal(content.Target{
				Kind: kustomizev1.KustomizationKind, Namespace: fixture.Namespace, Name: "web", State: tt.state, Reason: tt.reason, Message: tt.message,
			}))
		})
	}
}

func TestFieldsOfOurManager(t *testing.T) {
	ours := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: write.FieldManager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const tag, variable = `{"f:spec":{"f:ref":{"f:tag":{}}}}`, `{"f:spec":{"f:postBuild":{"f:substitute":{"f:VERSION":{}}}}}`
	byOther, inStatus, withoutFields := ours(tag), ours(tag), ours(tag)
	byOther.Manager = "kustomize-controller"
	inStatus.Subresource = "status"
	withoutFields.FieldsV1 = nil
	web := repository(fixture.MakeRepository("web").Tag("1.0.0"))
	carrier := kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").DrivenBy("cart", "CART").
		Substitute("VERSION", "1.0.0").Substitute("CART", "2.0.0"))
	for name, tt := range map[string]struct {
		target targets.Target
		fields []metav1.ManagedFieldsEntry
		want   []string
	}{
		"nothing":                                  {target: web},
		"a tag":                                    {target: web, fields: []metav1.ManagedFieldsEntry{ours(tag)}, want: []string{"1.0.0"}},
		"a tag, and other fields":                  {target: web, fields: []metav1.ManagedFieldsEntry{byOther, ours(tag)}, want: []string{"1.0.0"}},
		"not a tag that another manager owns":      {target: web, fields: []metav1.ManagedFieldsEntry{byOther}},
		"not what was written into the status":     {target: web, fields: []metav1.ManagedFieldsEntry{inStatus}},
		"not what an entry without fields owns":    {target: web, fields: []metav1.ManagedFieldsEntry{withoutFields}},
		"not what cannot be parsed":                {target: web, fields: []metav1.ManagedFieldsEntry{ours(`[]`)}},
		"not a tag if it is another field":         {target: web, fields: []metav1.ManagedFieldsEntry{ours(`{"f:spec":{"f:url":{}}}`)}},
		"not a tag that is gone":                   {target: repository(fixture.MakeRepository("web")), fields: []metav1.ManagedFieldsEntry{ours(tag)}},
		"a variable":                               {target: carrier, fields: []metav1.ManagedFieldsEntry{ours(variable)}, want: []string{"1.0.0"}},
		"not a variable of another Rollout":        {target: carrier, fields: []metav1.ManagedFieldsEntry{ours(`{"f:spec":{"f:postBuild":{"f:substitute":{"f:CART":{}}}}}`)}},
		"not a variable that another manager owns": {target: carrier, fields: []metav1.ManagedFieldsEntry{byOther}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.target.Object().SetManagedFields(tt.fields)
			NewWithT(t).Expect(tt.target.Owned()).To(Equal(tt.want))
		})
	}
}
