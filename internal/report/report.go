// SPDX-License-Identifier: Apache-2.0

// Package report writes and reads signed reports: what an environment says of its
// releases to environments in other clusters.
//
// A report is an in-toto Statement in a DSSE envelope. The cluster of the environment
// signs it, and others trust the public key of that cluster. Whoever can only write to
// the place of a report can hide it, but cannot change what it says.
//
//   - [Report]: what is said, and how it looks on the wire (wire.go)
//   - [Sign], [Verify]: the envelope and what is refused (sign.go, verify.go, refusal.go)
//   - [Peek]: whose report it claims to be (peek.go)
//   - [SigningKey], [TrustedKeys]: the keys, as users store them in Secrets (keys.go)
//   - [Generate]: new keys (generate.go)
//   - [Tag], [Sequence]: where a report is stored, and which one is newer (order.go)
//
// All functions are pure. The times in a report are only shown. No time of one cluster is
// compared with the clock of another one, but for a number that is a year ahead.
package report

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// Source identifies the environment that a report is about.
type Source struct {
	// Application is the spec.name of its Environment.
	Application string
	// Environment is the spec.environment of its Environment.
	Environment string
	// Cluster is the name of its cluster.
	Cluster string
	// Namespace is the namespace of its Rollout.
	Namespace string
	// Rollout is the name of its Rollout.
	Rollout string
}

// Report is what an environment says of its releases.
type Report struct {
	Source
	// ClusterUID tells two clusters of the same name apart.
	ClusterUID string
	// Sequence is higher in a newer report. See Sequence.
	Sequence int64
	// Created is when the report was made, by the clock of its cluster.
	Created metav1.Time
	// SignedBy are the fingerprints of the trusted keys that have signed the report, once it
	// was verified.
	SignedBy []string
	// Upstreams are the environments that this one comes after.
	Upstreams []environmentsv1.Relationship
	// Releases are the most recently promoted ones, the current one first. Since when the
	// current one has been healthy is not part of a report, only for how long.
	Releases []environmentsv1.Release
}

// Digest returns a hash of what the report says. Two reports with the same hash say the
// same, so that the newer one is not worth a write: its number, when it was made and the
// progress of the current soak do not count. An interruption of that soak does, and so does
// a confirmation, although they may look the same: since when the release has been healthy,
// and when that was confirmed, is hashed, too.
func (r Report) Digest() string {
	r.Sequence, r.Created = 0, metav1.Time{}
	r.Releases = slices.Clone(r.Releases)
	var since []*metav1.Time
	for i := range r.Releases {
		if r.Releases[i].Current {
			r.Releases[i].Soaked = nil
			since = append(since, r.Releases[i].HealthySince, r.Releases[i].RenewedTime)
		}
	}
	return environment.Digest([]any{toWire(r), since})
}

// payload returns the report as a Statement. If it is too large, the releases that were
// promoted first are left out: an environment that is after this one holds them as if
// they were unknown here.
func (r Report) payload() ([]byte, error) {
	for {
		text, err := json.Marshal(toStatement(r))
		if err != nil || len(text) <= mostOfPayload || len(r.Releases) == 0 {
			return text, err
		}
		r.Releases = r.Releases[:len(r.Releases)-1]
	}
}
