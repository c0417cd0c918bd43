// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/fluxrollouts/rollout-controller/internal/truncate"

// Claim is where a report says that it comes from.
type Claim struct {
	Source
	// ClusterUID is the one that the report has. It may be empty.
	ClusterUID string
}

// Peek returns where the report in an envelope says that it comes from. It is not
// verified, and only prevents that the report of another cluster is overwritten. Its error
// is a Refusal.
func Peek(envelope []byte) (Claim, error) {
	signed, err := unpack(envelope)
	if err != nil {
		return Claim{}, err
	}
	payload, err := signed.DecodeB64Payload()
	if err != nil {
		return Claim{}, refuse(Unreadable, "its content cannot be decoded")
	}
	r, err := decode(payload)
	if err != nil {
		return Claim{}, err
	}
	for _, text := range []*string{&r.Application, &r.Environment, &r.Cluster, &r.ClusterUID, &r.Namespace, &r.Rollout} {
		*text = truncate.Text(*text, truncate.LongestName)
	}
	return Claim{Source: r.Source, ClusterUID: r.ClusterUID}, nil
}
