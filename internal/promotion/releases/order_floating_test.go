// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

func TestOrderFloats(t *testing.T) {
	for name, test := range map[string]struct {
		spec releases.OrderSpec
		want string
	}{
		"with a single name":                      {releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^latest$`}, "latest"},
		"with a part of a version":                {releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^v1\.2$`}, "v1.2"},
		"whatever is extracted":                   {releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^(?P<tag>stable)$`, Extract: "1.0.0"}, "stable"},
		"with a number":                           {releases.OrderSpec{Kind: releases.ByNumber, Pattern: `^7$`}, "7"},
		"not if semver admits nothing":            {releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^latest$`}, ""},
		"not with a complete version, which pins": {releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^v1\.2\.3$`}, ""},
		"nor with a range of one version":         {releases.OrderSpec{Kind: releases.BySemver, Range: "=1.2.3"}, ""},
		"not with several tags":                   {releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^main-.*$`}, ""},
		"nor without a filter":                    {releases.OrderSpec{Kind: releases.ByAlphabet}, ""},
		"nor with what is no tag":                 {releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^a/b$`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			order, err := releases.NewOrder(test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got, floating := order.Floating(); got != test.want && floating || floating != (test.want != "") {
				t.Errorf("got %q (%t), want %q", got, floating, test.want)
			}
		})
	}
}

func TestFloatingTagSaysWhatToDo(t *testing.T) {
	order, err := releases.NewOrder(releases.OrderSpec{Kind: releases.ByAlphabet, Pattern: `^latest$`})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, &verdict.Problem{
		Reason: v1alpha1.FloatingTagReason,
		Message: "ImagePolicy shop admits a single tag, latest: what is pushed to it next goes out without a decision, and no gate or schedule can hold it; " +
			"push each release under a tag of its own, and admit these tags",
	}, releases.FloatingTag(releases.Policy{Name: "shop", Order: order}))
	diff(t, (*verdict.Problem)(nil), releases.FloatingTag(releases.Policy{Name: "shop"}))
}
