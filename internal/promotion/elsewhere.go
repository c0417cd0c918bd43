// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// IsAbout reports whether a quarantine is about a release of the Rollout.
func IsAbout(in Input, spec *v1alpha1.ReleaseQuarantineSpec, release v1alpha1.VersionInfo) bool {
	return quarantine.Matches(spec, quarantine.Release{Image: in.Policy.Image, Tag: release.Tag, Digest: releases.OrEmpty(release.Digest)})
}

// QuarantinesOn returns the quarantines that hold a release, whether or not the Rollout
// obeys them.
func QuarantinesOn(in Input, release v1alpha1.VersionInfo) []quarantined.Quarantine {
	var all []quarantined.Quarantine
	for i := range in.Quarantines.All {
		if q := &in.Quarantines.All[i]; q.Holds(in.Now) && IsAbout(in, &q.Spec, release) {
			all = append(all, *q)
		}
	}
	return all
}

// notQuarantined checks that no quarantine that the Rollout obeys holds the release. While
// quarantines cannot be read, nobody knows. Those that also hold for users are notRecalled,
// and a Rollout that does not obey quarantines obeys these.
func notQuarantined(rollout *v1alpha1.Rollout, quarantines quarantined.Quarantines, holding quarantined.Holding) check {
	switch {
	case !rollout.Spec.Quarantine.Obeys():
		return forAll(nil)
	case quarantines.Problem != nil:
		return forAll(quarantines.Problem.Hold())
	}
	return holding.Held
}

// upstreams returns the Environments with what they have to know of the Rollout.
func (in Input) upstreams() upstream.Asked {
	return upstream.Asked{Upstreams: in.Upstreams, Rollout: upstream.Rollout{
		Now: in.Now, Order: in.Policy.Order, Current: in.Rollout.Current(), HasReason: hasReason(in.Rollout, in.ForeignAnnotations),
		Bypassed: in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation], Promoted: in.Rollout.Annotations[v1alpha1.PromoteAnnotation],
	}}
}
