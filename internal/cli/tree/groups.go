// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/measured"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// gatesOf shows each gate as the engine sums it up. A gate has the sign Failed if the
// engine counts it among those that hold the next release.
func gatesOf(in promotion.Input, d promotion.Decision) *Node {
	group := &Node{Name: "Gates", Children: problem(in.Gates.Problem)}
	holding := holdingGates(in, d)
	summaries := promotion.Summaries(in, d.Candidates)
	for i := range in.Gates.Gates {
		gate := &in.Gates.Gates[i]
		at := slices.IndexFunc(summaries, func(s v1alpha1.RolloutGateStatusSummary) bool { return s.Name == gate.Name })
		node := &Node{Object: own("RolloutGate", gate.Namespace, gate.Name), Sign: Well, Text: summaries[at].Message}
		node.Object.UID = gate.UID
		if slices.Contains(holding, gate.Name) {
			node.Sign, node.Text = Failed, described(node.Text, promotion.Described(gate))
		}
		group.Children = append(group.Children, node)
	}
	for i := range in.Gates.Cluster {
		gate := &in.Gates.Cluster[i]
		at := slices.IndexFunc(summaries, func(s v1alpha1.RolloutGateStatusSummary) bool { return s.Name == "cluster/"+gate.Name })
		node := &Node{Object: own(v1alpha1.ClusterRolloutGateKind, "", gate.Name), Sign: Well, Text: summaries[at].Message}
		node.Object.UID = gate.UID
		if slices.Contains(holding, "cluster/"+gate.Name) {
			node.Sign = Failed
		}
		group.Children = append(group.Children, node)
	}
	return summed(group, "no gates")
}

// holdingGates returns the gates that hold the next release, or would hold any.
func holdingGates(in promotion.Input, d promotion.Decision) []string {
	tag, reasons := "", []string{v1alpha1.SomeGatesBlockingReason}
	if next := nextOf(d); next != nil {
		tag, reasons = next.Version, append(reasons, v1alpha1.NoAllowedVersionsReason)
	}
	var all []string
	for _, reason := range reasons {
		all = append(all, promotion.Blocking(in, reason, v1alpha1.VersionInfo{Tag: tag})...)
	}
	if held := heldRelease(d); held != nil && !d.Action.Promotes() {
		for _, hold := range held.Holds {
			if verdict.IsOfApprovals(hold.Reason) || hold.Reason == v1alpha1.DigestUnknownReason {
				all = append(all, promotion.Blocking(in, hold.Reason, held.Release)...)
			}
		}
	}
	return all
}

func schedulesOf(in promotion.Input) *Node {
	group := &Node{Name: "Schedules"}
	for _, window := range in.Gates.Schedules {
		kind, name, _ := strings.Cut(window.Schedule, " ")
		node := &Node{Object: own(kind, namespaceOf(kind, in.Rollout.Namespace), name), Sign: Waits, Text: window.Message, Until: timeOf(window.Until)}
		switch {
		case window.Problem != nil:
			node.Sign, node.Text = Failed, window.Problem.Message
		case window.Open:
			node.Sign = Well
		default:
			node.Text = described(node.Text, window.Description)
		}
		group.Children = append(group.Children, node)
	}
	return summed(group, "no schedules")
}

// described returns the state of what holds a release, and what its author says of it.
func described(state, description string) string {
	return strings.TrimSuffix(state+": "+description, ": ")
}

// namespaceOf returns the namespace of a schedule that selects a Rollout.
func namespaceOf(kind, rollouts string) string {
	if kind == "ClusterRolloutSchedule" {
		return ""
	}
	return rollouts
}

func healthOf(in promotion.Input) *Node {
	group := &Node{Name: "Health", Children: problem(in.Health.Problem)}
	for i := range in.Health.Checks {
		check := &in.Health.Checks[i]
		node := &Node{Object: own("HealthCheck", check.Namespace, check.Name), Sign: healthSign(check.Status.Status)}
		node.Object.UID = check.UID
		node.Message = ptr.Deref(check.Status.Message, "")
		if why := in.Health.Rejected[check.Namespace+"/"+check.Name]; why != "" {
			node.Sign, node.Message = Failed, why
		}
		if node.Sign != Well {
			node.Text = node.Message
		}
		if check.IsMeasured() {
			node.Measured = new(measured.One(in.Rollout, check))
		}
		group.Children = append(group.Children, node)
	}
	return summed(group, "no HealthChecks")
}

func healthSign(s v1alpha1.HealthStatus) Sign {
	switch s {
	case v1alpha1.HealthStatusHealthy:
		return Well
	case v1alpha1.HealthStatusUnhealthy:
		return Failed
	case v1alpha1.HealthStatusPending, "":
		return Waits
	}
	return Unknown
}

// problem returns a node that says what could not be read or evaluated.
func problem(p *verdict.Problem) []*Node {
	if p == nil {
		return nil
	}
	return []*Node{missing(p.Reason, p.Message)}
}

// own refers to an object of this API.
func own(kind, namespace, name string) *Object {
	return &Object{
		Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: kind, Namespace: namespace, Name: name,
	}
}

// order of signs, the one that matters most first.
var order = []Sign{Failed, Unknown, Suspended, Waits, Well}

// worst returns the sign among nodes that matters most; Well if there are none.
func worst(nodes []*Node) Sign {
	at := slices.Index(order, Well)
	for _, n := range nodes {
		at = min(at, slices.Index(order, n.Sign))
	}
	return order[at]
}

// summed gives a group the sign of its children, and a text if it has none.
func summed(group *Node, empty string) *Node {
	if group.Sign = worst(group.Children); len(group.Children) == 0 {
		group.Text = empty
		return group
	}
	if well := countOf(group.Children, Well); well < len(group.Children) {
		group.Text = fmt.Sprintf("%d of %d are well", well, len(group.Children))
	}
	return group
}

func countOf(nodes []*Node, s Sign) (n int) {
	for _, node := range nodes {
		if node.Sign == s {
			n++
		}
	}
	return n
}
