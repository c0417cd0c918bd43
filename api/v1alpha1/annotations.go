// SPDX-License-Identifier: Apache-2.0

package v1alpha1

const (
	// RolloutAnnotation on an OCIRepository names the Rollout that writes its
	// spec.ref.tag. Put no other rollout.kuberik.com annotation there: clients
	// of this API take the value of any such key for a Rollout's name.
	RolloutAnnotation = "rollout.kuberik.com/rollout"

	// SubstituteAnnotationPrefix and SubstituteAnnotationSuffix enclose the
	// name of a variable in the annotation on a Kustomization that names the
	// Rollout which writes spec.postBuild.substitute[variable]:
	// rollout.kuberik.com/substitute.<variable>.from.
	SubstituteAnnotationPrefix = "rollout.kuberik.com/substitute."
	// SubstituteAnnotationSuffix ends the annotation's key.
	SubstituteAnnotationSuffix = ".from"

	// KustomizationAnnotation on a HealthCheck of class kustomization names
	// the Kustomization to evaluate: "name" or "namespace/name".
	KustomizationAnnotation = "healthcheck.kuberik.com/kustomization"

	// RequeueIntervalAnnotation on a HealthCheck of class kustomization is a
	// Go duration.
	RequeueIntervalAnnotation = "healthcheck.kuberik.com/requeue-interval"

	// ResetAnnotationPrefix, followed by the UID of a Rollout, on a
	// HealthCheck says for which promotion that Rollout last reset the check,
	// and which lastErrorTime the reset removed.
	ResetAnnotationPrefix = "reset.rollout.kuberik.com/"

	// ReconcileRequestAnnotation on any object that Flux or this controller
	// reconciles asks for a reconciliation; its value is an opaque token.
	ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"
)
