// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations on a Rollout by which people, and tools on their behalf, ask for
// something once. Their values are user input.
const (
	// BypassGatesAnnotation names a candidate that goes past gates and
	// schedules. It ends with the promotion of that release.
	BypassGatesAnnotation = "rollout.kuberik.com/bypass-gates"

	// ForceDeployAnnotation names a known release that is promoted like a
	// pinned one, once. spec.wantedVersion takes precedence.
	ForceDeployAnnotation = "rollout.kuberik.com/force-deploy"

	// DeployMessageAnnotation is the message of the next history entry that a
	// person causes. Any promotion removes it.
	DeployMessageAnnotation = "rollout.kuberik.com/deploy-message"

	// DeployUserAnnotation names who causes the next such entry. It is a claim
	// that nobody checks. Any promotion removes it.
	DeployUserAnnotation = "rollout.kuberik.com/deploy-user"

	// UnblockFailedAnnotation, with the value "true", lets one automatic
	// promotion past a failed bake, a failure of the candidate before, and
	// Unhealthy HealthChecks; not past gates.
	UnblockFailedAnnotation = "rollout.kuberik.com/unblock-failed"

	// RetryAnnotation, with any value, has the failed current release judged
	// anew. The controller always removes it.
	RetryAnnotation = "rollout.kuberik.com/retry"
)

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

	// PrettyNameAnnotation on a gate, or on a schedule for its gates, is a name
	// to show to people.
	PrettyNameAnnotation = "gate.kuberik.com/pretty-name"
	// DescriptionAnnotation on a gate, or on a schedule for its gates, is a
	// text to show to people.
	DescriptionAnnotation = "gate.kuberik.com/description"
)

// Labels of the gates that schedules keep.
const (
	// ScheduleKindLabel is RolloutSchedule or ClusterRolloutSchedule.
	ScheduleKindLabel = "gate.kuberik.com/schedule-kind"
	// ScheduleNameLabel is the schedule's name. One that is too long for a label
	// is cut, and ends in a hash.
	ScheduleNameLabel = "gate.kuberik.com/schedule-name"
	// ScheduleNamespaceLabel is a RolloutSchedule's namespace.
	ScheduleNamespaceLabel = "gate.kuberik.com/schedule-namespace"
	// RolloutNameLabel is the Rollout's name, cut like the schedule's.
	RolloutNameLabel = "gate.kuberik.com/rollout-name"
)
