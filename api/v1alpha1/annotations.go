// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations on a Rollout with which users, or tools that act for them, request
// something once. Their values are user input.
const (
	// BypassGatesAnnotation names a candidate that bypasses gates and schedules. The
	// promotion of that release removes it.
	BypassGatesAnnotation = "rollout.kuberik.com/bypass-gates"

	// PromoteAnnotation names a candidate that a user promotes, where an Environment leaves
	// promotions to users. Everything else that holds it back still does. The promotion of
	// that release removes it.
	PromoteAnnotation = "rollout.kuberik.com/promote"

	// ForceDeployAnnotation names a known release that is promoted once, like a pinned
	// one. spec.wantedVersion takes precedence.
	ForceDeployAnnotation = "rollout.kuberik.com/force-deploy"

	// DeployMessageAnnotation is the message of the next history entry that a user
	// causes. Any promotion removes it.
	DeployMessageAnnotation = "rollout.kuberik.com/deploy-message"

	// DeployUserAnnotation names the user who causes the next such entry. The controller
	// does not verify the name. Any promotion removes the annotation.
	DeployUserAnnotation = "rollout.kuberik.com/deploy-user"

	// UnblockFailedAnnotation, with the value "true", allows one automatic promotion
	// despite a failed bake, an earlier failure of the candidate, and Unhealthy
	// HealthChecks. It does not bypass gates.
	UnblockFailedAnnotation = "rollout.kuberik.com/unblock-failed"

	// RetryAnnotation, with any value, makes the controller re-evaluate the failed
	// current release. The controller always removes the annotation.
	RetryAnnotation = "rollout.kuberik.com/retry"

	// SuspendedByAnnotation, SuspendedAtAnnotation and SuspendedReasonAnnotation describe who
	// suspended the Rollout, when (RFC 3339) and why. The command line writes and removes them
	// together with spec.suspend. The controller does not read them.
	SuspendedByAnnotation     = "rollout.kuberik.com/suspended-by"
	SuspendedAtAnnotation     = "rollout.kuberik.com/suspended-at"
	SuspendedReasonAnnotation = "rollout.kuberik.com/suspended-reason"

	// AdoptAnnotation, with the value "true", adds a history entry with the version that the
	// targets carry, if a newer promotion than those of the history has written it. The
	// controller removes the annotation.
	AdoptAnnotation = "rollout.kuberik.com/adopt"
)

const (
	// RolloutAnnotation on an OCIRepository or a GitRepository names the Rollout that writes
	// its spec.ref.tag. Do not put any other rollout.kuberik.com annotation there: clients of
	// this API read the value of any such key as a Rollout's name.
	RolloutAnnotation = "rollout.kuberik.com/rollout"

	// SubstituteAnnotationPrefix and SubstituteAnnotationSuffix enclose the name of a
	// variable in an annotation on a Kustomization:
	// rollout.kuberik.com/substitute.<variable>.from. The annotation names the Rollout
	// that writes spec.postBuild.substitute[variable].
	SubstituteAnnotationPrefix = "rollout.kuberik.com/substitute."
	// SubstituteAnnotationSuffix is the end of the annotation's key.
	SubstituteAnnotationSuffix = ".from"

	// ValuesAnnotationPrefix and ValuesAnnotationSuffix enclose the path of a value in an
	// annotation on a HelmRelease: rollout.kuberik.com/values.<path>.from. The annotation
	// names the Rollout that writes this value in spec.values, always as a string. The
	// path consists of the keys of nested maps, joined by dots, such as image.tag. A key
	// has letters, digits, - and _. Items of lists have no path, because a merge patch
	// replaces a list as a whole. Kubernetes limits the key of an annotation, so a path
	// has at most 51 characters.
	ValuesAnnotationPrefix = "rollout.kuberik.com/values."
	// ValuesAnnotationSuffix is the end of the annotation's key.
	ValuesAnnotationSuffix = ".from"

	// DigestAnnotationPrefix begins the keys of annotations that name the Rollout which
	// writes the digest of its release into an object, in addition to the version. They have
	// a domain of their own, because clients read the value of any rollout.kuberik.com
	// annotation on an OCIRepository as the Rollout that writes its tag.
	DigestAnnotationPrefix = "digest.rollout.kuberik.com/"
	// DigestRefAnnotation on an OCIRepository names the Rollout that writes its
	// spec.ref.digest. It needs RolloutAnnotation with the same name.
	DigestRefAnnotation = "digest.rollout.kuberik.com/ref"
	// DigestSubstituteAnnotationPrefix, followed by the name of a variable, is an
	// annotation on a Kustomization: the variable gets the digest, as sha256:<hex>.
	DigestSubstituteAnnotationPrefix = "digest.rollout.kuberik.com/substitute."
	// DigestValuesAnnotationPrefix, followed by the path of a value, is an annotation on a
	// HelmRelease: the value gets the digest, as sha256:<hex>.
	DigestValuesAnnotationPrefix = "digest.rollout.kuberik.com/values."

	// PromotionAnnotationPrefix, followed by the name of a Rollout, is an annotation on the
	// objects that this Rollout writes. Its value is the id of the history entry for which
	// the object was written last. A name with more than 63 characters is truncated and ends
	// in a hash.
	PromotionAnnotationPrefix = "promotion.rollout.kuberik.com/"

	// KustomizationAnnotation on a HealthCheck of class kustomization names the
	// Kustomization to evaluate: "name" or "namespace/name".
	KustomizationAnnotation = "healthcheck.kuberik.com/kustomization"

	// HelmReleaseAnnotation on a HealthCheck of class kustomization names the HelmRelease
	// to evaluate, in the same form. A HealthCheck has one of the two annotations.
	HelmReleaseAnnotation = "healthcheck.kuberik.com/helmrelease"

	// RequeueIntervalAnnotation on a HealthCheck of class kustomization is how often
	// objects that cannot be watched are read, as a Go duration.
	RequeueIntervalAnnotation = "healthcheck.kuberik.com/requeue-interval"

	// ResetAnnotationPrefix, followed by the UID of a Rollout, is an annotation on a
	// HealthCheck. It records the promotion for which that Rollout last reset the check,
	// and the lastErrorTime that the reset removed.
	ResetAnnotationPrefix = "reset.rollout.kuberik.com/"

	// ReconcileRequestAnnotation, on any object that Flux or this controller reconciles,
	// requests a reconciliation. Its value is an opaque token.
	ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"

	// PrettyNameAnnotation is the display name of a gate, or, on a schedule, of its
	// gates.
	PrettyNameAnnotation = "gate.kuberik.com/pretty-name"
	// DescriptionAnnotation is the description of a gate, or, on a schedule, of its
	// gates, to show to users.
	DescriptionAnnotation = "gate.kuberik.com/description"
	// ApprovalAnnotation on a gate describes who changed its allowed versions last, and why:
	// "1.5.0 approved by ann: tested". The command line writes it. The controller does not
	// read it.
	ApprovalAnnotation = "gate.kuberik.com/approval"
)

// MirrorLabel is "true" on the gates that show clients what else holds releases.
const MirrorLabel = "rollout-controller.kuberik.com/mirror"

// Labels of the gates that schedules create.
const (
	// ScheduleKindLabel is the schedule's kind: RolloutSchedule or
	// ClusterRolloutSchedule.
	ScheduleKindLabel = "gate.kuberik.com/schedule-kind"
	// ScheduleNameLabel is the schedule's name. A name that is too long for a label is
	// truncated and ends in a hash.
	ScheduleNameLabel = "gate.kuberik.com/schedule-name"
	// ScheduleNamespaceLabel is the namespace of a RolloutSchedule.
	ScheduleNamespaceLabel = "gate.kuberik.com/schedule-namespace"
	// RolloutNameLabel is the Rollout's name, truncated in the same way as the
	// schedule's.
	RolloutNameLabel = "gate.kuberik.com/rollout-name"
)

// Labels of the Jobs that HealthChecks of class job create.
const (
	// HealthCheckNameLabel is the HealthCheck's name. A name that is too long for a label
	// is truncated and ends in a hash.
	HealthCheckNameLabel = "healthcheck.kuberik.com/name"
	// RolloutUIDLabel is the UID of the Rollout for whose promotion the Job runs.
	RolloutUIDLabel = "healthcheck.kuberik.com/rollout-uid"
)
