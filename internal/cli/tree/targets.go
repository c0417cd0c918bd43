// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// targetsOf shows each target in the state that was gathered from the Flux object itself:
// status.targets of the Rollout may be behind. Below a repository are those that
// consume it.
//
// It also returns what the Kustomizations and HelmReleases have applied.
func targetsOf(s gather.Snapshot, d promotion.Decision) (*Node, []applied) {
	group := &Node{Name: "Targets", Children: problem(s.Targets.Problem)}
	repositories := map[targets.Ref]*Node{}
	var consumers []int
	var all []applied
	for i, t := range s.Found {
		if t.Repository == nil {
			consumers = append(consumers, i)
			continue
		}
		node := targetNode(t, s.Targets.All[i], d)
		node.Children = notFollowed(s.Targets.All[i])
		repositories[targets.RefTo(t.Repository)] = node
		group.Children = append(group.Children, node)
	}
	for _, i := range consumers {
		parent := group
		if source := s.Found[i].Source; source != nil && repositories[targets.RefTo(source)] != nil {
			parent = repositories[targets.RefTo(source)]
		}
		if made := s.Found[i].Artifact; made != nil && repositories[made.Origin()] != nil {
			parent = repositories[made.Origin()]
		}
		node := targetNode(s.Found[i], s.Targets.All[i], d)
		parent.Children = append(parent.Children, node)
		all = append(all, appliedOf(node, s.Found[i].Object()))
	}
	group.Sign, group.Text = appliedBy(s.Input)
	return group, all
}

// appliedBy counts the targets that have applied the release. Its sign is the one that
// matters most among them.
func appliedBy(in promotion.Input) (Sign, string) {
	if in.Targets.Problem != nil {
		return Unknown, ""
	}
	if len(in.Targets.All) == 0 {
		return Waits, "no Flux object is annotated with the name of this Rollout"
	}
	applied := 0
	var nodes []*Node
	for _, t := range in.Targets.All {
		nodes = append(nodes, &Node{Sign: targetSign(t.State)})
		if t.State == v1alpha1.TargetApplied {
			applied++
		}
	}
	verb := "applied"
	if in.Targets.PulledOnly() == len(in.Targets.All) {
		verb = "pulled"
	}
	text := fmt.Sprintf("%d of %d %s", applied, len(in.Targets.All), verb)
	if current := in.Rollout.Current(); current != nil {
		text += " " + current.Version.Tag
	}
	return worst(nodes), text
}

// notFollowed says what applies a repository and is not waited for, or that nothing is
// known to.
func notFollowed(seen content.Target) []*Node {
	if seen.State != v1alpha1.TargetApplied || seen.Message == "" {
		return nil
	}
	return []*Node{missing("consumers", seen.Message)}
}

func targetNode(t targets.Target, seen content.Target, d promotion.Decision) *Node {
	node := &Node{Object: fluxObject(t.Object()), Target: true, Sign: targetSign(seen.State), Conditions: conditionsOf(t.Object())}
	node.Text = targetText(t, seen, node.Conditions, d)
	node.Message = node.Text
	if ready := apimeta.FindStatusCondition(node.Conditions, meta.ReadyCondition); node.Message == "" && ready != nil {
		node.Message = ready.Message
	}
	if isSuspended(t.Object()) && node.Sign == Waits {
		node.Sign = Suspended
	}
	if isDeleted(t.Object()) {
		node.Sign = Waits
	}
	return node
}

// targetText returns what keeps a target from having applied the release, in the words of
// the engine, or else in those of Flux. A repository that has applied it shows what
// Flux has pulled.
func targetText(t targets.Target, seen content.Target, conditions []metav1.Condition, d promotion.Decision) string {
	ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	switch {
	case isDeleted(t.Object()):
		return "is being deleted"
	case seen.Message != "" && seen.State != v1alpha1.TargetApplied:
		return seen.Message
	case seen.State != v1alpha1.TargetApplied && ready != nil && ready.Status != metav1.ConditionTrue:
		return ready.Message
	case seen.State != v1alpha1.TargetApplied:
		return "has not applied it"
	case t.Repository != nil && t.Repository.GetArtifact() != nil:
		return pulled(t.Repository, d)
	}
	return ""
}

// pulled says what a repository has pulled. For one that pulls by digest it says the tag as
// well, and which content waits under that tag.
func pulled(r targets.Repository, d promotion.Decision) string {
	revision := r.GetArtifact().Revision
	source, ok := r.(*sourcev1.OCIRepository)
	if !ok || source.Spec.Reference == nil || source.Spec.Reference.Digest == "" {
		return shortRevision(revision)
	}
	tag := source.Spec.Reference.Tag
	text := shortRevision(tag+"@"+revision) + ", by its digest"
	for _, candidate := range d.Candidates {
		if release := candidate.Release; release.Tag == tag && release.Digest != nil {
			return text + "; the tag was pushed again: now " + shortRevision(tag+"@"+*release.Digest)
		}
	}
	return text
}

// shortRevision shortens the digest in a revision to what usually distinguishes it.
func shortRevision(revision string) string {
	const enough = len("sha256:") + 8
	tag, digest, ok := strings.Cut(revision, "@")
	if !ok || len(digest) <= enough {
		return revision
	}
	return tag + "@" + digest[:enough]
}

func targetSign(s v1alpha1.TargetState) Sign {
	switch s {
	case v1alpha1.TargetApplied:
		return Well
	case v1alpha1.TargetFailed, v1alpha1.TargetConflict:
		return Failed
	case v1alpha1.TargetPending, "":
		return Waits
	}
	return Unknown
}

// fluxObject refers to a Flux object. Objects of a list do not contain their kind.
func fluxObject(o client.Object) *Object {
	object := &Object{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	switch o.(type) {
	case *sourcev1.GitRepository:
		object.Group, object.Version, object.Kind = sourcev1.GroupVersion.Group, sourcev1.GroupVersion.Version, sourcev1.GitRepositoryKind
	case *sourcev1.OCIRepository:
		object.Group, object.Version, object.Kind = sourcev1.GroupVersion.Group, sourcev1.GroupVersion.Version, sourcev1.OCIRepositoryKind
	case *kustomizev1.Kustomization:
		object.Group, object.Version, object.Kind = kustomizev1.GroupVersion.Group, kustomizev1.GroupVersion.Version, kustomizev1.KustomizationKind
	case *helmv2.HelmRelease:
		object.Group, object.Version, object.Kind = helmv2.GroupVersion.Group, helmv2.GroupVersion.Version, helmv2.HelmReleaseKind
	}
	return object
}

func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case targets.Repository:
		return o.GetConditions()
	case *kustomizev1.Kustomization:
		return o.Status.Conditions
	case *helmv2.HelmRelease:
		return o.Status.Conditions
	}
	return nil
}

func isSuspended(o client.Object) bool {
	switch o := o.(type) {
	case *sourcev1.GitRepository:
		return o.Spec.Suspend
	case *sourcev1.OCIRepository:
		return o.Spec.Suspend
	case *kustomizev1.Kustomization:
		return o.Spec.Suspend
	case *helmv2.HelmRelease:
		return o.Spec.Suspend
	}
	return false
}
