// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VersionInfo is one release, identified by its tag.
type VersionInfo struct {
	// tag is the tag of the release in the registry. It identifies the release.
	// +required
	Tag string `json:"tag"`

	// digest is the digest that the tag pointed to when the release was found.
	// +optional
	Digest *string `json:"digest,omitempty"`

	// version is the image's org.opencontainers.image.version.
	// +optional
	Version *string `json:"version,omitempty"`

	// revision is the image's org.opencontainers.image.revision.
	// +optional
	Revision *string `json:"revision,omitempty"`

	// created is the image's org.opencontainers.image.created.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`

	// forwardOnly is true if the image is marked so that no rollback goes back past it. It
	// is absent if that is not known, and unless spec.rollback is set.
	// +optional
	ForwardOnly *bool `json:"forwardOnly,omitempty"`
}

// ReleaseCandidate is a release that is newer than the current one, with the reasons why
// it is not promoted now.
type ReleaseCandidate struct {
	VersionInfo `json:",inline"`

	// holds are the reasons against promoting it now, the most important first. They are
	// given for the candidate that is next and for the twenty newest, within the size
	// limit.
	// +listType=atomic
	// +optional
	Holds []CandidateHold `json:"holds,omitempty"`
}

// CandidateHold is one reason why a candidate is not promoted now.
type CandidateHold struct {
	// reason is the reason as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes what holds back the candidate and how to resolve it.
	// +optional
	Message string `json:"message,omitempty"`
	// until is when the hold ends without any action. If it is absent, time alone does
	// not end the hold.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// RolloutGateStatusSummary shows how one RolloutGate was evaluated.
type RolloutGateStatusSummary struct {
	// name is the name of the RolloutGate.
	// +required
	Name string `json:"name"`
	// passing is false if the gate holds back every release.
	// +optional
	Passing *bool `json:"passing,omitempty"`
	// allowedVersions are the tags that the gate allows. It is absent if the gate does
	// not filter by version.
	// +listType=atomic
	// +optional
	AllowedVersions []string `json:"allowedVersions,omitzero"`
	// message describes how the gate affects the candidates.
	// +optional
	Message string `json:"message,omitempty"`
	// bypassGates is true while the gate is bypassed.
	// +optional
	BypassGates bool `json:"bypassGates,omitempty"`
}

// TargetState is the progress of a target towards the version that it should have.
// +kubebuilder:validation:Enum=Pending;Applied;Failed;Conflict
type TargetState string

const (
	// TargetPending means that Flux has not yet reported that the version is applied.
	TargetPending TargetState = "Pending"
	// TargetApplied means that Flux reported that the version is applied.
	TargetApplied TargetState = "Applied"
	// TargetFailed means that the target could not be written, or Flux failed to apply
	// it.
	TargetFailed TargetState = "Failed"
	// TargetConflict means that something in the target keeps the version from taking
	// effect until a user resolves it.
	TargetConflict TargetState = "Conflict"
)

// TargetReason is why a target is in its state.
// +kubebuilder:validation:Enum=InvalidVersion;Outranked;Contested;DigestMismatch;TooManyRollouts;InvalidField;DependencyCycle;AccessDenied;HistoryOutdated;Rejected;Suspended;SourceMissing;DependencyNotReady;ArtifactFailed;Deleting;NotPulled;NotApplied;Unhealthy;NoConsumer;ConsumerElsewhere;NotPromoted;DigestUnknown;OtherImage;CommitUnknown;ArtifactUnproven
type TargetReason string

const (
	// TargetInvalidVersion: the version cannot be a tag, so it is not written.
	TargetInvalidVersion TargetReason = "InvalidVersion"
	// TargetOutranked: another field of the object takes precedence over the one that the
	// Rollout writes.
	TargetOutranked TargetReason = "Outranked"
	// TargetContested: another field manager keeps changing the field.
	TargetContested TargetReason = "Contested"
	// TargetDigestMismatch: Flux has pulled other content than the release by its tag.
	TargetDigestMismatch TargetReason = "DigestMismatch"
	// TargetTooManyRollouts: the annotations of the object name too many Rollouts.
	TargetTooManyRollouts TargetReason = "TooManyRollouts"
	// TargetInvalidField: an annotation names a variable or a value that cannot be written.
	TargetInvalidField TargetReason = "InvalidField"
	// TargetDependencyCycle: the object waits for the Rollout, and the Rollout for it.
	TargetDependencyCycle TargetReason = "DependencyCycle"
	// TargetAccessDenied: the object refers to another namespace, which is not allowed.
	TargetAccessDenied TargetReason = "AccessDenied"
	// TargetHistoryOutdated: the object has a newer promotion than the history.
	TargetHistoryOutdated TargetReason = "HistoryOutdated"
	// TargetRejected: the API server did not accept the write.
	TargetRejected TargetReason = "Rejected"
	// TargetSuspended: the object is suspended.
	TargetSuspended TargetReason = "Suspended"
	// TargetSourceMissing: the OCIRepository that the object consumes does not exist.
	TargetSourceMissing TargetReason = "SourceMissing"
	// TargetDependencyNotReady: Flux waits for what the object depends on.
	TargetDependencyNotReady TargetReason = "DependencyNotReady"
	// TargetArtifactFailed: Flux could not get what the object should apply.
	TargetArtifactFailed TargetReason = "ArtifactFailed"
	// TargetDeleting: the object is being deleted.
	TargetDeleting TargetReason = "Deleting"
	// TargetNotPulled: Flux failed to pull the release.
	TargetNotPulled TargetReason = "NotPulled"
	// TargetNotApplied: Flux failed to apply the release.
	TargetNotApplied TargetReason = "NotApplied"
	// TargetUnhealthy: Flux applied the release, and what it applied did not become healthy.
	TargetUnhealthy TargetReason = "Unhealthy"
	// TargetNoConsumer: nothing is known to apply what the OCIRepository or GitRepository
	// pulls.
	TargetNoConsumer TargetReason = "NoConsumer"
	// TargetConsumerElsewhere: what applies the OCIRepository or GitRepository is in another
	// namespace, and is not followed.
	TargetConsumerElsewhere TargetReason = "ConsumerElsewhere"
	// TargetNotPromoted: Flux runs a version that the Rollout has not promoted.
	TargetNotPromoted TargetReason = "NotPromoted"
	// TargetDigestUnknown: the object gets the digest of the release, which is not known.
	TargetDigestUnknown TargetReason = "DigestUnknown"
	// TargetOtherImage: the object gets the digest of the release, and pulls another image.
	TargetOtherImage TargetReason = "OtherImage"
	// TargetCommitUnknown: the status of the HelmRelease does not show of which commit its
	// chart is, which a GitRepository of the Rollout has.
	TargetCommitUnknown TargetReason = "CommitUnknown"
	// TargetArtifactUnproven: nothing can show that the ExternalArtifact that the object takes
	// has the release.
	TargetArtifactUnproven TargetReason = "ArtifactUnproven"
)

// TargetStatus shows one Flux object that the Rollout writes, or that must have applied
// what the Rollout writes.
type TargetStatus struct {
	// kind is OCIRepository, GitRepository, Kustomization or HelmRelease.
	// +required
	Kind string `json:"kind"`
	// name is the name of the object.
	// +required
	Name string `json:"name"`
	// namespace is the namespace of the object.
	// +required
	Namespace string `json:"namespace"`
	// version is the tag that the state refers to.
	// +optional
	Version string `json:"version,omitempty"`
	// digest is the digest that Flux had pulled by that tag when the target was last
	// observed to be applied; of a GitRepository, the commit. No other kind has it.
	// +optional
	Digest string `json:"digest,omitempty"`
	// state is Pending, Applied, Failed or Conflict.
	// +optional
	State TargetState `json:"state,omitempty"`
	// reason is why the target is in this state, as one word. It is absent while there is
	// nothing to say.
	// +optional
	Reason TargetReason `json:"reason,omitempty"`
	// message describes what is wrong and how to resolve it, or what the controller waits
	// for.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnlistedCounts counts the items that the lists of a status leave out because of their
// size limit. Decisions and conditions consider all items.
type UnlistedCounts struct {
	// releaseCandidates counts the candidates that are not listed. All of them are older
	// than the newest, and none is the next.
	// +optional
	ReleaseCandidates int32 `json:"releaseCandidates,omitempty"`
	// gatedReleaseCandidates counts the gated candidates that are not listed.
	// +optional
	GatedReleaseCandidates int32 `json:"gatedReleaseCandidates,omitempty"`
	// gates counts the gates that are not listed. Gates that hold back releases are
	// listed first.
	// +optional
	Gates int32 `json:"gates,omitempty"`
	// targets counts the targets that are not listed. Targets with a problem are listed
	// first.
	// +optional
	Targets int32 `json:"targets,omitempty"`
	// appliedTargets counts those of them that have applied the version.
	// +optional
	AppliedTargets int32 `json:"appliedTargets,omitempty"`
}

// RegistryMetadata is whether the controller reads metadata of images from registries.
// +kubebuilder:validation:Enum=Disabled
type RegistryMetadata string

// RegistryMetadataDisabled: the controller was started so that it does not read it.
const RegistryMetadataDisabled RegistryMetadata = "Disabled"

// RolloutStatus is the state that the controller has observed, and what it has decided
// and done.
type RolloutStatus struct {
	// conditions summarise the Rollout for users, kstatus and alerts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that was
	// handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// history records the promotions, newest first.
	// +listType=atomic
	// +optional
	History []DeploymentHistoryEntry `json:"history,omitempty"`

	// availableReleases lists the known releases, oldest first.
	// +listType=atomic
	// +optional
	AvailableReleases []VersionInfo `json:"availableReleases,omitempty"`

	// releaseCandidates are the releases newer than the current one, newest first, each
	// with the reasons that hold it back.
	// +listType=atomic
	// +optional
	ReleaseCandidates []ReleaseCandidate `json:"releaseCandidates,omitempty"`

	// gatedReleaseCandidates are the candidates that every gate allows, newest first.
	// +listType=atomic
	// +optional
	GatedReleaseCandidates []VersionInfo `json:"gatedReleaseCandidates,omitempty"`

	// gates shows how each RolloutGate of this Rollout was evaluated, sorted by name.
	// +listType=atomic
	// +optional
	Gates []RolloutGateStatusSummary `json:"gates,omitempty"`

	// targets shows each Flux object that this Rollout writes, or that must have applied
	// what it writes, sorted by kind, namespace and name.
	// +listType=atomic
	// +optional
	Targets []TargetStatus `json:"targets,omitempty"`

	// unlisted counts the items that the lists of this status leave out, because a status
	// must stay small. It is absent if the lists are complete.
	// +optional
	Unlisted *UnlistedCounts `json:"unlisted,omitempty"`

	// registryMetadata is Disabled if spec.rollback is set, and the controller does not read
	// metadata from registries. Then it does not know how far a rollback may go back.
	// +optional
	RegistryMetadata RegistryMetadata `json:"registryMetadata,omitempty"`

	// artifactType is the artifact type of the newest image.
	// +optional
	ArtifactType *string `json:"artifactType,omitempty"`
	// source is the source of the newest image.
	// +optional
	Source *string `json:"source,omitempty"`
	// title is the title of the newest image.
	// +optional
	Title *string `json:"title,omitempty"`
	// description is the description of the newest image.
	// +optional
	Description *string `json:"description,omitempty"`
}

// UnlistedTargets returns how many targets are not listed.
func (s *RolloutStatus) UnlistedTargets() int32 {
	if s.Unlisted == nil {
		return 0
	}
	return s.Unlisted.Targets
}
