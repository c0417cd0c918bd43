// SPDX-License-Identifier: Apache-2.0

// Package statefulsets decides which pods of a rollout group are replaced now.
//
// [Decide] gets the StatefulSets of one group with their pods, and returns the whole
// plan. It keeps four guarantees, for each group separately:
//
//   - Pods of two sets are never replaced at the same time.
//   - A pod is deleted only while all pods of all other sets are available.
//   - Nothing is deleted while a set has another update strategy than OnDelete.
//   - Deletions never make more pods of a set unavailable than it allows.
//
// There is one exception to the second and the last: an outdated pod that is stuck is
// replaced in any case, because nothing gets worse by that.
//
// There is no journal. Pods and revisions show the progress of a rollout, so the decision
// after a crash is the same.
//
// The files in reading order:
//
//	input.go    Group, Set, Pod
//	plan.go     Plan, Decide
//	values.go   a Plan as keys and values, for a log
//	count.go    which pods are available, and which sets are settled
//	budget.go   how many pods of a set may be unavailable
//	turn.go     which set goes next, and which sets block it
//	replace.go  which of its pods to replace
//	words.go    the messages
package statefulsets

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Group contains the known facts about one rollout group.
type Group struct {
	// Now is the time of the decision.
	Now time.Time
	// Sets are the sets of the group, in any order.
	Sets []Set
	// Last is the set that had the turn at the previous decision about the group; see
	// [Plan]. It is empty if that is not known.
	Last types.UID
	// Deleted are pods that this controller has deleted. If the input still contains
	// them, it is old, and they count as terminating.
	Deleted map[types.UID]bool
}

// Set is a StatefulSet of the group and its pods.
type Set struct {
	Name string
	UID  types.UID

	// Generation is of the set, and ObservedGeneration is the one that its status is
	// about.
	Generation, ObservedGeneration int64
	// UnobservedSince is since when the status is known not to be about that generation;
	// zero if it is, or if that is not known.
	UnobservedSince time.Time
	// Deleting means that the set is being deleted.
	Deleting bool
	// Strategy is the type of its update strategy.
	Strategy string
	// Replicas is the number of wanted replicas.
	Replicas int32
	// FirstOrdinal is the number of the first pod.
	FirstOrdinal int32
	// MinReady is how long a pod must have been Ready to be available.
	MinReady time.Duration

	// MaxUnavailable is the value of the annotation; empty if there is none.
	MaxUnavailable string
	// Paused means that the set has the annotation that pauses it.
	Paused bool

	// CurrentRevision and UpdateRevision are the revisions in its status.
	CurrentRevision, UpdateRevision string
	// StatusReplicas, StatusReady and StatusUpdated are the numbers in its status of all
	// pods, of Ready pods, and of pods of the wanted revision.
	StatusReplicas, StatusReady, StatusUpdated int32

	// Pods are the pods that the set controls by its UID, in any order.
	Pods []Pod
}

// Pod is a pod that a set of the group controls.
type Pod struct {
	Name string
	UID  types.UID
	// Revision is the revision that the pod was created from.
	Revision string
	// Terminating means that it is being deleted.
	Terminating bool
	// Ready is the condition of that name, and ReadySince when it became true.
	Ready      bool
	ReadySince time.Time
	// Stuck is a reason why the pod cannot start, such as CrashLoopBackOff; empty if none
	// is known.
	Stuck string
}
