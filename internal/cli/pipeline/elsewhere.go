// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// reported returns what those that come after an environment in another cluster have read
// of it: the newest report that one of them has verified, if possible from one that can
// still read it.
func (n *node) reported() environmentsv1.UpstreamStatus {
	best := environmentsv1.UpstreamStatus{Message: "its report was not read yet"}
	for _, after := range n.neighbours {
		if after.object == nil || !after.names(n.key) {
			continue
		}
		for _, read := range after.object.Status.Upstreams {
			if read.Environment == n.environment && isBetter(read, best) {
				best = read
			}
		}
	}
	return best
}

// names reports whether an environment has an upstream.
func (n *node) names(upstream key) bool {
	for _, u := range n.object.GetUpstreams() {
		if upstreamKey(n.object, u) == upstream {
			return true
		}
	}
	return false
}

func isBetter(a, b environmentsv1.UpstreamStatus) bool {
	if a.Sequence != b.Sequence {
		return a.Sequence > b.Sequence
	}
	return b.Sequence == 0 || a.Message == "" && b.Message != ""
}

// isReported says what is known of an environment in another cluster.
func (e *Environment) isReported(read environmentsv1.UpstreamStatus) {
	e.Runs, e.Verified = recorded(read.Releases), read.VerifiedTime
	if read.Message != "" {
		e.Problems = append(e.Problems, read.Message)
	}
}

// rolloutOf returns a Rollout as far as a report tells of it: what it has promoted, the
// newest promotion first. It is nil if nothing runs.
func rolloutOf(read environmentsv1.UpstreamStatus) *v1alpha1.Rollout {
	if recorded(read.Releases) == nil {
		return nil
	}
	rollout := &v1alpha1.Rollout{}
	for i := range read.Releases {
		r := &read.Releases[i]
		entry := v1alpha1.DeploymentHistoryEntry{Version: v1alpha1.VersionInfo{Tag: r.Tag, Digest: &r.Digest, Revision: &r.Revision}}
		if r.Since != nil {
			entry.Timestamp = metav1.Time{Time: r.Since.Time}
		}
		rollout.Status.History = append(rollout.Status.History, entry)
	}
	return rollout
}
