// SPDX-License-Identifier: Apache-2.0

package v1

// Condition types of a DeploymentCoordination.
const (
	// ReadyCondition is True when every selected Deployment is rolled out.
	ReadyCondition = "Ready"
	// ProgressingCondition is True while a Deployment rolls out or waits to roll out.
	ProgressingCondition = "Progressing"
	// DegradedCondition is True when something has failed.
	DegradedCondition = "Degraded"
	// StalledCondition is True when nothing continues until a user changes something. It
	// is absent otherwise.
	StalledCondition = "Stalled"
	// HoldModeCondition shows what pauses waiting Deployments at the moment they are
	// created or changed. It is True if the API server does.
	HoldModeCondition = "HoldMode"
)

// Reasons of the conditions Ready, Progressing, Degraded and Stalled.
const (
	// AllDeploymentsReadyReason: every selected Deployment is rolled out.
	AllDeploymentsReadyReason = "AllDeploymentsReady"
	// DeploymentsInProgressReason: at least one Deployment is not rolled out yet.
	DeploymentsInProgressReason = "DeploymentsInProgress"
	// DeploymentRollingOutReason: at least one Deployment rolls out or bakes.
	DeploymentRollingOutReason = "DeploymentRollingOut"
	// DeploymentsPendingReason: Deployments wait, and none is active.
	DeploymentsPendingReason = "DeploymentsPending"
	// ErrorReason: something could not be read or written.
	ErrorReason = "Error"
	// NoErrorsReason: nothing has failed.
	NoErrorsReason = "NoErrors"
	// RolloutFailedReason: an active Deployment has failed to roll out. It keeps its
	// turn, and no other begins. Thus a corrected or an earlier template rolls out at once.
	RolloutFailedReason = "RolloutFailed"
	// ActiveDeploymentHeldReason: a user has paused the active Deployment by annotation.
	// It keeps its turn.
	ActiveDeploymentHeldReason = "ActiveDeploymentHeld"
	// WaitingForCoordinationReason: another coordination has the turn, or gives none
	// because its selector is a mistake. It shares a Deployment with this one, directly or
	// through other coordinations.
	WaitingForCoordinationReason = "WaitingForCoordination"
	// EmptySelectorReason: the selector selects every Deployment of the namespace, so
	// no Deployment gets a turn. The turn that was given goes on.
	EmptySelectorReason = "EmptySelector"
	// InvalidSelectorReason: the selector is invalid, so no Deployment gets a turn. The
	// turn that was given goes on.
	InvalidSelectorReason = "InvalidSelector"
	// OtherCoordinatorReason: another controller of this API is installed, so this one
	// changes nothing.
	OtherCoordinatorReason = "OtherCoordinatorInstalled"
)

// Reasons of the condition HoldMode.
const (
	// AdmissionPolicyReason: the API server pauses with a MutatingAdmissionPolicy.
	AdmissionPolicyReason = "AdmissionPolicy"
	// AdmissionWebhookReason: the API server calls the controller's webhook.
	AdmissionWebhookReason = "AdmissionWebhook"
	// ControllerOnlyReason: the controller pauses a Deployment after it was written.
	ControllerOnlyReason = "ControllerOnly"
)

// Reasons of the events about a DeploymentCoordination.
const (
	// DeploymentActivatedEvent: a Deployment was given the turn. It may already have
	// started to roll out without it.
	DeploymentActivatedEvent = "DeploymentActivated"
	// DeploymentUnpausedEvent: a Deployment was unpaused, and this was observed.
	DeploymentUnpausedEvent = "DeploymentUnpaused"
	// DeploymentPausedEvent: a Deployment was paused.
	DeploymentPausedEvent = "DeploymentPaused"
	// ActiveDeploymentReadyEvent: the active Deployment is rolled out, and has
	// been ready for minReadySeconds.
	ActiveDeploymentReadyEvent = "ActiveDeploymentReady"
	// ActiveDeploymentChangedEvent: the turn went from one Deployment to another.
	ActiveDeploymentChangedEvent = "ActiveDeploymentChanged"
	// ActiveDeploymentClearedEvent: the turn of a Deployment is over, and no other gets it.
	ActiveDeploymentClearedEvent = "ActiveDeploymentCleared"

	// PauseFailedEvent: a Deployment could not be paused.
	PauseFailedEvent = "PauseFailed"
	// UnpauseFailedEvent: a Deployment could not be unpaused.
	UnpauseFailedEvent = "UnpauseFailed"
	// ActivationFailedEvent: the choice of the next Deployment could not be written to
	// the status, so the Deployment was not given the turn.
	ActivationFailedEvent = "ActivationFailed"
	// StatusUpdateFailedEvent: the status could not be written.
	StatusUpdateFailedEvent = "StatusUpdateFailed"
	// PausedByManifestEvent: another client keeps writing or removing spec.paused of a
	// Deployment.
	PausedByManifestEvent = "PausedByManifest"
	// IdlePausedEvent: a Deployment that Flux applies is paused while idle. Therefore
	// Flux will never find it ready.
	IdlePausedEvent = "IdlePaused"
)
