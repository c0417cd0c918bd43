// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of quarantines.
const (
	ReleaseQuarantineKind        = "ReleaseQuarantine"
	ClusterReleaseQuarantineKind = "ClusterReleaseQuarantine"
)

// Labels of the ReleaseQuarantines that the controller creates.
const (
	// QuarantineDigestLabel has the first digits of the digest.
	QuarantineDigestLabel = "quarantine.kuberik.com/digest"
	// ManagedByLabel has the name of the controller. Only those with it are deleted by the
	// controller, a week after they have ended. Objects that other programs create have
	// their names: it is the label that Kubernetes recommends.
	ManagedByLabel = "app.kubernetes.io/managed-by"
)

// QuarantineReporting defines where a Rollout reports its failures.
// +kubebuilder:validation:Enum=Namespace;None
type QuarantineReporting string

const (
	// ReportToNamespace reports to ReleaseQuarantines of the Rollout's namespace. It is the
	// default.
	ReportToNamespace QuarantineReporting = "Namespace"
	// ReportNothing reports nothing.
	ReportNothing QuarantineReporting = "None"
)

// RolloutQuarantine defines whether a Rollout reports releases that failed, and whether it
// takes releases that others have reported.
type RolloutQuarantine struct {
	// report is Namespace, the default, or None.
	// +optional
	Report QuarantineReporting `json:"report,omitempty"`

	// obey is false if releases in quarantine are promoted all the same. Defaults to true.
	// +optional
	Obey *bool `json:"obey,omitempty"`

	// holdFor is how long a release that failed is held, from the failure. Each further
	// failure begins the time again. From 1 hour to 8760 hours. Defaults to 24h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('8760h')",message="must be from 1h to 8760h"
	// +optional
	HoldFor *metav1.Duration `json:"holdFor,omitempty"`
}

// QuarantineEnforcement defines which promotions a quarantine holds.
// +kubebuilder:validation:Enum=Automatic;Always
type QuarantineEnforcement string

const (
	// EnforceAutomatic holds automatic promotions. It is the default.
	EnforceAutomatic QuarantineEnforcement = "Automatic"
	// EnforceAlways holds what users choose, too.
	EnforceAlways QuarantineEnforcement = "Always"
)

// ReleaseQuarantineSpec names a release that is not to be promoted, and says until when.
// +kubebuilder:validation:XValidation:rule="has(self.digest) || has(self.image) && has(self.tags)",message="give digest, or image and tags"
// +kubebuilder:validation:XValidation:rule="has(self.digest) == has(oldSelf.digest) && (!has(self.digest) || self.digest == oldSelf.digest)",message="digest cannot be changed: create another quarantine"
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(oldSelf.image) && (!has(self.image) || self.image == oldSelf.image)",message="image cannot be changed: create another quarantine"
// +kubebuilder:validation:XValidation:rule="has(self.tags) == has(oldSelf.tags) && (!has(self.tags) || self.tags == oldSelf.tags)",message="tags cannot be changed: create another quarantine"
type ReleaseQuarantineSpec struct {
	// digest of the image. It is the content of the release, under any tag and in any
	// repository.
	// +kubebuilder:validation:MaxLength=160
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+([+._-][a-z0-9]+)*:[a-f0-9]{32,128}$`
	// +optional
	Digest string `json:"digest,omitempty"`

	// image without a tag, as in spec.image of an ImageRepository. Next to a digest it is
	// only shown, unless the digest of a release is not known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// tags of the image, at most 20.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:MinLength=1
	// +optional
	Tags []string `json:"tags,omitempty"`

	// reason for the quarantine, for users.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`

	// enforce is Automatic, the default, or Always. The controller never sets Always.
	// +optional
	Enforce QuarantineEnforcement `json:"enforce,omitempty"`

	// until is when the quarantine ends. Without it, failures decide, and a quarantine that
	// a user has created does not end by itself.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// lifted ends the quarantine, and stays as the record that a user has ended it.
	// Defaults to false.
	// +optional
	Lifted bool `json:"lifted,omitempty"`
}

// QuarantinePhase says whether a quarantine holds its release.
// +kubebuilder:validation:Enum=Held;Ended
type QuarantinePhase string

const (
	// QuarantineHeld: the release is held.
	QuarantineHeld QuarantinePhase = "Held"
	// QuarantineEnded: its time is over, or a user has lifted it.
	QuarantineEnded QuarantinePhase = "Ended"
)

// ReportingRollout identifies the Rollout that reported a failure.
type ReportingRollout struct {
	// name of the Rollout.
	// +optional
	Name string `json:"name,omitempty"`
	// uid of the Rollout.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// ReleaseFailure is a failure of the release.
type ReleaseFailure struct {
	// rollout on which the release failed.
	// +optional
	Rollout ReportingRollout `json:"rollout,omitempty"`
	// entryID is the id of the history entry that failed.
	// +optional
	EntryID int64 `json:"entryID,omitempty"`
	// lastRetryTimestamp is that of the entry: each retry that fails is another failure.
	// +optional
	LastRetryTimestamp *metav1.Time `json:"lastRetryTimestamp,omitempty"`
	// time of the failure.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// cause of the failure.
	// +optional
	Cause FailureCause `json:"cause,omitempty"`
	// message of the failure, at most 256 characters.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReleaseQuarantineStatus says whether the release is held, and how it failed.
type ReleaseQuarantineStatus struct {
	// observedGeneration is the generation that the phase is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Held, or Ended once its time is over or a user has lifted it.
	// +optional
	Phase QuarantinePhase `json:"phase,omitempty"`
	// until is when it ends; absent if it does not end by itself.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// endedAt is since when it holds nothing any more. Seven days later it is deleted, if
	// the controller has created it.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// failures are the newest that were reported, at most ten, newest first.
	// +listType=atomic
	// +optional
	Failures []ReleaseFailure `json:"failures,omitempty"`
}

// ReleaseQuarantine keeps a release from being promoted in a namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Tag",type=string,JSONPath=`.spec.tags[0]`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.until`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
type ReleaseQuarantine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the release.
	// +required
	Spec ReleaseQuarantineSpec `json:"spec"`
	// status says whether it holds the release, and why.
	// +optional
	Status ReleaseQuarantineStatus `json:"status,omitempty"`
}

// ReleaseQuarantineList is a list of ReleaseQuarantines.
//
// +kubebuilder:object:root=true
type ReleaseQuarantineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReleaseQuarantine `json:"items"`
}

// ClusterReleaseQuarantineSpec names a release that is not to be promoted in some
// namespaces.
type ClusterReleaseQuarantineSpec struct {
	ReleaseQuarantineSpec `json:",inline"`

	// namespaceSelector selects namespaces by their labels. If it is absent or empty, it
	// selects all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ClusterReleaseQuarantine keeps a release from being promoted across namespaces. Only
// users create it: it recalls a release.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Tag",type=string,JSONPath=`.spec.tags[0]`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.until`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`,priority=1
type ClusterReleaseQuarantine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the release.
	// +required
	Spec ClusterReleaseQuarantineSpec `json:"spec"`
	// status says whether it holds the release, and why.
	// +optional
	Status ReleaseQuarantineStatus `json:"status,omitempty"`
}

// ClusterReleaseQuarantineList is a list of ClusterReleaseQuarantines.
//
// +kubebuilder:object:root=true
type ClusterReleaseQuarantineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterReleaseQuarantine `json:"items"`
}

const defaultHoldFor = 24 * time.Hour

// Obeys reports whether releases in quarantine are held. Without the block they are.
func (q *RolloutQuarantine) Obeys() bool { return q == nil || q.Obey == nil || *q.Obey }

// Reports reports whether failures are reported. Without the block they are not.
func (q *RolloutQuarantine) Reports() bool { return q != nil && q.Report != ReportNothing }

// GetHoldFor returns how long a release that failed is held.
func (q *RolloutQuarantine) GetHoldFor() time.Duration {
	if q == nil || q.HoldFor == nil {
		return defaultHoldFor
	}
	return q.HoldFor.Duration
}
