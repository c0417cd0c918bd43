// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fluxApplies simulates source-controller and kustomize-controller: it pulls and applies
// what every object of the namespace requests.
func (s *testEnv) fluxApplies() {
	s.fluxPulls()
	s.fluxAppliesKustomizations()
}

func (s *testEnv) fluxAppliesKustomizations() {
	all := &kustomizev1.KustomizationList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range all.Items {
		s.fluxAppliesOne(&all.Items[i])
	}
}

func (s *testEnv) fluxPulls() {
	all := &sourcev1.OCIRepositoryList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range all.Items {
		r := &all.Items[i]
		if r.Spec.Suspend || r.Spec.Reference == nil || s.upToDate(r) {
			continue
		}
		r.Status.ObservedGeneration = r.Generation
		r.Status.LastHandledReconcileAt = r.Annotations[v1alpha1.ReconcileRequestAnnotation]
		r.Status.Artifact = fixture.Artifact(s.revisionOf(r.Spec.Reference))
		fluxSays(&r.Status.Conditions, r.Generation, metav1.ConditionTrue, "stored artifact")
		s.Expect(s.Status().Update(s.Ctx, r)).To(Succeed())
	}
}

func (s *testEnv) upToDate(r *sourcev1.OCIRepository) bool {
	return r.Status.ObservedGeneration == r.Generation && r.Status.Artifact != nil &&
		r.Status.Artifact.Revision == s.revisionOf(r.Spec.Reference)
}

// revisionOf returns the revision of a reference in the registry.
func (s *testEnv) revisionOf(ref *sourcev1.OCIRepositoryRef) string {
	switch {
	case ref.Digest != "":
		return ref.Digest
	case ref.SemVer != "":
		return fixture.Revision("9.9.9")
	case s.pushedAgain[ref.Tag] != "":
		return ref.Tag + "@" + s.pushedAgain[ref.Tag]
	}
	return fixture.Revision(ref.Tag)
}

func (s *testEnv) fluxAppliesOne(k *kustomizev1.Kustomization) {
	revision := "main@sha1:1234"
	ref, _ := targets.SourceOf(k)
	source := ref.New()
	switch err := s.Get(s.Ctx, s.Key(ref.Name), source); {
	case err != nil && targets.IsGit(source): // most tests have none
	case err != nil, source.GetArtifact() == nil:
		return
	default:
		revision = source.GetArtifact().Revision
	}
	if k.Spec.Suspend || k.Status.ObservedGeneration == k.Generation && k.Status.LastAppliedRevision == revision {
		return
	}
	k.Status.ObservedGeneration = k.Generation
	k.Status.LastHandledReconcileAt = k.Annotations[v1alpha1.ReconcileRequestAnnotation]
	k.Status.LastAttemptedRevision, k.Status.LastAppliedRevision = revision, revision
	fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionTrue, "Applied revision: "+revision)
	s.Expect(s.Status().Update(s.Ctx, k)).To(Succeed())
}

// fluxFails simulates a kustomize-controller that cannot apply what it pulled.
func (s *testEnv) fluxFails(name, message string) {
	s.fluxPulls()
	s.ChangeStatus(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(o client.Object) {
		k := o.(*kustomizev1.Kustomization)
		source := &sourcev1.OCIRepository{}
		s.Expect(s.Get(s.Ctx, s.Key(k.Spec.SourceRef.Name), source)).To(Succeed())
		k.Status.LastAttemptedRevision = source.Status.Artifact.Revision
		k.Status.LastHandledReconcileAt = k.Annotations[v1alpha1.ReconcileRequestAnnotation]
		fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionFalse, message)
	})
}

func fluxSays(conditions *[]metav1.Condition, generation int64, ready metav1.ConditionStatus, message string) {
	apimeta.SetStatusCondition(conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: ready, Reason: "Said", Message: message, ObservedGeneration: generation,
	})
}

// checksSay simulates the writers of all HealthChecks. They have no clock and never write
// lastChangeTime.
func (s *testEnv) checksSay(status v1alpha1.HealthStatus) {
	all := &v1alpha1.HealthCheckList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range all.Items {
		all.Items[i].Status.Status = status
		s.Expect(s.Status().Update(s.Ctx, &all.Items[i])).To(Succeed())
	}
}

// checkFails simulates the writer of one HealthCheck that saw an error.
func (s *testEnv) checkFails(name, message string, at time.Time) {
	s.ChangeStatus(&v1alpha1.HealthCheck{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(o client.Object) {
		check := o.(*v1alpha1.HealthCheck)
		check.Status.Status, check.Status.Message = v1alpha1.HealthStatusUnhealthy, &message
		check.Status.LastErrorTime = &metav1.Time{Time: at}
	})
}

func setLatest(policy client.Object, tag string) {
	p := policy.(*imagev1.ImagePolicy)
	p.Status.LatestRef = &imagev1.ImageRef{Name: "registry.example.com/" + p.Name, Tag: tag}
	fluxSays(&p.Status.Conditions, p.Generation, metav1.ConditionTrue, "Latest image tag resolved to "+tag)
}

// carried returns the tag in the OCIRepository and the substitutes in the Kustomization
// of that name.
func (s *testEnv) carried(name string) map[string]string {
	all := map[string]string{}
	repository := &sourcev1.OCIRepository{}
	if s.Get(s.Ctx, s.Key(name), repository) == nil && repository.Spec.Reference != nil {
		all["tag"] = repository.Spec.Reference.Tag
	}
	kustomization := &kustomizev1.Kustomization{}
	if s.Get(s.Ctx, s.Key(name), kustomization) == nil && kustomization.Spec.PostBuild != nil {
		for key, value := range kustomization.Spec.PostBuild.Substitute {
			all[key] = value
		}
	}
	return all
}

// shopWith returns the Rollout shop, an ImagePolicy with the release, and what the
// Rollout drives: the OCIRepository and, by the variable VERSION, the Kustomization shop.
func shopWith(rollout *fixture.RolloutBuilder, tag string, more ...client.Object) []client.Object {
	return append([]client.Object{
		fixture.MakeScan("shop").Found(tag).Obj(),
		fixture.MakePolicy("shop").Latest(tag).Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("TIER", "gold").Obj(),
		rollout.Obj(),
	}, more...)
}

func forgetLatest(policy client.Object) { policy.(*imagev1.ImagePolicy).Status.LatestRef = nil }

// scanFinds sets the tags that the ImageRepository shop shows.
func (s *testEnv) scanFinds(tags ...string) {
	s.ChangeStatus(fixture.MakeScan("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImageRepository).Status.LastScanResult = fixture.MakeScan("shop").Found(tags...).Obj().Status.LastScanResult
	})
}
