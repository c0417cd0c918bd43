// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// digestScript is the scenario of a tag that is pushed again.
var digestScript = script{
	about: "a tag that is pushed again, and waits for its approval as any other release",
	steps: digestSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.0.0 Succeeded"),
		targetsCarry("1.0.0"), runs("registry.example/shop:1.0.0-again"), atRest,
	},
	commands: []string{
		"kubectl rollouts explain shop -n demo",
		"kubectl get ocirepository shop -n demo -o jsonpath='{.spec.ref}'",
	},
	tables:    []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("rollouts")},
	questions: [][]string{{"history", "shop", "-n", "demo"}},
	invite:    "See which content runs, for example:",
	command:   "kubectl rollouts status shop -n demo",
	watched:   ofReleases,
}

var digestSteps = []step{
	{
		title: "A release by its digest",
		intro: "The Rollout writes the tag 1.0.0 into the OCIRepository, and beside it the digest of its content. " +
			"Flux pulls the digest.",
		play: (*session).pinnedRelease,
	},
	{
		title: "The tag is pushed again",
		intro: "A RolloutGate lets nothing through. Then somebody pushes other content under the tag 1.0.0. " +
			"Without the digest, Flux would deploy it, past the gate.",
		play: (*session).pushedAgain,
	},
	{
		title: "Exactly this content is approved",
		intro: "The gate opens for the tag with this digest, and for nothing else. The content is promoted, and bakes.",
		play:  (*session).approvedContent,
	},
}

func (s *session) pinnedRelease(ctx context.Context) error {
	if _, err := s.plane.Registry.Push(ctx, s.Release("1.0.0")); err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	objects := s.objects()
	for _, object := range objects {
		switch o := object.(type) {
		case *imagev1.ImagePolicy:
			o.Spec.DigestReflectionPolicy, o.Spec.Interval = imagev1.ReflectAlways, &metav1.Duration{Duration: time.Second}
		case *sourcev1.OCIRepository:
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.DigestRefAnnotation, s.Name)
		}
	}
	s.printer.show(says(you, plain, "create the objects; the OCIRepository has the annotation %s", v1alpha1.DigestRefAnnotation))
	if err := s.create(ctx, objects...); err != nil {
		return err
	}
	if err := s.proves(ctx, 1, "1.0.0"); err != nil {
		return err
	}
	return s.must(ctx, pullsByDigest)
}

func (s *session) pushedAgain(ctx context.Context) error {
	gate := s.digestGate()
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: s.Name}, new(false)
	s.printer.show(says(you, plain, "create RolloutGate %s, which lets nothing through", gate.Name))
	if err := s.create(ctx, gate); err != nil {
		return err
	}
	if err := s.await(ctx, closedGate(gate.Name)); err != nil {
		return err
	}
	again := s.Release("1.0.0")
	for name, content := range again.Files {
		again.Files[name] = strings.ReplaceAll(content, s.image("1.0.0"), s.image("1.0.0-again"))
	}
	if err := s.push(ctx, again); err != nil {
		return err
	}
	held := all(heldContent, runs(s.image("1.0.0")), pullsByDigest)
	return s.staysHeld(ctx, held)
}

func (s *session) approvedContent(ctx context.Context) error {
	seen, _ := s.look()
	candidate, gate := seen.rollout.Status.ReleaseCandidates[0], s.digestGate()
	if err := s.plane.Client().Get(ctx, client.ObjectKeyFromObject(gate), gate); err != nil {
		return fmt.Errorf("read RolloutGate %s: %w", gate.Name, err)
	}
	before, approved := gate.DeepCopy(), candidate.Tag+"@"+*candidate.Digest
	gate.Spec.Passing, gate.Spec.AllowedVersions = new(true), &[]string{approved}
	s.printer.show(says(you, plain, "let RolloutGate %s allow %s@%s", gate.Name, candidate.Tag, short(*candidate.Digest)))
	if err := s.plane.Client().Patch(ctx, gate, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change RolloutGate %s: %w", gate.Name, err)
	}
	return s.must(ctx, current(2, "1.0.0", v1alpha1.BakeSucceeded), runs(s.image("1.0.0-again")), pullsByDigest)
}

func (s *session) digestGate() *v1alpha1.RolloutGate {
	return &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "approved"}}
}

// heldContent expects that other content of the current tag waits for the gate.
var heldContent = expectation{"the new content of 1.0.0 waits (" + v1alpha1.SomeGatesBlockingReason + ")", func(s *sights) string {
	candidates, current := s.rollout.Status.ReleaseCandidates, s.rollout.Current()
	if len(candidates) != 1 || candidates[0].Tag != current.Version.Tag || candidates[0].Digest == nil {
		return fmt.Sprintf("the candidates are %v", tagsOf(candidates))
	}
	if holds := candidates[0].Holds; len(holds) != 1 || holds[0].Reason != v1alpha1.SomeGatesBlockingReason {
		return fmt.Sprintf("it is held by %v", holds)
	}
	return ""
}}

// pullsByDigest expects that Flux has pulled the digest of the newest promotion.
var pullsByDigest = expectation{"Flux pulls the digest of the release", func(s *sights) string {
	ref, artifact, entry := s.ociRepository.Spec.Reference, s.ociRepository.Status.Artifact, s.rollout.Current()
	if ref == nil || artifact == nil || entry == nil || entry.Version.Digest == nil {
		return "it has pulled nothing yet"
	}
	if ref.Digest != *entry.Version.Digest || artifact.Revision != ref.Digest {
		return fmt.Sprintf("it pulls %s@%s, and has pulled %s", ref.Tag, short(ref.Digest), short(artifact.Revision))
	}
	return ""
}}
