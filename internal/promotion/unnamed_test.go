// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

func TestPolicyDoesNotNameANewerRelease(t *testing.T) {
	why := func(reason string) *verdict.Problem { return &verdict.Problem{Reason: reason, Message: "it is so"} }
	suspended := why(v1alpha1.SuspendedReason)
	const unnamed = "it is so; 1.3.0 is in the registry, and ImagePolicy shop does not name it"
	for name, test := range map[string]struct {
		problem *verdict.Problem
		scanned []string
		want    string
	}{
		"while it is suspended":                      {suspended, []string{"1.3.0", "1.2.0"}, unnamed},
		"while it is not ready":                      {why(v1alpha1.ImagePolicyNotReadyReason), []string{"1.3.0", "1.2.0"}, unnamed},
		"the newest of several":                      {suspended, []string{"1.2.1", "1.3.0", "1.2.0"}, unnamed},
		"not one that it does not admit":             {suspended, []string{"2.0.0", "latest", "1.2.0"}, "it is so"},
		"not one that is equal for it":               {suspended, []string{"v1.2.0", "1.2.0"}, "it is so"},
		"not for another reason":                     {why(v1alpha1.InvalidReleaseTagReason), []string{"1.3.0"}, "it is so"},
		"not between a scan and the next evaluation": {nil, []string{"1.3.0", "1.2.0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := given(rollout()).ranked(releases.OrderSpec{Kind: releases.BySemver, Range: "1.x"}).latest("1.2.0").scanned(test.scanned...).in().Policy
			policy.Problem = test.problem
			got := ""
			if problem := policy.WithUnnamed().Problem; problem != nil {
				got = problem.Message
			}
			diff(t, test.want, got)
		})
	}
}
