// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

func TestOrderFloats(t *testing.T) {
	for name, test := range map[string]struct {
		spec promotion.OrderSpec
		want string
	}{
		"with a single name":                      {promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^latest$`}, "latest"},
		"with a part of a version":                {promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^v1\.2$`}, "v1.2"},
		"whatever is extracted":                   {promotion.OrderSpec{Kind: promotion.BySemver, Range: "*", Pattern: `^(?P<tag>stable)$`, Extract: "1.0.0"}, "stable"},
		"with a number":                           {promotion.OrderSpec{Kind: promotion.ByNumber, Pattern: `^7$`}, "7"},
		"not if semver admits nothing":            {promotion.OrderSpec{Kind: promotion.BySemver, Range: "*", Pattern: `^latest$`}, ""},
		"not with a complete version, which pins": {promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^v1\.2\.3$`}, ""},
		"nor with a range of one version":         {promotion.OrderSpec{Kind: promotion.BySemver, Range: "=1.2.3"}, ""},
		"not with several tags":                   {promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^main-.*$`}, ""},
		"nor without a filter":                    {promotion.OrderSpec{Kind: promotion.ByAlphabet}, ""},
		"nor with what is no tag":                 {promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^a/b$`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			order, err := promotion.NewOrder(test.spec)
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
	order, err := promotion.NewOrder(promotion.OrderSpec{Kind: promotion.ByAlphabet, Pattern: `^latest$`})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, &verdict.Problem{
		Reason: v1alpha1.FloatingTagReason,
		Message: "ImagePolicy shop admits a single tag, latest: what is pushed to it next goes out without a decision, and no gate or schedule can hold it; " +
			"push each release under a tag of its own, and admit these tags",
	}, promotion.FloatingTag(promotion.Policy{Name: "shop", Order: order}))
	diff(t, (*verdict.Problem)(nil), promotion.FloatingTag(promotion.Policy{Name: "shop"}))
}
