// SPDX-License-Identifier: Apache-2.0

package promotion_test

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
	goes, deleting := stored("Kustomization", "apps", "1.0.0", v1alpha1.TargetDeleting), pending("apps")
	deleting.Reason = v1alpha1.TargetDeleting
	for name, tt := range map[string]struct {
		before []v1alpha1.TargetStatus
		now    []content.Target
		want   []string
	}{
		"it is gone": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{pulledOnly("web")}, []string{"OCIRepository shop-prod/web"},
		},
		"it is there":    {[]v1alpha1.TargetStatus{apps, web}, []content.Target{applied("apps")}, nil},
		"there was none": {[]v1alpha1.TargetStatus{web}, []content.Target{pulledOnly("web")}, nil},
		"its deletion begins": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{deleting, pulledOnly("web")}, []string{"OCIRepository shop-prod/web"},
		},
		"its deletion goes on": {
			[]v1alpha1.TargetStatus{goes, web}, []content.Target{deleting, pulledOnly("web")}, nil,
		},
		"its deletion ends": {
			[]v1alpha1.TargetStatus{goes, web}, []content.Target{pulledOnly("web")}, nil,
		},
		"it was noticed before": {
			[]v1alpha1.TargetStatus{stored("OCIRepository", "web", "1.0.0", v1alpha1.TargetNoConsumer)}, []content.Target{pulledOnly("web")}, nil,
		},
		"another one is gone": {
			[]v1alpha1.TargetStatus{apps, stored("OCIRepository", "web", "1.0.0", v1alpha1.TargetNoConsumer)}, []content.Target{pulledOnly("web")}, nil,
		},
		"it was one for the release before": {
			[]v1alpha1.TargetStatus{stored("Kustomization", "apps", "0.9.0", ""), web}, []content.Target{pulledOnly("web")}, nil,
		},
		"another one applies it": {
			[]v1alpha1.TargetStatus{apps, web}, []content.Target{applied("more"), {Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "web"}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())).targets(tt.now...).in()
			in.Rollout.Status.Targets = tt.before
			var lost []string
			for _, target := range in.Content().LostConsumers() {
				lost = append(lost, target.String())
			}
			diff(t, tt.want, lost)
		})
	}
}
