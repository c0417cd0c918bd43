// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types of a DeploymentCoordination.
const (
	// ReadyCondition is True when every selected Deployment is rolled out.
	ReadyCondition = "Ready"
	// ProgressingCondition is True while a Deployment rolls out, or waits to.
	ProgressingCondition = "Progressing"
	// DegradedCondition is True when something has failed.
	DegradedCondition = "Degraded"
	// StalledCondition is True when nothing goes on until somebody changes
	// something. It is absent otherwise.
	StalledCondition = "Stalled"
	// HoldModeCondition says what keeps Deployments that wait from rolling at
	// the moment they are created or changed. It is True if the API server does.
	HoldModeCondition = "HoldMode"
)

// Reasons of the conditions Ready, Progressing, Degraded and Stalled.
const (
	// AllDeploymentsReadyReason: every selected Deployment is rolled out.
	AllDeploymentsReadyReason = "AllDeploymentsReady"
	// DeploymentsInProgressReason: some Deployment is not rolled out yet.
	DeploymentsInProgressReason = "DeploymentsInProgress"
	// DeploymentRollingOutReason: one Deployment rolls out, or bakes.
	DeploymentRollingOutReason = "DeploymentRollingOut"
	// DeploymentsPendingReason: Deployments wait, and none is active.
	DeploymentsPendingReason = "DeploymentsPending"
	// ErrorReason: something could not be read or written.
	ErrorReason = "Error"
	// NoErrorsReason: nothing has failed.
	NoErrorsReason = "NoErrors"
	// RolloutFailedReason: the active Deployment has failed to roll out. It keeps
	// its turn, so that a corrected or an earlier template goes straight through.
	RolloutFailedReason = "RolloutFailed"
	// ActiveDeploymentHeldReason: somebody holds the active Deployment by
	// annotation. It keeps its turn.
	ActiveDeploymentHeldReason = "ActiveDeploymentHeld"
	// WaitingForCoordinationReason: another coordination, which shares a
	// Deployment with this one directly or through others, has the turn.
	WaitingForCoordinationReason = "WaitingForCoordination"
	// EmptySelectorReason: the selector selects every Deployment of the
	// namespace, so nothing is touched.
	EmptySelectorReason = "EmptySelector"
	// InvalidSelectorReason: the selector cannot be understood, so nothing is
	// touched.
	InvalidSelectorReason = "InvalidSelector"
	// OtherCoordinatorReason: another controller of this API is installed, so
	// nothing is touched.
	OtherCoordinatorReason = "OtherCoordinatorInstalled"
)

// Reasons of the condition HoldMode.
const (
	// AdmissionPolicyReason: the API server pauses by a MutatingAdmissionPolicy.
	AdmissionPolicyReason = "AdmissionPolicy"
	// AdmissionWebhookReason: the API server asks the controller's webhook.
	AdmissionWebhookReason = "AdmissionWebhook"
	// ControllerOnlyReason: the controller pauses after the fact.
	ControllerOnlyReason = "ControllerOnly"
)

// Reasons of the events about a DeploymentCoordination.
const (
	// DeploymentActivatedEvent: a Deployment was given the turn, or had begun to
	// roll by itself and has it now.
	DeploymentActivatedEvent = "DeploymentActivated"
	// DeploymentUnpausedEvent: a Deployment was released, and seen to be.
	DeploymentUnpausedEvent = "DeploymentUnpaused"
	// DeploymentPausedEvent: a Deployment was paused.
	DeploymentPausedEvent = "DeploymentPaused"
	// ActiveDeploymentReadyEvent: the active Deployment is rolled out, and has
	// been ready for minReadySeconds.
	ActiveDeploymentReadyEvent = "ActiveDeploymentReady"
	// ActiveDeploymentChangedEvent: the turn went from one Deployment to another.
	ActiveDeploymentChangedEvent = "ActiveDeploymentChanged"
	// ActiveDeploymentClearedEvent: nobody has the turn any more.
	ActiveDeploymentClearedEvent = "ActiveDeploymentCleared"

	// PauseFailedEvent: a Deployment could not be paused.
	PauseFailedEvent = "PauseFailed"
	// UnpauseFailedEvent: a Deployment could not be released.
	UnpauseFailedEvent = "UnpauseFailed"
	// ActivationFailedEvent: the choice of the next Deployment could not be
	// written down, so it was not made.
	ActivationFailedEvent = "ActivationFailed"
	// StatusUpdateFailedEvent: the status could not be written.
	StatusUpdateFailedEvent = "StatusUpdateFailed"
	// PausedByManifestEvent: somebody else keeps writing spec.paused of a
	// Deployment, or removing it.
	PausedByManifestEvent = "PausedByManifest"
	// IdlePausedEvent: a Deployment that Flux applies is paused while idle, so
	// that Flux will never find it ready.
	IdlePausedEvent = "IdlePaused"
)
