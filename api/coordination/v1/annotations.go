// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations of a Deployment that a DeploymentCoordination selects.
const (
	// RolloutPausedAnnotation, with the value "true", pauses a Deployment. Users set it.
	// The coordination skips the Deployment, or waits for it if it is the active one.
	RolloutPausedAnnotation = "apps.containerinfra.nl/rollout-paused"
	// HeldByAnnotation names the DeploymentCoordination that paused the Deployment. The
	// controller writes it together with spec.paused. It removes it when no coordination
	// selects the Deployment any more.
	HeldByAnnotation = "apps.containerinfra.nl/held-by"
	// OrderAnnotation is an integer. A Deployment with a lower number rolls out first. A
	// Deployment without it has the order 0. Deployments with the same order go by name.
	OrderAnnotation = "apps.containerinfra.nl/order"
)

// RolloutPausedValue is the value of RolloutPausedAnnotation that takes effect.
const RolloutPausedValue = "true"
