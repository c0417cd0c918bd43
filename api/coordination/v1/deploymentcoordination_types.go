// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DeploymentCoordinationKind is the kind of a DeploymentCoordination.
const DeploymentCoordinationKind = "DeploymentCoordination"

// IdlePolicy defines what happens to Deployments that have nothing to roll out.
//
// +kubebuilder:validation:Enum=Pause;Resume
type IdlePolicy string

const (
	// IdlePause keeps them paused.
	IdlePause IdlePolicy = "Pause"
	// IdleResume unpauses them. A Deployment is then paused only while it waits for its
	// turn with a changed template.
	IdleResume IdlePolicy = "Resume"
)

// DeploymentCoordinationSpec defines which Deployments roll out one at a time, or a few at
// a time.
type DeploymentCoordinationSpec struct {
	// labelSelector selects the Deployments in the coordination's own namespace by their
	// labels. While it is empty or invalid, the coordination keeps the Deployments that it
	// selected before, and gives no turn.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="the operator of each of matchExpressions must be In, NotIn, Exists or DoesNotExist"
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitempty"`

	// maxConcurrent is how many Deployments may roll out or bake at a time: a number, or a
	// percentage of the selected Deployments, rounded down. It is at least 1, and 1 if it is
	// not set. If several coordinations share Deployments, the smallest value applies to all
	// of them together.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%"
	// +optional
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// minReadySeconds is how long a Deployment must have been rolled out and available
	// before its turn ends and the next one may start. If several coordinations share
	// Deployments, the largest value applies.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// idlePolicy defines what happens to Deployments that have nothing to roll out.
	// Pause, the default, keeps them paused. Resume unpauses them: Flux, Helm and kubectl
	// rollout need this to find them ready. If several coordinations select a Deployment,
	// it is paused unless all of them set Resume.
	// +optional
	IdlePolicy IdlePolicy `json:"idlePolicy,omitempty"`
}

// Concurrent returns how many of the given number of Deployments may roll out at a time. A
// value that is a mistake counts as 1.
func (s *DeploymentCoordinationSpec) Concurrent(deployments int) int {
	if s.MaxConcurrent == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxConcurrent, deployments, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// DeploymentState describes one Deployment of the coordination.
type DeploymentState struct {
	// name is the Deployment's namespace and name, as namespace/name.
	Name string `json:"name"`

	// hasPendingChanges is true while the Deployment has a template that is not rolled
	// out yet.
	// +optional
	HasPendingChanges bool `json:"hasPendingChanges,omitempty"`

	// generation is the generation of the Deployment that this state describes.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// lastRolloutStarted is when the Deployment was last given the turn, or received a
	// new template while it had the turn.
	// +optional
	LastRolloutStarted *metav1.Time `json:"lastRolloutStarted,omitempty"`

	// lastRolloutFinished is when its last rollout was complete. The time of
	// minReadySeconds begins then.
	// +optional
	LastRolloutFinished *metav1.Time `json:"lastRolloutFinished,omitempty"`

	// readySince is when the current template was first observed to be rolled out and
	// available. It is absent until then, and after availability is lost.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`

	// unavailableSince is the time since which the active Deployment has not stayed
	// available although its rollout was complete. It is absent otherwise. It is removed
	// once all replicas have been available for progressDeadlineSeconds.
	// +optional
	UnavailableSince *metav1.Time `json:"unavailableSince,omitempty"`

	// readyReplicas is the number of replicas when all of them were last observed to be
	// updated and available. With fewer available replicas, availability is lost. Scaling
	// up does not count as a loss.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// template identifies the template that hasPendingChanges and readySince refer to.
	// Only compare it for equality.
	// +optional
	Template string `json:"template,omitempty"`

	// readyTemplates are templates with which the Deployment has been rolled out and ready
	// for long enough, the newest first. If it goes back to one of them, it does not wait
	// for minReadySeconds again, and newer ones are removed.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	ReadyTemplates []string `json:"readyTemplates,omitempty"`

	// uid is the UID of the Deployment. A Deployment that was created again under the
	// same name is a different one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// IsRolledOut reports whether the template is rolled out, and no replica has been missing
// since.
func (s *DeploymentState) IsRolledOut() bool {
	return !s.HasPendingChanges && s.ReadySince != nil && s.UnavailableSince == nil
}

// DeploymentCoordinationStatus is the journal of a coordination. The controller writes it
// before it unpauses a Deployment.
type DeploymentCoordinationStatus struct {
	// observedGeneration is the generation of the coordination that the status describes.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// activeDeployment is the Deployment that has the turn, as namespace/name; the first
	// one by name if several have a turn. It is empty if no Deployment has a turn.
	// +optional
	ActiveDeployment string `json:"activeDeployment,omitempty"`

	// activeDeployments are all Deployments that have a turn, as namespace/name, sorted.
	// +listType=set
	// +optional
	ActiveDeployments []string `json:"activeDeployments,omitempty"`

	// deployments lists all selected Deployments as namespace/name, sorted.
	// +optional
	Deployments []string `json:"deployments,omitempty"`

	// deploymentStates has an entry for each selected Deployment, sorted by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	DeploymentStates []DeploymentState `json:"deploymentStates,omitempty"`

	// conditions are Ready, Progressing, Degraded and HoldMode, and Stalled while it is
	// true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Active returns the Deployments that have a turn. Other implementations write only
// activeDeployment, so the list counts only if it contains that one.
func (s *DeploymentCoordinationStatus) Active() []string {
	switch {
	case s.ActiveDeployment == "":
		return nil
	case slices.Contains(s.ActiveDeployments, s.ActiveDeployment):
		return s.ActiveDeployments
	}
	return []string{s.ActiveDeployment}
}

// HasTurn reports whether the Deployment, as namespace/name, has a turn.
func (s *DeploymentCoordinationStatus) HasTurn(deployment string) bool {
	return slices.Contains(s.Active(), deployment)
}

// DeploymentCoordination makes the Deployments that it selects roll out one at a time, or
// maxConcurrent at a time. The next Deployment starts when one before is rolled out and has
// been ready for minReadySeconds. Waiting Deployments are paused.
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

	// spec defines which Deployments roll out one at a time.
	// +optional
	Spec DeploymentCoordinationSpec `json:"spec,omitempty"`

	// status is the journal: which Deployment has the turn, and the state of each
	// Deployment.
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
