// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// Upstreams returns what is recorded of the upstreams: what each says, when that was first
// read, and why it cannot be read. While an upstream cannot be read, what it said before
// stays.
func Upstreams(before, read []environmentsv1.UpstreamStatus, now time.Time) []environmentsv1.UpstreamStatus {
	known := map[string]environmentsv1.UpstreamStatus{}
	for _, u := range before {
		known[u.Environment] = u
	}
	var all []environmentsv1.UpstreamStatus
	for _, u := range read {
		was := known[u.Environment]
		u.VerifiedTime = &metav1.Time{Time: wholeSecond(now)}
		if u.ObservedDigest == "" || u.ObservedDigest == was.ObservedDigest {
			u.ObservedDigest, u.VerifiedTime = was.ObservedDigest, was.VerifiedTime
		}
		all = append(all, u)
	}
	return all
}
