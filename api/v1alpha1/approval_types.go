// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of approvals, and of gates that ask for them in many namespaces.
const (
	RolloutApprovalKind    = "RolloutApproval"
	ClusterRolloutGateKind = "ClusterRolloutGate"
)

// Defaults and limits of approvals.
const (
	// DefaultApprovalCount is how many people must approve, unless the gate says otherwise.
	DefaultApprovalCount = 1
	// DefaultApprovalValidity is how long an approval counts, unless the gate says otherwise.
	DefaultApprovalValidity = 168 * time.Hour
)

// SelfApproval is whether those who chose a release may approve it.
// +kubebuilder:validation:Enum=Forbid;Allow
type SelfApproval string

const (
	// SelfApprovalForbid does not count the approval of the user who pinned, forced, promoted
	// or bypassed the release. It is the default.
	SelfApprovalForbid SelfApproval = "Forbid"
	// SelfApprovalAllow counts it.
	SelfApprovalAllow SelfApproval = "Allow"
)

// Rejections is what a rejection means for a gate.
// +kubebuilder:validation:Enum=Veto;Ignore
type Rejections string

const (
	// RejectionsVeto holds a release as long as somebody rejects it whose approval would
	// count. It is the default.
	RejectionsVeto Rejections = "Veto"
	// RejectionsIgnore only counts approvals.
	RejectionsIgnore Rejections = "Ignore"
)

// ApprovedPromotion is a kind of promotion that needs approvals.
// +kubebuilder:validation:Enum=Automatic;Manual
type ApprovedPromotion string

const (
	// ApproveAutomatic: promotions that the controller chooses.
	ApproveAutomatic ApprovedPromotion = "Automatic"
	// ApproveManual: pins and forces.
	ApproveManual ApprovedPromotion = "Manual"
)

// Approvals are the approvals that a gate asks for.
type Approvals struct {
	// count is how many different people must approve a release. From 1 to 10. Defaults to
	// 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	Count *int32 `json:"count,omitempty"`

	// role counts only decisions of this role. If it is absent, those of every role count.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +optional
	Role string `json:"role,omitempty"`

	// selfApproval is Forbid, the default, or Allow.
	// +optional
	SelfApproval SelfApproval `json:"selfApproval,omitempty"`

	// serviceAccounts are the ServiceAccounts whose decisions count, as namespace/name.
	// Those of no other ServiceAccount do.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	// +optional
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`

	// rejections is Veto, the default, or Ignore.
	// +optional
	Rejections Rejections `json:"rejections,omitempty"`

	// validFor is how long an approval counts, from its creation. From 1 hour to 2160 hours.
	// Defaults to 168h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="must be from 1h to 2160h"
	// +optional
	ValidFor *metav1.Duration `json:"validFor,omitempty"`

	// appliesTo are the kinds of promotions that need the approvals. Defaults to both.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	AppliesTo []ApprovedPromotion `json:"appliesTo,omitempty"`
}

// GetCount returns how many people must approve: at least one.
func (a *Approvals) GetCount() int {
	if a.Count == nil {
		return DefaultApprovalCount
	}
	return max(1, int(*a.Count))
}

// GetValidFor returns how long an approval counts.
func (a *Approvals) GetValidFor() time.Duration {
	if a.ValidFor == nil {
		return DefaultApprovalValidity
	}
	return a.ValidFor.Duration
}

// Decision is what a person says of a release.
// +kubebuilder:validation:Enum=Approve;Reject;Override
type Decision string

const (
	// DecisionApprove: the release may be promoted.
	DecisionApprove Decision = "Approve"
	// DecisionReject: it may not.
	DecisionReject Decision = "Reject"
	// DecisionOverride: it may be promoted past the approvals that are missing.
	DecisionOverride Decision = "Override"
)

// OverriddenHold is what an override lifts besides approvals.
// +kubebuilder:validation:Enum=Gates;Schedules
type OverriddenHold string

const (
	// OverrideGates: RolloutGates that are closed, or do not allow the version.
	OverrideGates OverriddenHold = "Gates"
	// OverrideSchedules: schedules that are closed.
	OverrideSchedules OverriddenHold = "Schedules"
)

// RolloutApprovalSpec is one decision of one person on one release. It cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a decision cannot be changed: create another one"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Approve' || has(self.digest)",message="digest is required to approve: name the content that was looked at"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Override' || !has(self.role)",message="an override has no role"
// +kubebuilder:validation:XValidation:rule="self.decision != 'Override' || has(self.reason) && self.reason.size() >= 10",message="an override needs a reason of at least 10 characters"
// +kubebuilder:validation:XValidation:rule="(self.decision == 'Override') == has(self.for)",message="for is required to override, and only then allowed"
// +kubebuilder:validation:XValidation:rule="self.decision == 'Override' || !has(self.alsoLifts)",message="alsoLifts is only for overrides"
type RolloutApprovalSpec struct {
	// rolloutRef names the Rollout, in the same namespace.
	// +required
	RolloutRef RolloutReference `json:"rolloutRef"`

	// version is the tag of the release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Version string `json:"version"`

	// digest is the digest of the release: decisions are about content. It is required to
	// approve.
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{64}$"
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Digest string `json:"digest,omitempty"`

	// decision is Approve, Reject or Override. Defaults to Approve.
	// +kubebuilder:default=Approve
	// +optional
	Decision Decision `json:"decision,omitempty"`

	// role is the role in which the person decides. It needs the verb approve:ROLE.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +optional
	Role string `json:"role,omitempty"`

	// reason is why. An override needs one of at least 10 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`

	// for is how long an override lasts, from its creation. From 1 minute to 24 hours.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be from 1m to 24h"
	// +optional
	For *metav1.Duration `json:"for,omitempty"`

	// alsoLifts is what an override lifts besides approvals, if a gate asks for any. Without
	// one, it has no effect: the history would not show who used it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +optional
	AlsoLifts []OverriddenHold `json:"alsoLifts,omitempty"`

	// by is the person. Admission policies check that it is the user who creates the object.
	// +structType=granular
	// +required
	By Person `json:"by"`
}

// RolloutReference names a Rollout in the same namespace.
type RolloutReference struct {
	// name is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid is its uid. If it is set, a Rollout that was created again by the same name needs
	// another decision.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// Person is a user as the API server knows them.
type Person struct {
	// username is the name under which the API server knows the user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Username string `json:"username"`
}

// RolloutApproval is a decision of a person on a release of a Rollout: they approve it,
// reject it, or override the approvals that are missing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:selectablefield:JSONPath=".spec.rolloutRef.name"
// +kubebuilder:selectablefield:JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rolloutRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by.username`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decision.
	// +required
	Spec RolloutApprovalSpec `json:"spec"`
}

// RolloutApprovalList is a list of RolloutApprovals.
//
// +kubebuilder:object:root=true
type RolloutApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutApproval `json:"items"`
}

// ClusterRolloutGateSpec defines which Rollouts of which namespaces a gate holds back, and
// until when.
type ClusterRolloutGateSpec struct {
	// rolloutSelector selects Rollouts by their labels. If it is absent or empty, it selects
	// all of them.
	// +optional
	RolloutSelector *metav1.LabelSelector `json:"rolloutSelector,omitempty"`

	// namespaceSelector selects namespaces by their labels. If it is absent or empty, it
	// selects all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// passing is false to hold back every release. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	Passing *bool `json:"passing,omitempty"`

	// approvals are the approvals that a release needs.
	// +optional
	Approvals *Approvals `json:"approvals,omitempty"`
}

// ClusterRolloutGateStatus is the state of a gate.
type ClusterRolloutGateStatus struct {
	// observedGeneration is the generation that was last looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions says whether the gate can be evaluated.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// matchingRollouts counts the Rollouts that the gate selects.
	// +optional
	MatchingRollouts int32 `json:"matchingRollouts,omitempty"`
}

// ClusterRolloutGate holds back promotions of Rollouts in many namespaces, until they are
// approved.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Passing",type=boolean,JSONPath=`.spec.passing`
// +kubebuilder:printcolumn:name="Approvals",type=integer,JSONPath=`.spec.approvals.count`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.approvals.role`
// +kubebuilder:printcolumn:name="Matching",type=integer,JSONPath=`.status.matchingRollouts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterRolloutGate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which Rollouts the gate holds back.
	// +optional
	Spec ClusterRolloutGateSpec `json:"spec,omitempty"`
	// status is the current state of the gate.
	// +optional
	Status ClusterRolloutGateStatus `json:"status,omitempty"`
}

// ClusterRolloutGateList is a list of ClusterRolloutGates.
//
// +kubebuilder:object:root=true
type ClusterRolloutGateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRolloutGate `json:"items"`
}

// IsPassing reports whether the gate allows any release at all.
func (g *ClusterRolloutGate) IsPassing() bool { return g.Spec.Passing == nil || *g.Spec.Passing }

// GetConditions returns the conditions. Flux's condition functions call it.
func (g *ClusterRolloutGate) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions. Flux's condition functions call it.
func (g *ClusterRolloutGate) SetConditions(conditions []metav1.Condition) {
	g.Status.Conditions = conditions
}

// ApprovalOutcome is how a promotion passed the gates that ask for approvals.
// +kubebuilder:validation:Enum=Approved;Overridden;NotNeeded;Missing
type ApprovalOutcome string

const (
	// OutcomeApproved: everybody who was asked had approved it.
	OutcomeApproved ApprovalOutcome = "Approved"
	// OutcomeOverridden: approvals were missing, and somebody overrode that.
	OutcomeOverridden ApprovalOutcome = "Overridden"
	// OutcomeNotNeeded: gates ask, but not for this: a rollback, an adoption, a step back to
	// a release that has succeeded here.
	OutcomeNotNeeded ApprovalOutcome = "NotNeeded"
	// OutcomeMissing: the content runs without having been approved: its tag was pushed again.
	OutcomeMissing ApprovalOutcome = "Missing"
)

// ApprovalRecord says who approved a promotion. Deleting the decisions later does not change
// it.
type ApprovalRecord struct {
	// outcome is Approved, Overridden, NotNeeded or Missing.
	// +required
	Outcome ApprovalOutcome `json:"outcome"`

	// gates are the gates that asked, those of the cluster as cluster/NAME.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Gates []string `json:"gates,omitempty"`

	// by are the decisions that counted.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	By []RecordedApproval `json:"by,omitempty"`
}

// RecordedApproval is a decision that counted.
type RecordedApproval struct {
	// name is the name of the RolloutApproval.
	// +required
	Name string `json:"name"`
	// uid is its uid. A decision counts for one promotion.
	// +required
	UID types.UID `json:"uid"`
	// username is the name under which the API server knew the person.
	// +required
	Username string `json:"username"`
	// role is the role in which they decided.
	// +optional
	Role string `json:"role,omitempty"`
	// time is when they decided, by the clock of the API server.
	// +required
	Time metav1.Time `json:"time"`
	// reason is what they said.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}
