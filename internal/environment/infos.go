// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Size limits of the histories in status.environmentInfos.
const (
	// mostShown is how many entries are shown of this environment and of its upstreams.
	mostShown = 10
	// ownLimit and otherLimit are the sizes of a history, in bytes of JSON.
	ownLimit   = 16 << 10
	otherLimit = 16 << 10
)

// DigestInfos replaces status.environmentInfos of an object in a cache with a digest,
// because the list would take most of the memory of the object. [InfosDigest] returns it.
// It is in metadata.selfLink, which API servers no longer fill since Kubernetes 1.20: an
// annotation would need a map of its own, which takes several times the memory of the digest.
func DigestInfos(e *environmentsv1.Environment) {
	if infos := e.Status.EnvironmentInfos; len(infos) > 0 { // otherwise it is replaced already
		e.SetSelfLink(short(encoded(infos)))
	}
	e.Status.EnvironmentInfos = nil
}

// InfosDigest returns the digest of what an object in a cache had in
// status.environmentInfos. It is empty if there was nothing.
func InfosDigest(e *environmentsv1.Environment) string { return e.GetSelfLink() }

// Neighbors are the environments that an environment comes after.
type Neighbors struct {
	// Upstreams are those that it names.
	Upstreams []*environmentsv1.Environment
	// Further are those that the upstreams come after, the nearest first.
	Further []*environmentsv1.Environment
}

// Infos returns what status.environmentInfos shows to dashboards, and its digest: the
// environments in the order in which a release comes to them, with the history of each. Of
// other environments it shows what they say of their releases, because their Rollouts may
// be reconciled by another instance of the controller. The list shares values with what it
// is made from.
func Infos(e *environmentsv1.Environment, rollout *v1alpha1.Rollout, near Neighbors) (infos []environmentsv1.EnvironmentInfo, digest string) {
	var limits []int // of the histories
	for _, other := range slices.Backward(near.Further) {
		infos, limits = append(infos, info(other, 1)), append(limits, otherLimit)
	}
	for _, other := range near.Upstreams {
		infos, limits = append(infos, info(other, mostShown)), append(limits, otherLimit/len(near.Upstreams))
	}
	own := info(e, 0)
	own.History = rollout.Status.History[:min(len(rollout.Status.History), mostShown)]
	infos, limits = append(infos, own), append(limits, ownLimit)
	text := encoded(infos)
	if len(text) > slices.Min(limits) { // otherwise no history is over its limit
		shorten(infos, limits)
		text = encoded(infos)
	}
	return infos, short(text)
}

func shorten(infos []environmentsv1.EnvironmentInfo, limits []int) {
	for i := range infos {
		infos[i].History, _ = truncate.Items(infos[i].History, limits[i], func(v1alpha1.DeploymentHistoryEntry) bool { return true })
	}
}

func info(e *environmentsv1.Environment, most int) environmentsv1.EnvironmentInfo {
	i := environmentsv1.EnvironmentInfo{Environment: e.Spec.Environment, EnvironmentURL: e.Spec.URL}
	if upstreams := e.GetUpstreams(); len(upstreams) > 0 {
		i.Relationship = &environmentsv1.Relationship{Environment: upstreams[0].Environment, Type: upstreams[0].Type}
	}
	recorded := e.Status.Releases
	for j := range recorded[:min(len(recorded), most)] {
		if recorded[j].Since != nil { // an entry must have a time; a report may leave it out
			i.History = append(i.History, shown(&recorded[j]))
		}
	}
	return i
}

// shown returns a release as an entry of a history. Its time is when it came to its state.
func shown(r *environmentsv1.Release) v1alpha1.DeploymentHistoryEntry {
	id, state := r.ID, r.State
	entry := v1alpha1.DeploymentHistoryEntry{
		ID: &id, BakeStatus: &state, BakeStatusMessage: notEmpty(r.Message),
		Version:   v1alpha1.VersionInfo{Tag: r.Tag, Digest: notEmpty(r.Digest), Revision: notEmpty(r.Revision)},
		Timestamp: *r.Since,
	}
	switch r.State {
	case v1alpha1.BakeInProgress:
		entry.BakeStartTime = r.Since
	case v1alpha1.BakeSucceeded, v1alpha1.BakeFailed:
		entry.BakeEndTime = r.Since
	case v1alpha1.BakeDeploying, v1alpha1.BakeCancelled:
	}
	return entry
}

func notEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Current returns what an environment says of the release that it runs; nil if it runs
// none.
func Current(releases []environmentsv1.Release) *environmentsv1.Release {
	if len(releases) == 0 || !releases[0].Current {
		return nil
	}
	return &releases[0]
}
