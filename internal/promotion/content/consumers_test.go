// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestLastConsumerThatIsGoneIsNoticedOnce(t *testing.T) {
	stored := func(kind, name, version string, reason v1alpha1.TargetReason) v1alpha1.TargetStatus {
		return v1alpha1.TargetStatus{Kind: kind, Namespace: fixture.Namespace, Name: name, Version: version, State: v1alpha1.TargetApplied, Reason: reason}
	}
	web, apps := stored("OCIRepository", "web", "1.0.0", ""), stored("Kustomization", "apps", "1.0.0", "")
	applied := func(name string) content.Target { return target("Kustomization", name, v1alpha1.TargetApplied) }
	pulledOnly := target("OCIRepository", "web", v1alpha1.TargetApplied)
	pulledOnly.PulledOnly = true
	goes, deleting := stored("Kustomization", "apps", "1.0.0", v1alpha1.TargetDeleting), target("Kustomization", "apps", v1alpha1.TargetPending)
	deleting.Reason = v1alpha1.TargetDeleting
	for name, tt := range map[string]struct {
		before []v1alpha1.TargetStatus
		now    []content.Target
		want   []string
	}{
		"it is gone": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{pulledOnly}, []string{"OCIRepository shop-prod/web"},
		},
		"it is there":    {[]v1alpha1.TargetStatus{apps, web}, []content.Target{applied("apps")}, nil},
		"there was none": {[]v1alpha1.TargetStatus{web}, []content.Target{pulledOnly}, nil},
		"its deletion begins": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{deleting, pulledOnly}, []string{"OCIRepository shop-prod/web"},
		},
		"its deletion goes on": {
			[]v1alpha1.TargetStatus{goes, web}, []content.Target{deleting, pulledOnly}, nil,
		},
		"its deletion ends": {
			[]v1alpha1.TargetStatus{goes, web}, []content.Target{pulledOnly}, nil,
		},
		"it was noticed before": {
			[]v1alpha1.TargetStatus{stored("OCIRepository", "web", "1.0.0", v1alpha1.TargetNoConsumer)}, []content.Target{pulledOnly}, nil,
		},
		"another one is gone": {
			[]v1alpha1.TargetStatus{apps, stored("OCIRepository", "web", "1.0.0", v1alpha1.TargetNoConsumer)}, []content.Target{pulledOnly}, nil,
		},
		"it was one for the release before": {
			[]v1alpha1.TargetStatus{stored("Kustomization", "apps", "0.9.0", ""), web}, []content.Target{pulledOnly}, nil,
		},
		"a GitRepository is gone, which applies nothing": {
			[]v1alpha1.TargetStatus{stored("GitRepository", "web", "1.0.0", ""), web}, []content.Target{pulledOnly}, nil,
		},
		"another one applies it": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{applied("more"), target("OCIRepository", "web", v1alpha1.TargetApplied)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop := rollout().History(entry("1.0.0").Succeeded()).Obj()
			shop.Status.Targets = tt.before
			var lost []string
			for _, target := range (content.Running{Rollout: shop, Targets: content.Targets{All: tt.now}}).LostConsumers() {
				lost = append(lost, target.String())
			}
			diff(t, tt.want, lost)
		})
	}
}

// A commit is not the digest of an image, also while the image of the policy is not known.
func TestCommitIsNoDigestOfTheRelease(t *testing.T) {
	shop := rollout().History(entry("1.0.0").Succeeded()).Obj()
	shop.Status.Targets = []v1alpha1.TargetStatus{{Kind: "GitRepository", Namespace: fixture.Namespace, Name: "web", Version: "1.0.0", Digest: "sha1:1234"}}
	git := target("GitRepository", "web", v1alpha1.TargetApplied)
	git.Digest = "sha1:1234"
	running := content.Running{Rollout: shop, Targets: content.Targets{All: []content.Target{git}}}
	diff(t, []string{"", ""}, []string{running.Digest(), running.Pulled()})
}
