// SPDX-License-Identifier: Apache-2.0

// Package rolloutgroup names what people write on StatefulSets, and what they
// are told, when pods of several StatefulSets are replaced one set at a time.
//
// The label, the annotations and what they mean are those of an existing
// controller, whose manifests keep working.
//
// The package imports nothing, so that clients can use the names without taking
// on anything of the controller.
package rolloutgroup

// Label of a StatefulSet puts it into the group of that name. Groups of different
// names, or in different namespaces, have nothing to do with each other.
const Label = "rollout-group"

// Annotations of a StatefulSet in a group.
const (
	// MaxUnavailableAnnotation is how many pods of the set may be unavailable
	// because of us: a positive number, or a percentage of spec.replicas from 1%
	// to 100%, which is rounded down, though not below 1. The default is 1, and
	// so is what cannot be understood.
	MaxUnavailableAnnotation = "rollout-max-unavailable"
	// PausedAnnotation, with the value "true", has the set left as it is. Other
	// sets still wait until its pods are available.
	PausedAnnotation = "grafana.com/rollout-paused"
)

// PausedValue is the value with which PausedAnnotation pauses.
const PausedValue = "true"

// UnsupportedAnnotations are annotations that other controllers of rollout groups
// obey and this one does not. An event says so of each set that has one.
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

// UnsupportedLabels are the same for labels.
func UnsupportedLabels() []string {
	return []string{
		"grafana.com/min-time-between-zones-downscale",
		"grafana.com/no-downscale",
		"grafana.com/prepare-downscale",
	}
}

// Reasons of the events about a StatefulSet in a group.
const (
	// RolloutStartedEvent: the set has its turn, and its first pods are replaced.
	RolloutStartedEvent = "RolloutStarted"
	// PodReplacedEvent: a pod was deleted or evicted, so that the StatefulSet
	// controller creates it anew.
	PodReplacedEvent = "PodReplaced"
	// RolloutBlockedEvent: pods of the set should be replaced and cannot be now.
	RolloutBlockedEvent = "RolloutBlocked"
	// RolloutFinishedEvent: all pods of the set are up to date and available.
	RolloutFinishedEvent = "RolloutFinished"
	// GroupInvalidEvent: the set has an update strategy that no set of a group may
	// have.
	GroupInvalidEvent = "GroupInvalid"
	// InvalidMaxUnavailableEvent: the annotation rollout-max-unavailable cannot be
	// understood.
	InvalidMaxUnavailableEvent = "InvalidMaxUnavailable"
	// UnsupportedEvent: the set has a label or an annotation that is not obeyed.
	UnsupportedEvent = "Unsupported"
)

// Reasons why pods of a group are not replaced: the label "reason" of the metric
// rollout_operator_group_blocked.
const (
	// NotOnDeleteReason: a set of the group has another update strategy.
	NotOnDeleteReason = "NotOnDelete"
	// SetNotReadyReason: another set is not ready.
	SetNotReadyReason = "SetNotReady"
	// SetsNotReadyReason: several other sets are not ready.
	SetsNotReadyReason = "SetsNotReady"
	// PodsNotReadyReason: outdated pods of the set are not ready, and use up what
	// may be unavailable.
	PodsNotReadyReason = "PodsNotReady"
	// PodsStuckReason: pods of the revision that is wanted do not start.
	PodsStuckReason = "PodsStuck"
	// RolloutPausedReason: all that is outdated is paused by annotation.
	RolloutPausedReason = "RolloutPaused"
	// EvictionRefusedReason: a disruption budget does not allow the eviction now.
	EvictionRefusedReason = "EvictionRefused"
)

// BlockedReasons are all values of that label.
func BlockedReasons() []string {
	return []string{
		NotOnDeleteReason, SetNotReadyReason, SetsNotReadyReason, PodsNotReadyReason, PodsStuckReason, RolloutPausedReason,
		EvictionRefusedReason,
	}
}
