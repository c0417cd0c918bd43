// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// quarantinesOf shows each quarantine of the release that runs, and of those that may come
// next; nil if there is none.
func quarantinesOf(in promotion.Input, d promotion.Decision) *Node {
	group := &Node{Name: "Quarantines", Children: problem(in.Quarantines.Problem)}
	if current := in.Rollout.Current(); current != nil {
		for _, q := range promotion.QuarantinesOn(in, current.Version) {
			group.Children = append(group.Children, quarantineOf(in, q, Waits, current.Version.Tag+", which runs, is in it"))
		}
	}
	for _, candidate := range d.Candidates[:min(len(d.Candidates), releases.MostExplained)] {
		for _, q := range promotion.QuarantinesOn(in, candidate.Release) {
			node := quarantineOf(in, q, Failed, "holds "+candidate.Release.Tag)
			if !candidate.HeldBy(v1alpha1.QuarantinedReason) {
				node = quarantineOf(in, q, Well, "does not hold "+candidate.Release.Tag)
			} else if !quarantine.Until(&q.Spec, &q.Status).IsZero() {
				node.Sign = Waits
			}
			group.Children = append(group.Children, node)
		}
	}
	if len(group.Children) == 0 {
		return nil
	}
	return summed(group, "")
}

// quarantineOf returns the node of a quarantine, with what it means for a release.
func quarantineOf(in promotion.Input, q quarantined.Quarantine, sign Sign, means string) *Node {
	kind, name, _ := strings.Cut(q.Name, " ")
	namespace := in.Rollout.Namespace
	if before, after, elsewhere := strings.Cut(name, "/"); elsewhere {
		namespace, name = before, after
	} else if kind == v1alpha1.ClusterReleaseQuarantineKind {
		namespace = ""
	}
	text := means
	if until := quarantine.Until(&q.Spec, &q.Status); !until.IsZero() {
		text += " until " + until.UTC().Format(time.RFC3339)
	}
	if reason := strings.TrimSpace(q.Spec.Reason); reason != "" {
		text += ": " + reason
	}
	return &Node{Object: own(kind, namespace, name), Sign: sign, Text: text, Message: text}
}

// inserted returns groups with another one at a place, unless it is nil.
func inserted(groups []*Node, at int, group *Node) []*Node {
	if group == nil {
		return groups
	}
	return slices.Insert(groups, at, group)
}
