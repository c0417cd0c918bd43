// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

func (f facts) pipeline(nodes []*node) Pipeline {
	p := Pipeline{Application: nodes[0].application}
	for _, n := range nodes {
		p.Environments = append(p.Environments, f.environment(n))
	}
	return p
}

func (f facts) environment(n *node) Environment {
	e := Environment{Environment: n.environment, Namespace: n.namespace, Rollout: n.rollout, Cluster: n.cluster, Object: n.name()}
	if n.cluster != "" {
		e.isReported(n.reported())
		return e
	}
	if n.object == nil {
		e.Problems = []string{f.missing(n)}
		return e
	}
	for _, u := range n.object.GetUpstreams() {
		e.Upstreams = append(e.Upstreams, Upstream{u.Environment, u.Namespace, u.Rollout, upstreamKey(n.object, u).cluster, u.Type})
	}
	rollout := f.rollout(n)
	if rollout == nil {
		e.Runs = recorded(n.object.Status.Releases)
		e.Problems = append(e.Problems, f.missingRollout(n))
	} else {
		e.describe(n, rollout)
		e.Behind = f.behindFirst(n, rollout)
	}
	e.Problems = append(e.Problems, problems(n)...)
	return e
}

// missing says why an environment that others name is not known.
func (f facts) missing(n *node) string {
	if why := f.unreadable[n.namespace]; why != "" {
		return why
	}
	if n.isOfGitHub() {
		return "it is known to the controller of type github only"
	}
	return "there is no such Environment in namespace " + n.namespace + ": create it, or correct the upstreams of those that come after it"
}

// isOfGitHub reports whether another controller reads an environment for all that name it.
func (n *node) isOfGitHub() bool {
	return !slices.ContainsFunc(n.neighbours, func(other *node) bool {
		return other.object == nil || other.object.Spec.Backend.Type != environmentsv1.BackendGitHub
	})
}

func (f facts) missingRollout(n *node) string {
	if why := f.unreadable[n.namespace]; why != "" {
		return why
	}
	return fmt.Sprintf("Rollout %s/%s does not exist", n.namespace, n.rollout)
}

// rollout returns the Rollout of an environment, or what is known of one in another
// cluster; nil if there is none.
func (f facts) rollout(n *node) *v1alpha1.Rollout {
	if n.cluster != "" {
		return rolloutOf(n.reported())
	}
	return f.rollouts[[2]string{n.namespace, n.rollout}]
}

// describe says what the Rollout of an environment runs, and what it waits for.
func (e *Environment) describe(n *node, rollout *v1alpha1.Rollout) {
	e.Suspended, e.State = rollout.Spec.Suspend, new(explain.StateOf(rollout))
	e.Runs = running(rollout, n.object)
	if candidates := rollout.Status.ReleaseCandidates; len(candidates) > 0 {
		e.Next, e.Holds = candidates[0].Tag, candidates[0].Holds
	}
	if len(e.Upstreams) > 0 {
		e.Proven = proven(rollout)
	}
}

func running(rollout *v1alpha1.Rollout, e *environmentsv1.Environment) *Running {
	current := rollout.Current()
	if current == nil {
		return nil
	}
	r := &Running{Version: current.Version.Tag, State: current.State(), Since: current.Timestamp}
	if digest := current.Version.Digest; digest != nil {
		r.Digest = *digest
	}
	if revision := current.Version.Revision; revision != nil {
		r.Revision = *revision
	}
	for _, recorded := range e.Status.Releases {
		if recorded.Current && recorded.Tag == r.Version {
			r.Unhealthy = recorded.Unhealthy
		}
	}
	return r
}

// recorded returns what an environment says that it runs, for where its Rollout is not
// known.
func recorded(releases []environmentsv1.Release) *Running {
	for _, r := range releases {
		if !r.Current {
			continue
		}
		current := &Running{Version: r.Tag, Digest: r.Digest, Revision: r.Revision, State: r.State, Unhealthy: r.Unhealthy}
		if r.Since != nil {
			current.Since = *r.Since
		}
		return current
	}
	return nil
}

// summaryPrefix begins the names of those gates in the status of a Rollout that show its
// Environments.
const summaryPrefix = "environment/"

// proven returns the newest candidate against which the upstreams have nothing. A
// controller that does not know Environments says nothing about that.
func proven(rollout *v1alpha1.Rollout) string {
	judged := slices.ContainsFunc(rollout.Status.Gates, func(gate v1alpha1.RolloutGateStatusSummary) bool {
		return strings.HasPrefix(gate.Name, summaryPrefix)
	})
	candidates := rollout.Status.ReleaseCandidates
	for _, candidate := range candidates[:min(len(candidates), releases.MostExplained)] {
		if judged && !slices.ContainsFunc(candidate.Holds, func(h v1alpha1.CandidateHold) bool { return verdict.IsOfUpstreams(h.Reason) }) {
			return candidate.Tag
		}
	}
	return ""
}

// behindFirst returns how many releases an environment is behind the first one; of several
// first ones, the one that is farthest ahead.
func (f facts) behindFirst(n *node, rollout *v1alpha1.Rollout) *int {
	same := identify(byDigest)
	if n.object.Spec.MatchBy == environmentsv1.MatchByRevision {
		same = byRevision
	}
	var most *int
	for _, root := range n.roots() {
		first := f.rollout(root)
		if first == nil || root.object == nil && root.cluster == "" { // of another application, perhaps
			continue
		}
		if b := behind(first, rollout, same); most == nil || b != nil && *b > *most {
			most = b
		}
	}
	return most
}

// problems returns what is wrong with an Environment.
func problems(n *node) []string {
	var all []string
	if n.isInCycle() {
		all = append(all, "it comes after itself, so that no release can reach it: remove one of the upstreams")
	}
	for _, ready := range n.object.Status.Conditions {
		switch {
		case ready.Type != v1alpha1.ReadyCondition || ready.Status != metav1.ConditionFalse:
		case ready.Reason == environmentsv1.UpstreamCycleReason:
			return []string{ready.Message} // the controller says it better
		default:
			all = append(all, ready.Message)
		}
	}
	return all
}

// Waits says in one sentence why nothing newer runs in the environment. It is empty if
// nothing holds the next release.
func (e Environment) Waits() string {
	switch {
	case e.State != nil && e.State.Kind != explain.StateGoes && e.State.Kind != explain.StateUpToDate:
		return e.State.Cause
	case len(e.Problems) > 0:
		return e.Problems[0]
	case e.Next != "":
		return ""
	case e.Behind != nil && *e.Behind > 0:
		return "its ImagePolicy offers nothing newer"
	case e.Runs == nil:
		return "its ImagePolicy offers no release"
	}
	return "up to date"
}
