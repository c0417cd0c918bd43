// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// actor is the object or user that a printed line is about.
type actor string

const (
	you           actor = "you"
	registry      actor = "registry"
	imagePolicy   actor = "ImagePolicy"
	rollout       actor = "Rollout"
	ociRepository actor = "OCIRepository"
	kustomization actor = "Kustomization"
	deployment    actor = "Deployment"
	statefulSet   actor = "StatefulSet"
	coordination  actor = "Coordination"
	healthCheck   actor = "HealthCheck"
	quarantined   actor = "Quarantine"

	// staging and us are other environments.
	staging actor = "staging"
	us      actor = "us"
)

var actorColours = map[actor]string{
	you: "1;35", registry: "36", imagePolicy: "36", rollout: "1;34",
	ociRepository: "33", kustomization: "33", deployment: "37", statefulSet: "37", coordination: "34", healthCheck: "35", quarantined: "31", staging: "32", us: "32",
}

// tone defines how a line looks.
type tone int

const (
	plain tone = iota
	good
	bad
	order // a user's command
)

// line is one printed line.
type line struct {
	actor actor
	tone  tone
	text  string
}

// describe describes the changes between two versions of an object. before is nil when the
// object is new. It is a pure function.
func describe(before, after client.Object) []line {
	switch after := after.(type) {
	case *v1alpha1.Rollout:
		return narrateRollout(orEmpty[v1alpha1.Rollout](before), after)
	case *v1alpha1.HealthCheck:
		return narrateHealthCheck(orEmpty[v1alpha1.HealthCheck](before), after)
	case *imagev1.ImagePolicy:
		return narrateImagePolicy(orEmpty[imagev1.ImagePolicy](before), after)
	case *sourcev1.OCIRepository:
		return narrateOCIRepository(orEmpty[sourcev1.OCIRepository](before), after)
	case *kustomizev1.Kustomization:
		return narrateKustomization(orEmpty[kustomizev1.Kustomization](before), after)
	case *appsv1.Deployment:
		return narrateDeployment(orEmpty[appsv1.Deployment](before), after)
	case *appsv1.StatefulSet:
		return narrateZone(orEmpty[appsv1.StatefulSet](before), after)
	case *coordinationv1.DeploymentCoordination:
		return narrateCoordination(orEmpty[coordinationv1.DeploymentCoordination](before), after)
	case *v1alpha1.ReleaseQuarantine:
		return narrateQuarantine(orEmpty[v1alpha1.ReleaseQuarantine](before), after)
	case *corev1.Event:
		return narrateEvent(before, after)
	}
	return nil
}

// orEmpty returns the object, or an empty one if there is none.
func orEmpty[T any](object client.Object) *T {
	if typed, ok := any(object).(*T); ok && typed != nil {
		return typed
	}
	return new(T)
}

func says(a actor, t tone, format string, args ...any) line {
	return line{actor: a, tone: t, text: fmt.Sprintf(format, args...)}
}

// short shows only the first characters of a digest or a revision.
func short(revision string) string {
	name, digest, found := strings.Cut(revision, "sha256:")
	if !found || len(digest) <= 12 {
		return revision
	}
	return name + "sha256:" + digest[:12]
}
