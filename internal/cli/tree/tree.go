// SPDX-License-Identifier: Apache-2.0

// Package tree shows a Rollout and everything that its release reaches, down to the pods
// that do not start, as one tree. It also goes the other way, from a workload up to the
// release.
//
// It decides nothing: what holds a release, and how its targets are doing, is taken word
// for word from package promotion and from the input of its decision. What lies below the
// targets is read here. A read that fails is a node that says so, and the tree goes on.
//
// The files in reading order:
//
//	tree.go       Tree, Node, Sign: what is shown
//	build.go      Build, and the limits of what it reads
//	head.go       the version, its state, and what comes next
//	groups.go     gates, schedules and HealthChecks
//	environments.go
//	              the Environments of the Rollout
//	quarantines.go
//	              what keeps its releases from being promoted anywhere
//	targets.go    the Flux objects of the Rollout
//	inventory.go  which objects they have applied
//	below.go      those objects, level by level
//	read.go       few requests at a time, each object once
//	state.go      the state of one object
//	pods.go       why pods of a workload do not start
//	turns.go      whose turn it is inside a release
//	fold.go       what is left out because it is well
//	trace.go      from a workload up to the release
//	events.go     what happened to the objects of a tree
package tree

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/measured"
)

// APIVersion is the version of the answers of this package.
const APIVersion = "cli.kuberik.com/v1alpha1"

// Kind is the kind of a [Tree].
const Kind = "Tree"

// Sign is the state of a node at a glance.
type Sign string

const (
	// Well means that it is as it should be.
	Well Sign = "Well"
	// Waits means that it is expected to become well without a user.
	Waits Sign = "Waits"
	// Failed means that it does not become well until a user or another program acts. A
	// gate that holds a release has this sign, too.
	Failed Sign = "Failed"
	// Suspended means that a user has suspended or paused it.
	Suspended Sign = "Suspended"
	// Unknown means that its state is not known, because it was not read or cannot be
	// understood.
	Unknown Sign = "Unknown"
)

// Tree is a Rollout with everything below it.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// Time is when the state was read.
	Time metav1.Time `json:"time"`
	// Head sums up the Rollout.
	Head Head `json:"head"`
	// Root is the Rollout. Its children are groups without an object: Gates, Schedules,
	// Environments and Quarantines if there are any, Health, Targets, and Turns if there is an order inside
	// the release.
	Root *Node `json:"root"`
}

// Head sums up a Rollout: what runs, and what comes next.
type Head struct {
	// Version is the tag of the current release; empty before the first promotion.
	Version string `json:"version,omitempty"`
	// ID is the number of its promotion, if it has one.
	ID *int64 `json:"id,omitempty"`
	// State is the state of its bake; empty before the first promotion.
	State string `json:"state,omitempty"`
	// StateMessage says why the bake is in this state.
	StateMessage string `json:"stateMessage,omitempty"`
	// Since is when the release was promoted.
	Since *metav1.Time `json:"since,omitempty"`
	// By is the user who promoted it; empty if no user did, or it is not recorded.
	By string `json:"by,omitempty"`
	// Message is the message of the promotion.
	Message string `json:"message,omitempty"`
	// Suspended is true if the Rollout is suspended.
	Suspended bool `json:"suspended,omitempty"`
	// Problems are what stands above all candidates.
	Problems []explain.Problem `json:"problems,omitempty"`
	// Next is the release that is next; nil if there is none.
	Next *Next `json:"next,omitempty"`
}

// Next is the release that is next in line.
type Next struct {
	// Version is its tag.
	Version string `json:"version"`
	// Digest is its content, as far as it is known.
	Digest string `json:"digest,omitempty"`
	// Promotes is true if it is promoted now.
	Promotes bool `json:"promotes,omitempty"`
	// Message says why it is promoted; empty if it is not.
	Message string `json:"message,omitempty"`
	// Holds are the reasons against promoting it now, the most important first.
	Holds []Hold `json:"holds,omitempty"`
}

// Hold is a reason why a release is not promoted now.
type Hold struct {
	// Reason is one word.
	Reason string `json:"reason"`
	// Message says what holds the release, and what would end that.
	Message string `json:"message"`
	// Until is when time alone ends the hold; nil if it does not.
	Until *metav1.Time `json:"until,omitempty"`
}

// Node is a line of the tree: an object, a group of nodes, or what is folded.
type Node struct {
	// Object is what the node is about; nil for a group, and for objects that are folded.
	Object *Object `json:"object,omitempty"`
	// Target is true for the Flux objects that are targets of the Rollout.
	Target bool `json:"target,omitempty"`
	// Name is the name of a group; empty for an object.
	Name string `json:"name,omitempty"`
	// Sign is the state at a glance.
	Sign Sign `json:"sign"`
	// Text is what a line has place for; it may be empty if the sign says enough.
	Text string `json:"text,omitempty"`
	// Message is everything that is said of it.
	Message string `json:"message,omitempty"`
	// Until is when time alone changes the state; nil if it does not.
	Until *metav1.Time `json:"until,omitempty"`
	// Conditions are those of the object.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Measured is what was measured, if the object is a HealthCheck that is measured.
	Measured *measured.Check `json:"measured,omitempty"`
	// Folded is what is not shown in detail; nil if everything is.
	Folded *Folded `json:"folded,omitempty"`
	// Children are the nodes below.
	Children []*Node `json:"children,omitempty"`
}

// Folded counts nodes that are not shown one by one.
type Folded struct {
	// Count is how many there are.
	Count int `json:"count"`
	// Kind is their kind, if all have the same one.
	Kind string `json:"kind,omitempty"`
	// Names are the names of the first ones, if they are not well.
	Names []string `json:"names,omitempty"`
}

// Object refers to an object in the cluster.
type Object struct {
	// Group is empty for the core group.
	Group string `json:"group,omitempty"`
	// Version of the API; empty if it is not known.
	Version string `json:"version,omitempty"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace is empty for a cluster-wide object.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// UID is known only of objects that were read.
	UID types.UID `json:"uid,omitempty"`
	// Elsewhere is true if the object is in another cluster. It was not read.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// GroupKind returns the group and the kind.
func (o Object) GroupKind() schema.GroupKind { return schema.GroupKind{Group: o.Group, Kind: o.Kind} }

// String returns Kind/name.
func (o Object) String() string { return o.Kind + "/" + o.Name }

// Each calls a function for the node and all nodes below it, parents first.
func (n *Node) Each(visit func(*Node)) {
	visit(n)
	for _, child := range n.Children {
		child.Each(visit)
	}
}
