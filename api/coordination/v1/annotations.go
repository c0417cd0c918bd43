// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations of a Deployment that a DeploymentCoordination selects.
const (
	// RolloutPausedAnnotation holds a Deployment for as long as its value is
	// "true". It is for people: the coordination skips the Deployment, or, if it
	// is the active one, waits for it.
	RolloutPausedAnnotation = "apps.containerinfra.nl/rollout-paused"
	// HeldByAnnotation names the DeploymentCoordination that paused the
	// Deployment. It is written together with spec.paused, and removed when no
	// coordination selects the Deployment any more.
	HeldByAnnotation = "apps.containerinfra.nl/held-by"
	// OrderAnnotation is an integer; a lower one goes first. Without it a
	// Deployment has the order 0. Among equals the name decides.
	OrderAnnotation = "apps.containerinfra.nl/order"
)

// RolloutPausedValue is the value with which RolloutPausedAnnotation holds.
const RolloutPausedValue = "true"
