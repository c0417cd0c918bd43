// SPDX-License-Identifier: Apache-2.0

// Package statefulsets decides which pods of a rollout group are replaced now.
//
// [Decide] is given the StatefulSets of one group with their pods, and returns
// the whole answer. It keeps four promises, for each group by itself:
//
//   - Pods of two sets are never replaced at the same time.
//   - A pod is deleted only while all pods of all other sets are available.
//   - Nothing is deleted while a set has another update strategy than OnDelete.
//   - Deletions never make more pods of a set unavailable than it allows.
//
// There is one exception to the second and the last: an outdated pod that is
// stuck is replaced all the same, since nothing gets worse by that.
//
// There is no journal. Pods and revisions show how far a rollout is, so whoever
// comes after a crash decides the same.
//
// In the order in which a reader meets them:
//
//	input.go    Group, Set, Pod
//	plan.go     Plan, Decide
//	values.go   a Plan as keys and values, for a log
//	count.go    which pods are available, and which sets are settled
//	budget.go   how many pods of a set may be unavailable
//	turn.go     which set goes next, and what is in its way
//	replace.go  which of its pods
//	words.go    what people are told
package statefulsets

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Group is what is known of one rollout group.
type Group struct {
	// Now is the time that everything is judged at.
	Now time.Time
	// Sets of the group, in any order.
	Sets []Set
	// Last is the set whose turn it was when the group was decided upon before;
	// see [Plan]. Empty if that is not known.
	Last types.UID
	// Deleted are pods that were deleted by us. Where they are still shown, what
	// is shown is old, and they count as terminating.
	Deleted map[types.UID]bool
}

// Set is a StatefulSet of the group and its pods.
type Set struct {
	Name string
	UID  types.UID

	// Generation of the set, and the one that its status is about.
	Generation, ObservedGeneration int64
	// Deleting means that the set is being deleted.
	Deleting bool
	// Strategy is the type of its update strategy.
	Strategy string
	// Replicas that are wanted.
	Replicas int32
	// FirstOrdinal is the number of the first pod.
	FirstOrdinal int32
	// MinReady is how long a pod must have been Ready to be available.
	MinReady time.Duration

	// MaxUnavailable is the annotation as it is written; empty if there is none.
	MaxUnavailable string
	// Paused means that the set has the annotation that pauses it.
	Paused bool

	// CurrentRevision and UpdateRevision are those of its status.
	CurrentRevision, UpdateRevision string
	// StatusReplicas, StatusReady and StatusUpdated are the pods that its status
	// knows of, those of them that are Ready, and those of the revision it wishes for.
	StatusReplicas, StatusReady, StatusUpdated int32

	// Pods that the set controls by its UID, in any order.
	Pods []Pod
}

// Pod is a pod that a set of the group controls.
type Pod struct {
	Name string
	UID  types.UID
	// Revision that it was made of.
	Revision string
	// Terminating means that it is being deleted.
	Terminating bool
	// Ready is the condition of that name, and ReadySince when it became true.
	Ready      bool
	ReadySince time.Time
	// Stuck says in a word why the pod cannot start, such as CrashLoopBackOff;
	// empty if nothing of the kind is known.
	Stuck string
}
