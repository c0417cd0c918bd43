// SPDX-License-Identifier: Apache-2.0

// Package pipeline puts the environments of an application side by side: what runs where,
// how far it is behind, and what the next release waits for. All of that is from the status
// of the Rollouts and Environments: the controller has decided it.
//
// It is pure: it reads nothing.
//
//	pipeline.go  what goes in and what comes out
//	graph.go     which Environments belong together, and in which order
//	row.go       what is said of one environment
//	elsewhere.go what is said of one in another cluster
//	behind.go    how many releases one environment is behind another one
package pipeline

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
)

// Facts are what was read.
type Facts struct {
	Environments []environmentsv1.Environment
	Rollouts     []v1alpha1.Rollout
	// Unreadable says why objects of a namespace could not be read, by its name.
	Unreadable map[string]string
}

// facts are what was read, with the Rollouts by namespace and name.
type facts struct {
	rollouts   map[[2]string]*v1alpha1.Rollout
	unreadable map[string]string
}

// Pipeline has the environments of one application.
type Pipeline struct {
	Application string `json:"application"`
	// Environments are in the order in which a release passes them.
	Environments []Environment `json:"environments"`
}

// Environment is what is known of one environment.
type Environment struct {
	// Environment is its name, such as staging.
	Environment string `json:"environment"`
	// Namespace and Rollout are those of its Rollout.
	Namespace string `json:"namespace"`
	Rollout   string `json:"rollout"`
	// Cluster is the name of its cluster; absent if it is in this API server.
	Cluster string `json:"cluster,omitempty"`
	// Verified is since when this is what the report of an environment in another cluster
	// says; absent if none was verified.
	Verified *metav1.Time `json:"verified,omitempty"`
	// Object is the name of the Environment; absent if there is none, or if it could not be
	// read.
	Object string `json:"object,omitempty"`
	// Upstreams are the environments that a release must have passed before.
	Upstreams []Upstream `json:"upstreams,omitempty"`
	// Runs is the current release; absent if there is none, or if it is not known.
	Runs *Running `json:"runs,omitempty"`
	// Suspended is true if the controller does nothing for the Rollout.
	Suspended bool `json:"suspended,omitempty"`
	// State is how its Rollout is doing; absent if that is not known.
	State *explain.State `json:"state,omitempty"`
	// Behind is how many releases it is behind the first environment: less than 0 if it is
	// ahead. It is absent if that is not known.
	Behind *int `json:"behind,omitempty"`
	// Proven is the newest candidate that its upstreams have proven; absent if there is none.
	Proven string `json:"proven,omitempty"`
	// Next is the newest candidate; absent if there is none.
	Next string `json:"next,omitempty"`
	// Holds are why Next is not promoted yet.
	Holds []v1alpha1.CandidateHold `json:"holds,omitempty"`
	// Problems are what is wrong with the environment, or could not be read.
	Problems []string `json:"problems,omitempty"`
}

// Upstream is an environment before another one.
type Upstream struct {
	Environment string `json:"environment"`
	Namespace   string `json:"namespace"`
	Rollout     string `json:"rollout"`
	// Cluster is the name of its cluster; absent if it is in this API server.
	Cluster string `json:"cluster,omitempty"`
	// Type is After or Parallel.
	Type environmentsv1.RelationshipType `json:"type"`
}

// Running is the current release of an environment.
type Running struct {
	Version  string `json:"version"`
	Digest   string `json:"digest,omitempty"`
	Revision string `json:"revision,omitempty"`
	// State of its promotion.
	State v1alpha1.BakeStatus `json:"state"`
	// Since is when it was promoted; where the Rollout could not be read, since when it is in
	// that state.
	Since metav1.Time `json:"since"`
	// Unhealthy names the HealthChecks that are Unhealthy; absent if none is.
	Unhealthy string `json:"unhealthy,omitempty"`
}

// Of returns the pipelines of all applications, sorted by name. Environments of one
// application that have nothing to do with each other are in different ones.
func Of(read Facts) []Pipeline {
	f := facts{unreadable: read.Unreadable, rollouts: map[[2]string]*v1alpha1.Rollout{}}
	for i := range read.Rollouts {
		r := &read.Rollouts[i]
		f.rollouts[[2]string{r.Namespace, r.Name}] = r
	}
	var all []Pipeline
	for _, nodes := range graphOf(read.Environments).parts() {
		all = append(all, f.pipeline(nodes))
	}
	slices.SortStableFunc(all, func(a, b Pipeline) int {
		return cmp.Or(cmp.Compare(a.Application, b.Application), compare(a.Environments[0], b.Environments[0]))
	})
	return all
}

func compare(a, b Environment) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Environment, b.Environment))
}

// In reports whether one of the Environments is in a namespace.
func (p Pipeline) In(namespace string) bool {
	return slices.ContainsFunc(p.Environments, func(e Environment) bool { return e.Object != "" && e.Namespace == namespace })
}
