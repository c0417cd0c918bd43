// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DeploymentCoordinationKind is the kind of a DeploymentCoordination.
const DeploymentCoordinationKind = "DeploymentCoordination"

// IdlePolicy says what becomes of Deployments that have nothing to roll out.
//
// +kubebuilder:validation:Enum=Pause;Resume
type IdlePolicy string

const (
	// IdlePause keeps them paused.
	IdlePause IdlePolicy = "Pause"
	// IdleResume releases them, and holds a Deployment only while it waits for
	// its turn with a changed template.
	IdleResume IdlePolicy = "Resume"
)

// DeploymentCoordinationSpec says which Deployments roll out one at a time.
type DeploymentCoordinationSpec struct {
	// labelSelector selects the Deployments of the coordination's own namespace
	// by their labels. While it is empty, or cannot be understood, nothing is
	// touched: what it selected before stays as it is.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="the operator of each of matchExpressions must be In, NotIn, Exists or DoesNotExist"
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`

	// minReadySeconds is how long a Deployment must have been rolled out and
	// available before the next may start. If several coordinations share
	// Deployments, the largest counts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// idlePolicy says what becomes of Deployments that have nothing to roll out.
	// Pause, the default, keeps them paused. Resume releases them, which Flux,
	// Helm and kubectl rollout need in order to find them ready. If several
	// coordinations select a Deployment, it is paused unless all say Resume.
	// +optional
	IdlePolicy IdlePolicy `json:"idlePolicy,omitempty"`
}

// DeploymentState is what the coordination knows of one Deployment.
type DeploymentState struct {
	// name is the Deployment's namespace and name, with a slash between.
	Name string `json:"name"`

	// hasPendingChanges is true while the Deployment has a template that is not
	// rolled out yet.
	// +optional
	HasPendingChanges bool `json:"hasPendingChanges,omitempty"`

	// generation of the Deployment that this is about.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// lastRolloutStarted is when the Deployment was last given its turn, or a
	// new template while it had it.
	// +optional
	LastRolloutStarted *metav1.Time `json:"lastRolloutStarted,omitempty"`

	// lastRolloutFinished is when its last rollout was complete, which is when
	// minReadySeconds begin.
	// +optional
	LastRolloutFinished *metav1.Time `json:"lastRolloutFinished,omitempty"`

	// readySince is when the template that it has now was first seen rolled out
	// and available. It is absent until then, and once availability is lost.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`

	// unavailableSince is since when the active Deployment has not stayed available
	// although its rollout was complete. It is absent otherwise, and again once all
	// replicas have been available for progressDeadlineSeconds.
	// +optional
	UnavailableSince *metav1.Time `json:"unavailableSince,omitempty"`

	// readyReplicas is how many replicas it had when all of them were last seen to
	// be updated and available. With fewer, availability is lost; a scale to more
	// does not do that.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// template identifies the template that hasPendingChanges and readySince are
	// about. It has no meaning beyond being equal or not.
	// +optional
	Template string `json:"template,omitempty"`

	// uid of the Deployment: one that was created anew under its name is
	// another.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// DeploymentCoordinationStatus is the journal of a coordination. It is written
// before a Deployment is released.
type DeploymentCoordinationStatus struct {
	// observedGeneration of the coordination that the status is about.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// activeDeployment is the namespace and name of the Deployment that has the
	// turn, with a slash between; empty if none has.
	// +optional
	ActiveDeployment string `json:"activeDeployment,omitempty"`

	// deployments are the namespaces and names of all selected Deployments,
	// sorted.
	// +optional
	Deployments []string `json:"deployments,omitempty"`

	// deploymentStates has an entry for each selected Deployment, sorted by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	DeploymentStates []DeploymentState `json:"deploymentStates,omitempty"`

	// conditions are Ready, Progressing, Degraded and HoldMode, and Stalled while
	// it is true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeploymentCoordination lets the Deployments that it selects roll out one at a
// time: the next when the one before is rolled out and has been ready for
// minReadySeconds. Those that wait are paused.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.activeDeployment`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=='Progressing')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:validation:XValidation:rule="has(self.spec) && has(self.spec.labelSelector) && (has(self.spec.labelSelector.matchLabels) && size(self.spec.labelSelector.matchLabels) > 0 || has(self.spec.labelSelector.matchExpressions) && size(self.spec.labelSelector.matchExpressions) > 0) || oldSelf.hasValue() && !(has(oldSelf.value().spec) && has(oldSelf.value().spec.labelSelector) && (has(oldSelf.value().spec.labelSelector.matchLabels) && size(oldSelf.value().spec.labelSelector.matchLabels) > 0 || has(oldSelf.value().spec.labelSelector.matchExpressions) && size(oldSelf.value().spec.labelSelector.matchExpressions) > 0))",message="spec.labelSelector is empty, which would select every Deployment of the namespace: name labels",optionalOldSelf=true
type DeploymentCoordination struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which Deployments roll out one at a time.
	// +optional
	Spec DeploymentCoordinationSpec `json:"spec,omitempty"`

	// status is the journal: who has the turn, and how far everybody is.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status DeploymentCoordinationStatus `json:"status,omitempty"`
}

// DeploymentCoordinationList is a list of DeploymentCoordinations.
//
// +kubebuilder:object:root=true
type DeploymentCoordinationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DeploymentCoordination `json:"items"`
}
