// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// parsedEnvironment is an Environment whose spec is known and has the right fields.
type parsedEnvironment struct {
	*object
	*environmentsv1.Environment
}

// parsedEnvironments returns all of them.
func (s *set) parsedEnvironments() []parsedEnvironment {
	if s.environments == nil {
		s.environments = []parsedEnvironment{}
		for _, o := range s.byKind[environmentKind] {
			e := parsedEnvironment{o, &environmentsv1.Environment{}}
			if !o.isUnknown("spec") && len(o.problems) == 0 && o.decode(o.fields("spec"), &e.Spec) == nil {
				e.Environment.Namespace, e.Environment.Name = o.namespace(), o.name()
				s.environments = append(s.environments, e)
			}
		}
	}
	return s.environments
}

// eachUpstream visits the upstreams that this controller reads, each with its field.
func (r *report) eachUpstream(visit func(e parsedEnvironment, u environmentsv1.Upstream, where at)) {
	for _, e := range r.parsedEnvironments() {
		if e.Spec.Backend.Type == environmentsv1.BackendGitHub {
			continue
		}
		for i, u := range e.GetUpstreams() {
			where := at{e.object, []string{"spec", "upstreams", strconv.Itoa(i)}}
			if e.Spec.Relationship != nil {
				where.path = []string{"spec", "relationship"}
			}
			visit(e, u, where)
		}
	}
}

// eachUpstreamHere leaves out those in other clusters: nobody knows what exists there.
func (r *report) eachUpstreamHere(visit func(e parsedEnvironment, u environmentsv1.Upstream, where at)) {
	r.eachUpstream(func(e parsedEnvironment, u environmentsv1.Upstream, where at) {
		if !u.IsRemote() {
			visit(e, u, where)
		}
	})
}

// upstreams returns the Environments that an upstream may be, and whether one certainly is.
func (s *set) upstreams(e parsedEnvironment, u environmentsv1.Upstream) ([]parsedEnvironment, certainty) {
	var all []parsedEnvironment
	answer := no
	if u.IsRemote() {
		return nil, no
	}
	for _, other := range s.parsedEnvironments() {
		near := sameNamespace(u.Namespace, other.Environment.Namespace)
		if near != no && other.Spec.Name == e.Spec.Name && other.Spec.Environment == u.Environment && other.Spec.RolloutRef.Name == u.Rollout {
			all, answer = append(all, other), max(answer, near)
		}
	}
	return all, answer
}

func checkEnvironmentRollout(r *report) {
	r.checkField(environmentKind, "rolloutRef", rolloutKind, "the Environment is of %s, which does not exist%s")
}

// checkEnvironmentRef finds Rollouts that promote nothing by themselves: the Environment
// that they name does not exist, or is that of another Rollout.
func checkEnvironmentRef(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		where := at{o, []string{"spec", "environmentRef", "name"}}
		name := o.text(where.path...)
		if name != "" && r.checkExists(where, environmentKind, name, "%s does not exist%s, and without it nothing is promoted automatically") {
			r.checkEnvironmentOf(where, name)
		}
	}
}

func (r *report) checkEnvironmentOf(where at, name string) {
	for _, e := range r.byName[environmentKind][name] {
		rollout := e.text("spec", "rolloutRef", "name")
		if rollout != "" && !hasVariable(rollout) && rollout != where.object.name() && sameNamespace(e.namespace(), where.object.namespace()) == yes {
			r.find(where, fmt.Sprintf("%s is of Rollout %s, and not of this one: nothing is promoted automatically", e, rollout),
				"name the Environment of this Rollout")
		}
	}
}

func checkUpstreams(r *report) {
	r.eachUpstreamHere(func(e parsedEnvironment, u environmentsv1.Upstream, where at) {
		_, answer := r.upstreams(e, u)
		switch {
		case answer == yes:
		case answer == maybe || len(r.parsedEnvironments()) < len(r.byKind[environmentKind]):
			r.skip(where, fmt.Sprintf("the upstream %s: %s", u.Environment, unknownNamespace))
		case r.hasExternal(environmentKind, u.Namespace) || r.live && !r.knows(u.Namespace):
			r.skip(where, fmt.Sprintf("the upstream %s may be elsewhere", u.Environment))
		default:
			remedy := "create it, or correct environment, namespace and rollout of the upstream"
			if !r.live {
				remedy += "; if it is elsewhere, add --external Environment/" + keyOf(u.Namespace, "NAME")
			}
			r.find(where, fmt.Sprintf("there is no Environment %s of application %s for Rollout %s: until there is one, nothing is promoted automatically",
				u.Environment, e.Spec.Name, keyOf(u.Namespace, u.Rollout)), remedy)
		}
	})
}

// knows reports whether objects of a namespace were read.
func (s *set) knows(namespace string) bool {
	for _, byNamespace := range s.byNamespace {
		if len(byNamespace[namespace]) > 0 {
			return true
		}
	}
	return false
}

func checkAccess(r *report) {
	r.eachUpstreamHere(func(e parsedEnvironment, u environmentsv1.Upstream, where at) {
		own := e.Environment.Namespace
		if sameNamespace(own, u.Namespace) != no {
			return
		}
		for _, upstream := range first(r.upstreams(e, u)) {
			switch r.admits(upstream, own) {
			case no:
				r.find(where, fmt.Sprintf("%s does not let in namespace %s: nothing is promoted automatically", upstream.object, own),
					"add a selector for the namespace to spec.accessFrom.namespaceSelectors of "+upstream.object.String())
			case maybe:
				r.skip(where, fmt.Sprintf("the labels of namespace %s are not known", own))
			case yes:
			}
		}
	})
}

func first(all []parsedEnvironment, _ certainty) []parsedEnvironment { return all[:min(len(all), 1)] }

// admits reports whether Environments of a namespace may come after an Environment.
func (s *set) admits(e parsedEnvironment, namespace string) certainty {
	answer := no
	if e.Spec.AccessFrom == nil {
		return no
	}
	for _, selector := range e.Spec.AccessFrom.NamespaceSelectors {
		if name, only := selector.MatchLabels[nameLabel]; only && len(selector.MatchLabels) == 1 {
			answer = max(answer, sameNamespace(name, namespace))
			continue
		}
		answer = max(answer, s.selectsNamespace(labels.SelectorFromSet(selector.MatchLabels), namespace))
	}
	return answer
}

func checkEnvironmentCycle(r *report) {
	byEnvironment := map[*environmentsv1.Environment]parsedEnvironment{}
	for _, e := range r.parsedEnvironments() {
		byEnvironment[e.Environment] = e
	}
	after := func(e *environmentsv1.Environment) (all []*environmentsv1.Environment) {
		for _, u := range e.GetUpstreams() {
			found, answer := r.upstreams(byEnvironment[e], u)
			for _, upstream := range found {
				if u.Type != environmentsv1.Parallel && answer == yes {
					all = append(all, upstream.Environment)
				}
			}
		}
		return all
	}
	for _, e := range r.parsedEnvironments() {
		if cycle := environment.Cycle(e.Environment, after); cycle != nil {
			r.find(at{e.object, []string{"spec"}}, fmt.Sprintf("the environment comes after itself (%s): no release can ever pass", strings.Join(cycle, " after ")),
				"remove one of these upstreams, or give it type: Parallel")
		}
	}
}

func checkSameEnvironment(r *report) {
	type named struct{ namespace, rollout, application, environment string }
	known := map[named]*object{}
	for _, e := range r.parsedEnvironments() {
		key := named{e.Environment.Namespace, e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment}
		other := known[key]
		if other == nil {
			known[key] = e.object
			continue
		}
		if key.namespace != "" && other.name() != e.object.name() {
			r.find(at{e.object, []string{"spec", "environment"}}, fmt.Sprintf("%s is the environment %s of Rollout %s as well", other, key.environment, key.rollout),
				"remove one of them, or give it another spec.environment")
		}
	}
}

func checkSoakTime(r *report) {
	r.eachUpstream(func(_ parsedEnvironment, u environmentsv1.Upstream, where at) {
		if u.Type == environmentsv1.Parallel && u.SoakTime != nil && u.SoakTime.Duration > 0 {
			r.find(at{where.object, child(where.path, "soakTime")}, fmt.Sprintf("soakTime has no effect: the upstream %s has type Parallel, which waits for nothing", u.Environment),
				"remove soakTime, or set type: After")
		}
	})
}

// checkDigests finds ImagePolicies that do not say which digest a tag has, although
// Environments recognize releases by it.
func checkDigests(r *report) {
	found := map[*object]bool{}
	r.eachUpstream(func(e parsedEnvironment, u environmentsv1.Upstream, _ at) {
		if e.Spec.MatchBy == environmentsv1.MatchByRevision || u.Type == environmentsv1.Parallel {
			return
		}
		r.checkDigestsOf(e, e.Environment.Namespace, e.Spec.RolloutRef.Name, found)
		if !u.IsRemote() {
			r.checkDigestsOf(e, u.Namespace, u.Rollout, found)
		}
	})
}

func (r *report) checkDigestsOf(e parsedEnvironment, namespace, rollout string, found map[*object]bool) {
	for _, o := range r.byName[rolloutKind][rollout] {
		if sameNamespace(o.namespace(), namespace) != yes {
			continue
		}
		for _, policy := range r.byName[imagePolicyKind][o.text("spec", "releasesImagePolicy", "name")] {
			reflects := policy.text("spec", "digestReflectionPolicy")
			if found[policy] || sameNamespace(policy.namespace(), namespace) != yes || reflects != "" && reflects != "Never" {
				continue
			}
			found[policy] = true
			r.find(at{policy, []string{"spec"}}, fmt.Sprintf("%s recognizes releases by their digest, and the ImagePolicy does not say it", e.object),
				"set spec.digestReflectionPolicy: Always, or spec.matchBy: Revision of the Environment")
		}
	}
}
