// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openFollowing opens an env whose controller follows ExternalArtifacts.
func openFollowing(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := open(t, objects...)
	s.artifacts = true
	s.restart()
	return s
}

// shopOf returns a Rollout, and a generator that makes an artifact of its OCIRepository.
func shopOf(generator *fixture.GeneratorBuilder, more ...client.Object) []client.Object {
	return append([]client.Object{
		fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(),
		fixture.MakeKustomization("shop").From(sourcev1.ExternalArtifactKind, "shop").Obj(),
		generator.Obj(), fixture.MakeRollout("shop").BakeTime(time.Minute).Obj(),
	}, more...)
}

// generatorBuilds plays source-watcher: it writes the artifacts, and then the status of the
// generator.
func (s *testEnv) generatorBuilds(files fixture.Files) {
	stored := s.generator()
	var sources []client.Object
	for _, from := range stored.Spec.Sources {
		var source client.Object = &sourcev1.OCIRepository{}
		if from.Kind == sourcev1.GitRepositoryKind {
			source = &sourcev1.GitRepository{}
		}
		s.Expect(s.Get(s.Ctx, s.Key(from.Name), source)).To(Succeed())
		sources = append(sources, source)
	}
	s.built(stored, files, sources...)
}

func (s *testEnv) generator() *generatorv1.ArtifactGenerator {
	stored := &generatorv1.ArtifactGenerator{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), stored)).To(Succeed())
	return stored
}

func (s *testEnv) built(stored *generatorv1.ArtifactGenerator, files fixture.Files, sources ...client.Object) {
	builder := fixture.GeneratorFrom(stored)
	for _, made := range builder.Builds(files, sources...) {
		s.store(made, made.Status)
	}
	stored.Status = builder.Obj().Status
	s.Expect(s.Status().Update(s.Ctx, stored)).To(Succeed())
}

func (s *testEnv) store(made *sourcev1.ExternalArtifact, status sourcev1.ExternalArtifactStatus) {
	stored := &sourcev1.ExternalArtifact{}
	if err := s.Get(s.Ctx, s.Key(made.Name), stored); err != nil {
		s.Expect(client.IgnoreNotFound(err)).To(Succeed())
		stored = made.DeepCopy()
		s.Expect(s.Create(s.Ctx, stored)).To(Succeed())
	}
	stored.Status = status
	s.Expect(s.Status().Update(s.Ctx, stored)).To(Succeed())
}

// kustomizationApplies plays kustomize-controller: it applies what the artifact is now.
func (s *testEnv) kustomizationApplies() { s.appliesArtifact("shop") }

func (s *testEnv) appliesArtifact(name string) {
	made, k := &sourcev1.ExternalArtifact{}, &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, s.Key(name), made)).To(Succeed())
	s.Expect(s.Get(s.Ctx, s.Key(name), k)).To(Succeed())
	k.Status.ObservedGeneration = k.Generation
	k.Status.LastAppliedRevision, k.Status.LastAttemptedRevision = made.Status.Artifact.Revision, made.Status.Artifact.Revision
	fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionTrue, "applied")
	s.Expect(s.Status().Update(s.Ctx, k)).To(Succeed())
}

func (s *testEnv) stateOf(kind, name string) v1alpha1.TargetStatus {
	for _, t := range s.rollout("shop").Status.Targets {
		if t.Kind == kind && t.Name == name {
			return t
		}
	}
	return v1alpha1.TargetStatus{}
}

func TestReleaseIsAppliedOnceItsArtifactIs(t *testing.T) {
	for _, revision := range []string{"", "@app"} {
		t.Run(revision, func(t *testing.T) {
			generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").Makes("shop", revision, "app")
			s := openFollowing(t, shopOf(generator)...)
			s.rest("shop")
			s.fluxPulls()
			s.rest("shop")
			s.Expect(s.stateOf("Kustomization", "shop").Message).To(Equal("ArtifactGenerator shop has not made its ExternalArtifact shop yet"))
			s.generatorBuilds(nil)
			s.rest("shop")
			s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetPending))
			s.kustomizationApplies()
			s.rest("shop")
			s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetApplied))
			s.Expect(s.stateOf("OCIRepository", "shop").Reason).To(BeEmpty(), "the Kustomization applies it")

			s.Pass(time.Minute)
			s.rest("shop")
			s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))

			s.release("shop", "1.1.0")
			s.rest("shop")
			s.fluxPulls()
			s.rest("shop")
			s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetPending), "it runs the release before")
			s.generatorBuilds(nil)
			s.kustomizationApplies()
			s.rest("shop")
			s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetApplied))

			s.Wire.Forget()
			s.rest("shop")
			s.Expect(s.Wire.Writes()).To(BeEmpty())
		})
	}
}

// A failure of a generator is shown, and fails nothing before the deadline.
func TestGeneratorThatFailsIsShown(t *testing.T) {
	generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").Makes("shop", "@app", "app")
	s := openFollowing(t, shopOf(generator)...)
	s.rest("shop")
	s.fluxPulls()
	s.ChangeStatus(generator.Obj(), func(o client.Object) {
		g := o.(*generatorv1.ArtifactGenerator)
		fluxSays(&g.Status.Conditions, g.Generation, metav1.ConditionFalse, "no such file")
		g.Status.Conditions[0].Reason = "BuildFailed"
	})
	s.rest("shop")
	s.Expect(s.stateOf("Kustomization", "shop")).To(And(HaveField("State", v1alpha1.TargetPending),
		HaveField("Reason", v1alpha1.TargetArtifactFailed),
		HaveField("Message", "ArtifactGenerator shop has failed (BuildFailed): no such file")))
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.generatorBuilds(nil)
	s.kustomizationApplies()
	s.rest("shop")
	s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetApplied))
}

// Content proves nothing while the generator has not seen all sources as they are now.
func TestAnotherSourceChangesWhileItIsCompared(t *testing.T) {
	config := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: fixture.Namespace},
		Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/config", Interval: metav1.Duration{Duration: time.Hour}}}
	generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").
		Takes("config", sourcev1.GitRepositoryKind, "config").Makes("shop", "", "app", "config")
	s := openFollowing(t, shopOf(generator, config)...)
	at := func(revision string) {
		s.ChangeStatus(config, func(o client.Object) { o.(*sourcev1.GitRepository).Status.Artifact = fixture.Artifact(revision) })
	}
	at("main@sha1:1")
	s.rest("shop")
	s.fluxPulls()
	s.generatorBuilds(nil)
	at("main@sha1:2")
	s.kustomizationApplies()
	s.rest("shop")
	s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetPending))
	s.generatorBuilds(nil)
	s.kustomizationApplies()
	s.rest("shop")
	s.Expect(s.stateOf("Kustomization", "shop").State).To(Equal(v1alpha1.TargetApplied))
}

// What one generator takes, and the controller may not read, holds only what needs its artifact.
func TestSourceThatMayNotBeReadHoldsOneTarget(t *testing.T) {
	generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").
		Takes("files", sourcev1.BucketKind, "files").Makes("shop", "", "app", "files")
	s := openFollowing(t, shopOf(generator, fixture.MakeRepository("other").DrivenBy("shop").Tag("0.0.1").Obj())...)
	s.reconciler.APIReader = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*sourcev1.Bucket); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "buckets"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	s.rest("shop")
	s.fluxPulls()
	pulled := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), pulled)).To(Succeed())
	s.built(s.generator(), nil, pulled, &sourcev1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Name: "files"}, Status: sourcev1.BucketStatus{Artifact: fixture.Artifact("1")},
	})
	s.kustomizationApplies()
	s.rest("shop")
	s.Expect(s.stateOf("OCIRepository", "other").State).To(Equal(v1alpha1.TargetApplied))
	s.Expect(s.stateOf("Kustomization", "shop")).To(And(HaveField("State", v1alpha1.TargetPending), HaveField("Reason", v1alpha1.TargetArtifactUnproven),
		HaveField("Message", "the controller may not read Bucket files, which ArtifactGenerator shop takes, so it cannot compare what the generator has seen: "+
			"allow it, or set the revision of the artifact to the alias of what the Rollout writes")))
}

// A generator is compared once for each state, however many artifacts it makes.
func TestManyArtifactsOfOneGenerator(t *testing.T) {
	const many = 84
	generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").Takes("files", sourcev1.BucketKind, "files")
	var parts []client.Object
	for i := range many {
		name := fmt.Sprintf("part-%d", i)
		generator.Makes(name, "", "app", "files")
		parts = append(parts, fixture.MakeKustomization(name).From(sourcev1.ExternalArtifactKind, name).Obj())
	}
	files := &sourcev1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: fixture.Namespace},
		Spec: sourcev1.BucketSpec{BucketName: "files", Endpoint: "files.example.com", Interval: metav1.Duration{Duration: time.Hour}}}
	objects := append(parts, fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("0.0.1").Obj(), generator.Obj(), files, fixture.MakeRollout("shop").BakeTime(time.Minute).Obj())
	s, compared := openFollowing(t, objects...), 0
	s.ChangeStatus(files, func(o client.Object) { o.(*sourcev1.Bucket).Status.Artifact = fixture.Artifact("1") })
	s.reconciler.APIReader = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*sourcev1.Bucket); is {
				compared++
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	s.rest("shop")
	s.fluxPulls()
	pulled := &sourcev1.OCIRepository{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), pulled)).To(Succeed())
	s.built(s.generator(), nil, pulled, files)
	for i := range many {
		s.appliesArtifact(fmt.Sprintf("part-%d", i))
	}
	s.rest("shop")
	s.Pass(time.Minute)
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
	s.Expect(compared).To(BeNumerically("<=", 3), "once, and again before a bake begins and ends")
	compared = 0
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(compared).To(BeZero())
}

// Events of what a release reaches lead to its Rollout.
func TestArtifactsLeadToTheirRollout(t *testing.T) {
	generator := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").Makes("shop", "@app", "app")
	s := openFollowing(t, shopOf(generator)...)
	s.fluxPulls()
	s.generatorBuilds(nil)
	want := []ctrl.Request{{NamespacedName: s.Key("shop")}}
	made, g, k := &sourcev1.ExternalArtifact{}, &generatorv1.ArtifactGenerator{}, &kustomizev1.Kustomization{}
	for _, o := range []client.Object{made, g, k} {
		s.Expect(s.Get(s.Ctx, s.Key("shop"), o)).To(Succeed())
	}
	c := s.reconciler.concerned()
	s.Expect(c.rolloutsOfGenerator(s.Ctx, g)).To(Equal(want))
	s.Expect(c.rolloutsOfArtifact(s.Ctx, made)).To(ContainElement(want[0]))
	s.Expect(c.rolloutsOfConsumer(s.Ctx, k)).To(Equal(want))
	s.Expect(c.rolloutsOfSourceElsewhere(s.Ctx, k)).To(BeEmpty())

	far := fixture.MakeKustomization("far").InNamespace("elsewhere").From(sourcev1.ExternalArtifactKind, "shop").FromNamespace(s.Namespace).Obj()
	s.Expect(c.rolloutsOfConsumer(s.Ctx, far)).To(BeEmpty(), "how a stranger fares does not matter")
	s.Expect(c.rolloutsOfSourceElsewhere(s.Ctx, far)).To(Equal(want))
	s.Expect(consumptionChanged().Update(event.UpdateEvent{ObjectOld: far, ObjectNew: far})).To(BeFalse())
	s.Expect(consumptionChanged().Update(event.UpdateEvent{ObjectOld: fixture.MakeKustomization("far").InNamespace("elsewhere").Obj(), ObjectNew: far})).To(BeTrue())
}
