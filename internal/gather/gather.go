// SPDX-License-Identifier: Apache-2.0

// Package gather reads what a decision about a Rollout needs, through a reader: the caches
// of the controller, or a snapshot of a cluster. Package promotion decides.
//
// What cannot be read is a fact in the result. It holds releases back and says why, and
// the rest of the decision is taken all the same.
package gather

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Gatherer reads what decisions need.
type Gatherer struct {
	// Client reads objects. It needs the field indexes of [Index].
	Client client.Reader
	// Live reads past the caches, where an old copy would do harm.
	Live client.Reader
	// NoCrossNamespaceRefs refuses HealthChecks, ImageRepositories, OCIRepositories,
	// GitRepositories and Environments of other namespaces.
	NoCrossNamespaceRefs bool
	// OneNamespace is true if Client has the Kustomizations and HelmReleases of only one
	// namespace. What consumes an OCIRepository from others is then what the status shows.
	OneNamespace bool
	// HelmReleases looks for targets among HelmReleases too. Not every cluster serves
	// them. Client needs their index, see [targets.IndexHelmReleases].
	HelmReleases bool
	// GitRepositories looks for targets among GitRepositories too. Not every account may read
	// them. Client needs their index, see [targets.IndexGitRepositories].
	GitRepositories bool
	// Artifacts follows releases through ArtifactGenerators and ExternalArtifacts. Not every
	// cluster serves them. Client needs their index, see [targets.IndexArtifacts].
	Artifacts bool
	// Generators remembers what ArtifactGenerators have seen; nil reads it each time.
	Generators *Generators
	// Environments reads the Environments of Rollouts, and what those before them say. Not
	// every cluster serves them. Client needs their indexes, see [IndexEnvironments].
	Environments bool
	// UnreadSchedules are the kinds of schedules that Client may not list. What the gates
	// show of them counts in their place.
	UnreadSchedules []string
	// Quarantines reads ReleaseQuarantines and ClusterReleaseQuarantines. Not every cluster
	// serves them.
	Quarantines bool
	// QuarantinesEverywhere lets the ReleaseQuarantines of all namespaces count.
	QuarantinesEverywhere bool
	// Approvals reads RolloutApprovals and ClusterRolloutGates. Not every cluster serves them.
	// Client needs their index, see [IndexApprovals].
	Approvals bool
	// Identity says whether the names in approvals can be trusted; without it, none can.
	Identity func(context.Context) approvals.Identity
	// InstanceLabels are the labels that decide which of several instances acts for an
	// object. A HealthCheck that a Rollout owns has those of the Rollout.
	InstanceLabels []string
	// Reports knows the reports of upstreams in other clusters; nil uses only what the
	// status of the Environment has of them.
	Reports Reports
	// Images knows what registries say; nil uses only what Flux shows.
	Images Images
	// Windows remembers the state of schedules; nil evaluates them each time.
	Windows *Windows
	// Memory corrects what Client shows; nil corrects nothing.
	Memory Memory
	// Started says whether what a target lacks has run; nil takes all that Flux calls
	// unhealthy for a verdict.
	Started Started
}

// Started looks at the objects of a target that did not become healthy.
type Started interface {
	// NotStarted reports whether what is missing was not started, and nothing that has run
	// has failed.
	NotStarted(ctx context.Context, subject kustomization.Subject) bool
}

// Images knows what registries say of the images that ImagePolicies offer. It never
// waits: it answers with what is known now.
type Images interface {
	// Policy returns the policy of an offer, with all tags of the registry if Flux shows
	// only some of them.
	Policy(rollout types.NamespacedName, offer imagepolicy.Offer) releases.Policy
	// Metadata returns what is known of the releases for which the status of the Rollout
	// has no metadata.
	Metadata(in promotion.Input, offer imagepolicy.Offer) []releases.Metadata
}

// Memory is what a controller remembers of its own writes, and what no cache shows.
type Memory interface {
	// Stale reports whether the copy of an object is older than the last write to it.
	Stale(copied client.Object) bool
	// Judge returns the state of a target, given what its copy shows.
	Judge(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen content.Target) (content.Target, error)
	// Checks returns HealthChecks as they count, and why some cannot be reset, by
	// "namespace/name". It may change the slice, but nothing that its items refer to.
	Checks(rollout *v1alpha1.Rollout, checks []v1alpha1.HealthCheck) (counted []v1alpha1.HealthCheck, rejected map[string]string)
}

// Snapshot is the input of a decision, and the objects behind it that the decision may ask
// to write.
type Snapshot struct {
	promotion.Input
	// Found are the targets, in the order of Input.Targets.All. It is empty if the targets
	// could not be read.
	Found []targets.Target
	// TargetChecks are the HealthChecks that the Rollout owns, and those that it lacks.
	TargetChecks TargetChecks
	// Unsettled is true if the Rollout or an Environment was created a moment ago, and its
	// ImagePolicy or its status may follow at once.
	Unsettled bool
	// Err joins the reads that failed and may succeed later. Each is a Problem in the
	// Input as well.
	Err error
}

// Gather reads the input of the decision about a Rollout at a time, mostly from caches and
// field indexes.
func (g Gatherer) Gather(ctx context.Context, rollout *v1alpha1.Rollout, now time.Time) Snapshot {
	s := Snapshot{Input: promotion.Input{Now: now, Rollout: promotion.WithFacts(rollout)}}
	offer := g.gatherPolicy(ctx, &s)
	s.failed(g.gatherTargets(ctx, &s))
	s.failed(g.gatherGates(ctx, &s))
	s.failed(g.gatherApprovals(ctx, &s))
	s.failed(g.gatherUpstreams(ctx, &s))
	s.Targets.All = s.Compared()
	if g.Images != nil {
		s.Metadata = g.Images.Metadata(s.Input, offer)
		s.Targets.All = s.Compared() // now with the metadata from the registry
	} else {
		s.MetadataOff = rollout.Status.RegistryMetadata == v1alpha1.RegistryMetadataDisabled // nowhere else is it seen from outside
	}
	s.Targets.All = g.consumed(&s, s.Found, s.Targets.All)
	s.failed(g.gatherQuarantines(ctx, &s))
	s.failed(g.gatherHealth(ctx, &s))
	return s
}

// failed notes an error. Of an object that cannot be decoded nothing is noted: trying
// again does not help, and its correction is an event.
func (s *Snapshot) failed(err error) { s.Err = errors.Join(s.Err, unreadable.Ignore(err)) }

// gatherPolicy reads which releases there are.
func (g Gatherer) gatherPolicy(ctx context.Context, s *Snapshot) imagepolicy.Offer {
	key := types.NamespacedName{Namespace: s.Rollout.Namespace, Name: s.Rollout.Spec.ReleasesImagePolicy.Name}
	policies := imagepolicy.Reader{Client: g.Client, NoCrossNamespaceRefs: g.NoCrossNamespaceRefs}
	offer, err := policies.Read(ctx, key)
	s.failed(err)
	s.Policy = offer.Policy
	missing := offer.Problem != nil && offer.Problem.Reason == v1alpha1.ImagePolicyNotFoundReason
	s.Unsettled = missing && s.Rollout.Status.ObservedGeneration <= 0 && isNew(s.Rollout, s.Now)
	if g.Images != nil {
		s.Policy = g.Images.Policy(client.ObjectKeyFromObject(s.Rollout), offer)
	}
	s.Policy = s.Policy.WithUnnamed()
	return offer
}
