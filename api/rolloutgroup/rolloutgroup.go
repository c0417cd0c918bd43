// SPDX-License-Identifier: Apache-2.0

// Package rolloutgroup contains the names that users write on StatefulSets, and the
// reasons that the controller reports, when it replaces the pods of several StatefulSets
// one set at a time.
//
// The label, the annotations and their meaning are those of an existing controller, whose
// manifests keep working.
//
// The package imports nothing, so clients can use the names without depending on the
// controller.
package rolloutgroup

// Label puts a StatefulSet into the group that its value names. Groups with different
// names, or in different namespaces, are independent.
const Label = "rollout-group"

// Annotations of a StatefulSet in a group.
const (
	// MaxUnavailableAnnotation is how many pods of the set may be unavailable because of
	// this controller. The value is a positive number, or a percentage of spec.replicas
	// from 1% to 100%. A percentage is rounded down, but not below 1. The default is 1.
	// It also applies if the value is invalid.
	MaxUnavailableAnnotation = "rollout-max-unavailable"
	// PausedAnnotation, with the value "true", keeps the controller from changing the
	// set. Other sets still wait until its pods are available.
	PausedAnnotation = "grafana.com/rollout-paused"
)

// PausedValue is the value of PausedAnnotation that pauses the set.
const PausedValue = "true"

// UnsupportedAnnotations returns the annotations that other controllers of rollout groups
// support and this one does not. An event reports each set that has one of them.
func UnsupportedAnnotations() []string {
	return []string{
		"grafana.com/rollout-downscale-leader",
		"grafana.com/rollout-upscale-only-when-leader-ready",
		"grafana.com/rollout-force-replicas",
		"grafana.com/rollout-mirror-replicas-from-resource-name",
		"grafana.com/rollout-mirror-replicas-from-resource-kind",
		"grafana.com/rollout-mirror-replicas-from-resource-api-version",
		"grafana.com/rollout-mirror-replicas-from-resource-write-back",
		"grafana.com/rollout-delayed-downscale",
		"grafana.com/rollout-prepare-delayed-downscale-url",
		"grafana.com/prepare-downscale-http-path",
		"grafana.com/prepare-downscale-http-port",
	}
}

// UnsupportedLabels returns the labels of this kind.
func UnsupportedLabels() []string {
	return []string{
		"grafana.com/min-time-between-zones-downscale",
		"grafana.com/no-downscale",
		"grafana.com/prepare-downscale",
	}
}

// Reasons of the events about a StatefulSet in a group.
const (
	// RolloutStartedEvent: the set has its turn, and its first pods are being replaced.
	RolloutStartedEvent = "RolloutStarted"
	// PodReplacedEvent: a pod was deleted or evicted. The StatefulSet controller creates
	// it again.
	PodReplacedEvent = "PodReplaced"
	// RolloutBlockedEvent: pods of the set must be replaced, but cannot be replaced now.
	RolloutBlockedEvent = "RolloutBlocked"
	// RolloutFinishedEvent: all pods of the set are up to date and available.
	RolloutFinishedEvent = "RolloutFinished"
	// GroupInvalidEvent: the set has an update strategy that is not allowed in a group.
	GroupInvalidEvent = "GroupInvalid"
	// InvalidMaxUnavailableEvent: the annotation rollout-max-unavailable is invalid.
	InvalidMaxUnavailableEvent = "InvalidMaxUnavailable"
	// NotObservedEvent: the status of the set has been of an older generation for minutes.
	NotObservedEvent = "NotObserved"
	// UnsupportedEvent: the set has a label or an annotation that is not supported.
	UnsupportedEvent = "Unsupported"
)

// Reasons why pods of a group are not replaced. They are the values of the label "reason"
// of the metric rollout_operator_group_blocked.
const (
	// NotOnDeleteReason: a set of the group has another update strategy.
	NotOnDeleteReason = "NotOnDelete"
	// SetNotReadyReason: another set is not ready.
	SetNotReadyReason = "SetNotReady"
	// SetsNotReadyReason: several other sets are not ready.
	SetsNotReadyReason = "SetsNotReady"
	// PodsNotReadyReason: outdated pods of the set are not ready. They use up the number
	// of pods that may be unavailable.
	PodsNotReadyReason = "PodsNotReady"
	// PodsStuckReason: pods of the wanted revision do not start.
	PodsStuckReason = "PodsStuck"
	// RolloutPausedReason: all outdated sets are paused by annotation.
	RolloutPausedReason = "RolloutPaused"
	// EvictionRefusedReason: a PodDisruptionBudget does not allow the eviction now.
	EvictionRefusedReason = "EvictionRefused"
)

// BlockedReasons returns all values of that label.
func BlockedReasons() []string {
	return []string{
		NotOnDeleteReason, SetNotReadyReason, SetsNotReadyReason, PodsNotReadyReason, PodsStuckReason, RolloutPausedReason,
		EvictionRefusedReason,
	}
}
