// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// payloadType is what the envelope says of its content.
	payloadType = "application/vnd.in-toto+json"
	// statementType is what the Statement says of itself.
	statementType = "https://in-toto.io/Statement/v1"
	// predicates is the beginning of the type of all formats of a report.
	predicates = "https://github.com/fluxrollouts/rollout-controller/report/"
	// predicateType is the format that this version writes and reads. A field that is
	// added later does not change it, if those who do not know the field may ignore it.
	predicateType = predicates + "v1"
)

// statement is an in-toto Statement v1.
type statement struct {
	Type          string          `json:"_type"`
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// subject is an image that the report says something of.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Application string                        `json:"application"`
	Environment string                        `json:"environment"`
	Cluster     string                        `json:"cluster"`
	ClusterUID  string                        `json:"clusterUID"`
	Namespace   string                        `json:"namespace"`
	Rollout     string                        `json:"rollout"`
	Sequence    int64                         `json:"sequence"`
	CreatedTime metav1.Time                   `json:"createdTime"`
	Upstreams   []environmentsv1.Relationship `json:"upstreams,omitempty"`
	Releases    []release                     `json:"releases"`
}

type release struct {
	Digest      string                  `json:"digest,omitempty"`
	Tag         string                  `json:"tag"`
	Revision    string                  `json:"revision,omitempty"`
	ID          int64                   `json:"id,omitempty"`
	State       v1alpha1.BakeStatus     `json:"state"`
	Evidence    environmentsv1.Evidence `json:"evidence,omitempty"`
	Current     bool                    `json:"current,omitempty"`
	Unhealthy   string                  `json:"unhealthy,omitempty"`
	HealthyFor  *metav1.Duration        `json:"healthyFor,omitempty"`
	LongestSoak *metav1.Duration        `json:"longestSoak,omitempty"`
	RenewAfter  *metav1.Duration        `json:"renewAfter,omitempty"`
	Since       *metav1.Time            `json:"since,omitempty"`
	Until       *metav1.Time            `json:"until,omitempty"`
	Withdrawn   string                  `json:"withdrawn,omitempty"`
	Message     string                  `json:"message,omitempty"`
}

func toStatement(r Report) statement {
	s := statement{Type: statementType, Subject: []subject{}, PredicateType: predicateType}
	for i := range r.Releases {
		if algorithm, hash, known := strings.Cut(r.Releases[i].Digest, ":"); known {
			s.Subject = append(s.Subject, subject{Name: r.Releases[i].Tag, Digest: map[string]string{algorithm: hash}})
		}
	}
	text, err := json.Marshal(toWire(r))
	if err != nil {
		panic(err) // texts, numbers and times can always be encoded
	}
	s.Predicate = text
	return s
}

func toWire(r Report) predicate {
	p := predicate{
		Application: r.Application, Environment: r.Environment, Cluster: r.Cluster, ClusterUID: r.ClusterUID,
		Namespace: r.Namespace, Rollout: r.Rollout, Sequence: r.Sequence, CreatedTime: r.Created,
		Upstreams: r.Upstreams, Releases: make([]release, 0, len(r.Releases)),
	}
	for _, e := range fitted(r.Releases) {
		p.Releases = append(p.Releases, release{
			Digest: e.Digest, Tag: e.Tag, Revision: e.Revision, ID: e.ID, State: e.State, Evidence: e.Evidence,
			Current: e.Current, Unhealthy: e.Unhealthy, HealthyFor: e.Soaked, LongestSoak: e.LongestSoak,
			RenewAfter: e.RenewAfter, Since: e.Since, Until: e.Until, Withdrawn: e.Withdrawn, Message: e.Message,
		})
	}
	return p
}

func fromWire(p predicate) Report {
	r := Report{
		Source: Source{
			Application: p.Application, Environment: p.Environment, Cluster: p.Cluster, Namespace: p.Namespace, Rollout: p.Rollout,
		},
		ClusterUID: p.ClusterUID, Sequence: p.Sequence, Created: p.CreatedTime, Upstreams: p.Upstreams,
	}
	for _, e := range p.Releases {
		r.Releases = append(r.Releases, environmentsv1.Release{
			Digest: e.Digest, Tag: e.Tag, Revision: e.Revision, ID: e.ID, State: e.State, Evidence: e.Evidence,
			Current: e.Current, Unhealthy: e.Unhealthy, Soaked: e.HealthyFor, LongestSoak: e.LongestSoak,
			RenewAfter: e.RenewAfter, Since: e.Since, Until: e.Until, Withdrawn: e.Withdrawn, Message: e.Message,
		})
	}
	return r
}
