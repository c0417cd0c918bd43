// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fluxActs acts once in the place of source-controller, kustomize-controller and the
// writer of the HealthCheck.
func (w *world) fluxActs() {
	w.t.Helper()
	repository, kustomization, check := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}, &v1alpha1.HealthCheck{}
	repository.Name, kustomization.Name, check.Name = crashscenario.App, crashscenario.App, crashscenario.App
	rollout, _, _ := objects()
	if !w.get(repository) || !w.get(kustomization) || !w.get(check) || !w.get(rollout) {
		return
	}
	w.pulls(repository)
	w.applies(kustomization, repository)
	w.reports(check, crashscenario.Report(rollout, check, repository.Spec.Reference.Tag))
}

// reports writes what the HealthCheck says, if anything.
func (w *world) reports(check *v1alpha1.HealthCheck, status v1alpha1.HealthStatus) {
	if status == "" {
		return
	}
	if check.Status.Status = status; status == v1alpha1.HealthStatusUnhealthy {
		why, now := "it does not answer", metav1.Now()
		check.Status.Message, check.Status.LastErrorTime = &why, &now
	}
	w.says(check)
}

func (w *world) pulls(repository *sourcev1.OCIRepository) {
	tag := repository.Spec.Reference.Tag
	current := repository.Status.ObservedGeneration == repository.Generation && repository.Status.Artifact != nil &&
		repository.Status.Artifact.Revision == fixture.Revision(tag)
	if current || !crashscenario.FluxPulls(tag) {
		return
	}
	repository.Status.ObservedGeneration = repository.Generation
	repository.Status.Artifact = fixture.Artifact(fixture.Revision(tag))
	isReady(&repository.Status.Conditions, repository.Generation)
	w.says(repository)
}

func (w *world) applies(kustomization *kustomizev1.Kustomization, source *sourcev1.OCIRepository) {
	if source.Status.Artifact == nil {
		return
	}
	revision := source.Status.Artifact.Revision
	if kustomization.Status.ObservedGeneration == kustomization.Generation && kustomization.Status.LastAppliedRevision == revision {
		return
	}
	kustomization.Status.ObservedGeneration = kustomization.Generation
	kustomization.Status.LastAttemptedRevision, kustomization.Status.LastAppliedRevision = revision, revision
	isReady(&kustomization.Status.Conditions, kustomization.Generation)
	w.says(kustomization)
}

func isReady(conditions *[]metav1.Condition, generation int64) {
	apimeta.SetStatusCondition(conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Said", Message: "said", ObservedGeneration: generation,
	})
}

// says writes the status of an object. If the object has changed meanwhile, a later call
// writes it.
func (w *world) says(object client.Object) {
	w.t.Helper()
	w.must(ignoreConflict(shared.Client().Status().Update(w.t.Context(), object)))
}
