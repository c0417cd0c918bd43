// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rolloutsv1 "github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// EnvironmentKind is the kind of an Environment.
const EnvironmentKind = "Environment"

// EnvironmentSpec defines what must have proven a release before the Rollout of this
// environment may promote it.
// +kubebuilder:validation:XValidation:rule="!has(self.relationship) || !has(self.upstreams)",message="give either relationship or upstreams, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.upstreams) || self.backend.type == 'oci' || self.upstreams.all(u, !has(u.repository))",message="an upstream with a repository requires backend.type oci"
// +kubebuilder:validation:XValidation:rule="has(self.environment) && self.environment != \"\" || self.backend.type == 'github'",message="spec.environment is required"
type EnvironmentSpec struct {
	// rolloutRef names the Rollout, in the Environment's own namespace, that promotes
	// releases to this environment.
	// +required
	RolloutRef rolloutsv1.LocalObjectReference `json:"rolloutRef"`

	// name is the name of the application. It is the same in all environments of the
	// application.
	// +required
	Name string `json:"name"`

	// environment is the name of this environment, for example staging. It is required
	// unless backend.type is github.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Environment string `json:"environment,omitempty"`

	// relationship is the short form of one item of upstreams, without its optional
	// fields.
	// +optional
	Relationship *Relationship `json:"relationship,omitempty"`

	// upstreams are the environments that a release must have passed before it may come
	// here. They are Environments of the same application.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=environment
	// +optional
	Upstreams []Upstream `json:"upstreams,omitempty"`

	// availability defines how many of the upstreams of type After must have proven a
	// release: All, the default, or OneOf.
	// +optional
	Availability Availability `json:"availability,omitempty"`

	// matchBy defines how a release is recognized in another environment. Digest, the
	// default, takes the digest of the image. Revision takes the revision that it was
	// built from, for those who build again for each environment.
	// +optional
	MatchBy MatchBy `json:"matchBy,omitempty"`

	// selection defines which proven releases may come here. Proven, the default, allows
	// all of them. Current allows only what the upstreams of type After run now.
	// +optional
	Selection Selection `json:"selection,omitempty"`

	// promotion defines what happens to a proven release. Automatic, the default,
	// promotes it. Manual waits until a user promotes it.
	// +optional
	Promotion PromotionMode `json:"promotion,omitempty"`

	// bypass defines whether the annotation bypass-gates of the Rollout lets a release go
	// past the upstreams and past promotion Manual. RequireReason, the default, allows it
	// together with the annotation deploy-message. Allow always allows it, and Deny never.
	// +optional
	Bypass Bypass `json:"bypass,omitempty"`

	// afterBypass defines what follows a release that went past the upstreams, by bypass-gates
	// or force-deploy. Hold, the default, waits until a user promotes it, as with promotion
	// Manual: it may lack the fix. Proceed promotes what is proven. It has no effect without
	// upstreams.
	// +optional
	AfterBypass AfterBypass `json:"afterBypass,omitempty"`

	// accessFrom allows Environments of other namespaces to name this one as their
	// upstream. Environments of its own namespace need no permission.
	// +optional
	AccessFrom *rolloutsv1.AccessFrom `json:"accessFrom,omitempty"`

	// url is where the environment can be reached. Dashboards show it.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// backend is how this environment and others learn of each other.
	// +kubebuilder:default={type: cluster}
	// +optional
	Backend Backend `json:"backend,omitempty"`

	// requeueInterval is the longest pause between two looks at the report of an upstream
	// in another cluster, while a release waits for it. Defaults to 1m, and is at least
	// 10s. Without news for an hour, the pauses grow to 10m. What is in the same API server
	// is watched.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	RequeueInterval *metav1.Duration `json:"requeueInterval,omitempty"`
}

// Upstream is an environment that a release must have passed.
// +kubebuilder:validation:XValidation:rule="has(self.repository) == has(self.cluster)",message="give repository and cluster together: they say where the report of another cluster is, and whose it must be"
// +kubebuilder:validation:XValidation:rule="!has(self.repository) || has(self.namespace)",message="give the namespace that the upstream has in its own cluster"
type Upstream struct {
	// environment is the name of the upstream, as its own spec.environment gives it.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Environment string `json:"environment"`

	// type defines what the upstream must prove. After, the default, requires that the
	// release succeeded there. Parallel only holds back what failed or was withdrawn
	// there, and what cannot be recognized.
	// +optional
	Type RelationshipType `json:"type,omitempty"`

	// namespace is where the Environment of the upstream is. Defaults to the namespace of
	// this Environment. The spec.accessFrom of an Environment in another namespace must
	// admit this namespace. With repository, it is required, and means a namespace in the
	// cluster of the upstream.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// rollout is the name of the Rollout of the upstream. Defaults to the name of this
	// environment's Rollout.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Rollout string `json:"rollout,omitempty"`

	// repository is the name of the OCI repository with the report of an upstream in
	// another cluster, for example registry.example.com/promotions/staging: the
	// spec.backend.project of its Environment there. It requires backend.type oci. Without
	// it, the upstream is in the same API server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Repository string `json:"repository,omitempty"`

	// cluster is the name of the cluster of the upstream: the --cluster-name of the
	// controller there. It is required together with repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9_-]+$"
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// soakTime is how long a release must have been healthy in the upstream, without
	// interruption, before it may come here. The time of its bake counts. Defaults to 0s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	SoakTime *metav1.Duration `json:"soakTime,omitempty"`

	// minimumEvidence is what a success in the upstream must stand on: Applied, the default,
	// Healthy or Baked. A release that was neither deployed nor checked there is proven in no
	// case.
	// +kubebuilder:validation:Enum=Applied;Healthy;Baked
	// +optional
	MinimumEvidence Evidence `json:"minimumEvidence,omitempty"`

	// silence defines whether time counts for a soak in which nothing is heard of the upstream.
	// Hold, the default, does not count it. Accept does, for upstreams that are switched off at
	// times.
	// +optional
	Silence Silence `json:"silence,omitempty"`
}

// Silence defines whether time counts for a soak in which nothing is heard of an upstream.
// +kubebuilder:validation:Enum=Hold;Accept
type Silence string

const (
	// SilenceHolds does not count it. It is the default.
	SilenceHolds Silence = "Hold"
	// SilenceAccepted counts it.
	SilenceAccepted Silence = "Accept"
)

// Heard returns until when a release counts as healthy in the upstream if nothing more is
// heard of it since a time. It is zero if there is no such limit.
func (u Upstream) Heard(r *Release, since time.Time) time.Time {
	if u.Silence == SilenceAccepted || r.RenewAfter == nil {
		return time.Time{}
	}
	return since.Add(r.GrantedFor())
}

// GrantedFor returns for how long a release counts as healthy after it was renewed.
func (r *Release) GrantedFor() time.Duration { return 2 * r.RenewAfter.Duration }

// Longest returns the longest time that counts as healthy without interruption, as it was
// written. Times of two promotions are never added up.
func (r *Release) Longest() time.Duration {
	var longest time.Duration
	for _, soak := range []*metav1.Duration{r.Soaked, r.LongestSoak} {
		if soak != nil {
			longest = max(longest, soak.Duration)
		}
	}
	return longest
}

// Relationship names one upstream.
type Relationship struct {
	// environment is the name of the upstream.
	// +required
	Environment string `json:"environment"`
	// type is After or Parallel.
	// +required
	Type RelationshipType `json:"type"`
}

// RelationshipType defines what an upstream must prove.
// +kubebuilder:validation:Enum=After;Parallel
type RelationshipType string

const (
	// After requires that a release succeeded in the upstream.
	After RelationshipType = "After"
	// Parallel holds back only what failed or was withdrawn in the upstream.
	Parallel RelationshipType = "Parallel"
)

// Availability defines how many upstreams must have proven a release.
// +kubebuilder:validation:Enum=All;OneOf
type Availability string

const (
	// AllUpstreams requires every upstream. It is the default.
	AllUpstreams Availability = "All"
	// OneOfUpstreams requires one of the upstreams.
	OneOfUpstreams Availability = "OneOf"
)

// MatchBy defines how a release is recognized in another environment.
// +kubebuilder:validation:Enum=Digest;Revision
type MatchBy string

const (
	// MatchByDigest takes the digest of the image. It is the default.
	MatchByDigest MatchBy = "Digest"
	// MatchByRevision takes the revision that the image was built from.
	MatchByRevision MatchBy = "Revision"
)

// Selection defines which proven releases may come.
// +kubebuilder:validation:Enum=Proven;Current
type Selection string

const (
	// SelectProven allows every proven release. It is the default.
	SelectProven Selection = "Proven"
	// SelectCurrent allows only what the upstreams run now.
	SelectCurrent Selection = "Current"
)

// PromotionMode defines what happens to a proven release.
// +kubebuilder:validation:Enum=Automatic;Manual
type PromotionMode string

const (
	// PromoteAutomatically promotes a proven release. It is the default.
	PromoteAutomatically PromotionMode = "Automatic"
	// PromoteManually waits until a user promotes it.
	PromoteManually PromotionMode = "Manual"
)

// Bypass defines whether users can let a release go past the upstreams.
// +kubebuilder:validation:Enum=RequireReason;Allow;Deny
type Bypass string

const (
	// BypassRequiresReason allows it if the user gives a reason. It is the default.
	BypassRequiresReason Bypass = "RequireReason"
	// BypassAllowed always allows it.
	BypassAllowed Bypass = "Allow"
	// BypassDenied never allows it.
	BypassDenied Bypass = "Deny"
)

// AfterBypass defines what follows a release that went past the upstreams.
// +kubebuilder:validation:Enum=Hold;Proceed
type AfterBypass string

const (
	// AfterBypassHold waits until a user promotes it. It is the default.
	AfterBypassHold AfterBypass = "Hold"
	// AfterBypassProceed promotes what is proven.
	AfterBypassProceed AfterBypass = "Proceed"
)

// BackendType is how environments learn of each other.
// +kubebuilder:validation:Enum=cluster;oci;github
type BackendType string

const (
	// BackendCluster reads the upstream's objects in the same API server. It is the
	// default.
	BackendCluster BackendType = "cluster"
	// BackendOCI also writes a signed report of this environment to an OCI registry, and
	// reads those of upstreams in other clusters.
	BackendOCI BackendType = "oci"
	// BackendGitHub leaves the Environment to another controller, which writes a
	// RolloutGate.
	BackendGitHub BackendType = "github"
)

// Backend is how environments learn of each other.
// +kubebuilder:validation:XValidation:rule="self.type != 'github' || has(self.project)",message="project is required for type github"
// +kubebuilder:validation:XValidation:rule="self.type == 'oci' || !has(self.verify) && !has(self.insecure)",message="verify and insecure are for type oci"
type Backend struct {
	// type is cluster, oci or github.
	// +required
	Type BackendType `json:"type"`
	// project is the name of the OCI repository for the report of this environment, for
	// type oci, for example registry.example.com/promotions/staging. Without it, nothing is
	// reported. For type github, it is the owner and name of a repository there.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Project string `json:"project,omitempty"`
	// secret is the name of a Secret in the namespace of the Environment. For type oci, it
	// is of type kubernetes.io/dockerconfigjson, with the login to the registries of the
	// reports. It defaults to the login of the ImageRepository that the Rollout's
	// ImagePolicy scans. For type github, it has a token.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Secret string `json:"secret,omitempty"`
	// verify says which keys the reports of upstreams must be signed with. It defaults to
	// the --trusted-keys-secret of the controller. Only type oci uses it.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// insecure allows plain HTTP. Only type oci uses it.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// Verification says which keys are trusted.
type Verification struct {
	// secretRef names a Secret in the namespace of the Environment. Each of its values whose
	// key ends with .pub is a trusted public key, in the PEM format. It may sign for the cluster
	// whose name the key of the Secret begins with, up to the first dot.
	// +required
	SecretRef rolloutsv1.LocalObjectReference `json:"secretRef"`
}

// EnvironmentStatus is what the environment has deployed, and what its neighbours have.
type EnvironmentStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// currentVersion is the revision of the current release.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// lastStatusChangeTime is when the state of the current release last changed.
	// +optional
	LastStatusChangeTime *metav1.Time `json:"lastStatusChangeTime,omitempty"`

	// rolloutGateRef names the RolloutGate of type github.
	// +optional
	RolloutGateRef *rolloutsv1.LocalObjectReference `json:"rolloutGateRef,omitempty"`

	// environmentInfos show this environment and its upstreams, for dashboards.
	// +listType=atomic
	// +optional
	EnvironmentInfos []EnvironmentInfo `json:"environmentInfos,omitempty"`

	// source is what the releases are of: the application, the environment and the Rollout.
	// With another spec, the record begins anew.
	// +optional
	Source string `json:"source,omitempty"`

	// releases are what this environment says of the releases that it has deployed, the
	// newest promotion first. Environments after it judge by them.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	Releases []Release `json:"releases,omitempty"`

	// upstreams are what was read of each upstream.
	// +listType=map
	// +listMapKey=environment
	// +optional
	Upstreams []UpstreamStatus `json:"upstreams,omitempty"`

	// report is what was published of this environment last, with backend.type oci.
	// +optional
	Report *ReportStatus `json:"report,omitempty"`

	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that was handled
	// last: the reports of the upstreams were looked at.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ReportStatus is what was published of an environment.
type ReportStatus struct {
	// reference is where the report is.
	// +optional
	Reference string `json:"reference,omitempty"`
	// digest is a hash of what the report says. Nothing is published as long as it stays
	// the same.
	// +optional
	Digest string `json:"digest,omitempty"`
	// sequence is the number of the report. It is higher in each newer one.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// publishedTime is when it was published.
	// +optional
	PublishedTime *metav1.Time `json:"publishedTime,omitempty"`
	// reason is why the newest report could not be published, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes why the newest report could not be published.
	// +optional
	Message string `json:"message,omitempty"`
}

// EnvironmentInfo shows one environment.
type EnvironmentInfo struct {
	// environment is its name.
	// +required
	Environment string `json:"environment"`
	// environmentUrl is where it can be reached.
	// +optional
	EnvironmentURL string `json:"environmentUrl,omitempty"`
	// relationship is its upstream.
	// +optional
	Relationship *Relationship `json:"relationship,omitempty"`
	// history is the history of its Rollout, or the newest part of it.
	// +listType=atomic
	// +optional
	History []rolloutsv1.DeploymentHistoryEntry `json:"history,omitempty"`
}

// Evidence is what the success of a release stands on.
type Evidence string

const (
	// EvidenceNone means that there was neither a target nor a HealthCheck: nothing was
	// deployed, and nothing was checked.
	EvidenceNone Evidence = "None"
	// EvidenceApplied means that Flux applied it, and there is no HealthCheck.
	EvidenceApplied Evidence = "Applied"
	// EvidenceHealthy means that it was applied and healthy.
	EvidenceHealthy Evidence = "Healthy"
	// EvidenceBaked means that it also stayed healthy for the time of its bake.
	EvidenceBaked Evidence = "Baked"
)

// strength are the kinds of evidence, the weakest first.
var strength = []Evidence{EvidenceNone, EvidenceApplied, EvidenceHealthy, EvidenceBaked}

// AtLeast reports whether evidence is as strong as another one. Where none is given, it is
// Applied.
func (e Evidence) AtLeast(least Evidence) bool {
	return slices.Index(strength, cmp.Or(e, EvidenceApplied)) >= slices.Index(strength, cmp.Or(least, EvidenceApplied))
}

// Release is what an environment says of one release. It is recognized by its digest.
type Release struct {
	// tag is the tag by which it was promoted last.
	// +required
	Tag string `json:"tag"`
	// digest is the digest of its image.
	// +optional
	Digest string `json:"digest,omitempty"`
	// revision is the revision that the image was built from.
	// +optional
	Revision string `json:"revision,omitempty"`
	// id is the number of its newest promotion in the history of the Rollout.
	// +optional
	ID int64 `json:"id,omitempty"`
	// firstID is the number of its first promotion, if that is another one.
	// +optional
	FirstID int64 `json:"firstID,omitempty"`
	// state is the state of that promotion.
	// +optional
	State rolloutsv1.BakeStatus `json:"state,omitempty"`
	// message describes why it has failed.
	// +optional
	Message string `json:"message,omitempty"`
	// since is when it came to that state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// until is when its bake ends, if it stays healthy.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// evidence is what its success stands on: None, Applied, Healthy or Baked.
	// +optional
	Evidence Evidence `json:"evidence,omitempty"`
	// current is true for the release that runs.
	// +optional
	Current bool `json:"current,omitempty"`
	// unhealthy names the HealthChecks that are Unhealthy while it is current.
	// +optional
	Unhealthy string `json:"unhealthy,omitempty"`
	// healthySince is since when it has been healthy without interruption, while it is
	// current.
	// +optional
	HealthySince *metav1.Time `json:"healthySince,omitempty"`
	// soaked is how long it had been healthy without interruption when this was written.
	// +optional
	Soaked *metav1.Duration `json:"soaked,omitempty"`
	// longestSoak is how long it had been healthy without interruption in an earlier promotion,
	// while it is current. It is absent if the release has failed, was unhealthy or was withdrawn
	// since.
	// +optional
	LongestSoak *metav1.Duration `json:"longestSoak,omitempty"`
	// renewedTime is when it was last confirmed that it is still healthy, while it is current.
	// +optional
	RenewedTime *metav1.Time `json:"renewedTime,omitempty"`
	// renewAfter is after which time that is confirmed again. Environments after this one grant
	// a soak for twice that time in silence. It is absent if no further confirmation is planned.
	// +optional
	RenewAfter *metav1.Duration `json:"renewAfter,omitempty"`
	// withdrawn describes why it no longer counts, although it has succeeded.
	// +optional
	Withdrawn string `json:"withdrawn,omitempty"`
}

// UpstreamStatus is what was read of an upstream.
type UpstreamStatus struct {
	// environment is the name of the upstream.
	// +required
	Environment string `json:"environment"`
	// observedDigest is a hash of what the upstream says of its releases, and of the number
	// of the report that says it.
	// +optional
	ObservedDigest string `json:"observedDigest,omitempty"`
	// verifiedTime is when this was first read. The rest of a soak time counts from it.
	// +optional
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`
	// reason is why the upstream cannot be read, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes why the upstream cannot be read.
	// +optional
	Message string `json:"message,omitempty"`
	// source is whose report was verified: the application, the cluster, the namespace and
	// the Rollout. Only upstreams in other clusters have it.
	// +optional
	Source string `json:"source,omitempty"`
	// sequence is the number of the report that was verified last. Only upstreams in other
	// clusters have it.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// keys are the keys that have signed the reports that were verified, each with the highest
	// number of these. A report with a lower number than that of a trusted key is refused.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=key
	// +optional
	Keys []KeySequence `json:"keys,omitempty"`
	// releases are what the report says, the newest promotion first. Only upstreams in
	// other clusters have them.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	Releases []Release `json:"releases,omitempty"`
}

// KeySequence is the highest number of the reports that a key has signed.
type KeySequence struct {
	// key is the fingerprint of the public key.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Key string `json:"key"`
	// sequence is the highest number.
	// +required
	Sequence int64 `json:"sequence"`
}

// Environment says which environments a release must have passed before the Rollout of
// this one may promote it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.releases[0].tag`
// +kubebuilder:printcolumn:name="After",type=string,JSONPath=`.spec.upstreams[0].environment`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Environment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what must have proven a release.
	// +optional
	Spec EnvironmentSpec `json:"spec,omitempty"`
	// status is what the environment and its neighbours have deployed.
	// +optional
	Status EnvironmentStatus `json:"status,omitempty"`
}

// EnvironmentList is a list of Environments.
//
// +kubebuilder:object:root=true
type EnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Environment `json:"items"`
}

// GetConditions returns the conditions. Flux's condition functions call it.
func (e *Environment) GetConditions() []metav1.Condition { return e.Status.Conditions }

// SetConditions replaces the conditions. Flux's condition functions call it.
func (e *Environment) SetConditions(conditions []metav1.Condition) { e.Status.Conditions = conditions }

// Limits of the pause between two looks at a report.
const (
	defaultRequeueInterval  = time.Minute
	shortestRequeueInterval = 10 * time.Second
)

// GetRequeueInterval returns the longest pause between two looks at a report, with its
// default and its limit.
func (e *Environment) GetRequeueInterval() time.Duration {
	if e.Spec.RequeueInterval == nil {
		return defaultRequeueInterval
	}
	return max(shortestRequeueInterval, e.Spec.RequeueInterval.Duration)
}

// IsRemote reports whether the upstream is in another cluster, and its report in a
// registry.
func (u Upstream) IsRemote() bool { return u.Repository != "" }

// GetUpstreams returns the upstreams of either form, each with its defaults.
func (e *Environment) GetUpstreams() []Upstream {
	upstreams := e.Spec.Upstreams
	if r := e.Spec.Relationship; r != nil {
		upstreams = []Upstream{{Environment: r.Environment, Type: r.Type}}
	}
	all := make([]Upstream, 0, len(upstreams))
	for _, u := range upstreams {
		if u.Type == "" {
			u.Type = After
		}
		if u.Namespace == "" {
			u.Namespace = e.Namespace
		}
		if u.Rollout == "" {
			u.Rollout = e.Spec.RolloutRef.Name
		}
		all = append(all, u)
	}
	return all
}
