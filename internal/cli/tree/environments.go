// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"strings"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// environmentsOf shows each Environment of the Rollout, with what it has against the next
// release; nil if there is none.
func environmentsOf(in promotion.Input, d promotion.Decision) *Node {
	group := &Node{Name: "Environments"}
	if why := in.Upstreams.Problem; why != "" {
		group.Children = append(group.Children, missing(environmentsv1.UpstreamUnknownReason, why))
	}
	for _, e := range in.Upstreams.Environments {
		group.Children = append(group.Children, environmentOf(in, d, e))
	}
	if len(group.Children) == 0 {
		return nil
	}
	return summed(group, "")
}

func environmentOf(in promotion.Input, d promotion.Decision, e upstream.Environment) *Node {
	n := &Node{
		Object: &Object{
			Group: environmentsv1.GroupVersion.Group, Version: environmentsv1.GroupVersion.Version, Kind: environmentsv1.EnvironmentKind,
			Namespace: e.Namespace, Name: e.Name, UID: e.UID,
		},
		Sign: Well, Text: comesAfter(e), Conditions: e.Status.Conditions,
	}
	if e.Problem != nil {
		n.Sign, n.Text = Failed, e.Problem.Message
	} else if hold := holdOf(in, d, e); hold != nil {
		n.Sign, n.Text = holdSign(*hold), hold.Message
	}
	n.Message = n.Text
	return n
}

// holdOf returns the hold on the next release to which an Environment adds; nil if it adds
// to none.
func holdOf(in promotion.Input, d promotion.Decision, e upstream.Environment) *verdict.Hold {
	next := nextOf(d)
	at := slices.IndexFunc(d.Candidates, func(v promotion.Verdict) bool { return next != nil && v.Release.Tag == next.Version })
	if at < 0 {
		return nil
	}
	for _, hold := range d.Candidates[at].Holds {
		ofEnvironments := verdict.IsOfUpstreams(hold.Reason) || hold.Reason == environmentsv1.AwaitingPromotionReason
		if ofEnvironments && slices.Contains(promotion.Blocking(in, hold.Reason, d.Candidates[at].Release), environmentsv1.EnvironmentKind+" "+e.Name) {
			return &hold
		}
	}
	return nil
}

// holdSign tells holds that are expected to end without a user from the others.
func holdSign(hold verdict.Hold) Sign {
	switch hold.Reason {
	case environmentsv1.UpstreamPendingReason, environmentsv1.UpstreamSoakingReason:
		return Waits
	}
	return Failed
}

// comesAfter says in a few words which environments come before.
func comesAfter(e upstream.Environment) string {
	var names []string
	for _, u := range e.Upstreams {
		name := u.Environment
		if u.IsRemote() {
			name += " of cluster " + u.Cluster
		}
		names = append(names, name)
	}
	switch {
	case e.Spec.Backend.Type == environmentsv1.BackendGitHub:
		return "another controller decides, with a RolloutGate"
	case len(names) == 0:
		return "comes after no other environment"
	}
	return "takes what is proven in " + strings.Join(names, ", ")
}
