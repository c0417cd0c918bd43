// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestEarlierNeverGoesForward(t *testing.T) {
	good := func(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag).Succeeded() }
	failed := func(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag).Failed() }
	back := func(tag, from string) *fixture.EntryBuilder { return good(tag).Back(from, 3, 2) }
	order, err := releases.NewOrder(releases.OrderSpec{Kind: releases.BySemver, Range: ">=1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	type history = []*fixture.EntryBuilder
	for name, tt := range map[string]struct {
		history  history // newest first
		ledger   []string
		unranked bool
		to, left string
	}{
		"the version before":                       {history: history{good("1.2.0"), good("1.1.0"), good("1.0.0")}, to: "1.1.0"},
		"not one that failed":                      {history: history{failed("1.2.0"), failed("1.1.0"), good("1.0.0")}, to: "1.0.0"},
		"not one that failed at last":              {history: history{good("1.2.0"), failed("1.1.0"), good("1.1.0"), good("1.0.0")}, to: "1.0.0"},
		"not further after a rollback":             {history: history{good("1.1.0"), good("1.2.0"), good("1.1.0"), good("1.0.0")}, left: "1.2.0"},
		"not further after an automatic one":       {history: history{back("1.1.0", "1.2.0"), failed("1.2.0"), good("1.1.0"), good("1.0.0")}, left: "1.2.0"},
		"nor if its tag was pushed again":          {history: history{good("1.1.0"), good("1.1.0"), good("1.2.0"), good("1.0.0")}, left: "1.2.0"},
		"not what was rolled back from":            {history: history{failed("1.3.0"), good("1.1.0"), good("1.2.0"), good("1.1.0")}, to: "1.1.0"},
		"not what the controller rolled back from": {history: history{failed("1.3.0"), back("1.1.0", "1.2.0"), good("1.2.0"), good("1.1.0")}, to: "1.1.0"},
		"what was rolled back from, and succeeded again": {
			history: history{failed("1.3.0"), good("1.2.0"), good("1.1.0"), good("1.2.0"), good("1.1.0")}, to: "1.2.0",
		},
		"the last good release, although an older one was bad": {
			history: history{failed("1.4.0"), good("1.3.0"), good("1.1.0"), good("1.2.0"), good("1.1.0")}, to: "1.3.0",
		},
		"not a newer one after a pin to an old one": {history: history{good("1.0.0"), good("1.2.0")}, left: "1.2.0"},
		"custom builds, by when they appeared":      {history: history{good("hotfix"), good("1.2.0"), good("1.1.0")}, to: "1.2.0"},
		"back from a custom build":                  {history: history{good("1.2.0"), good("hotfix"), good("1.2.0"), good("1.1.0")}, left: "hotfix"},
		"without an order, by the ledger": {
			history: history{good("b"), good("c"), good("a")}, ledger: []string{"a", "b", "c"}, unranked: true, left: "c",
		},
		"nothing before": {history: history{good("1.2.0"), failed("1.1.0")}},
		"nothing else":   {history: history{good("1.2.0")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := request.Promotions{
				History: fixture.MakeRollout("shop").History(tt.history...).Obj().Status.History,
				Ledger:  fixture.Releases(tt.ledger...), Order: order,
			}
			if tt.unranked {
				p.Order = releases.Order{}
			}
			to, left := p.Earlier()
			if tagOf(to) != tt.to || tagOf(left) != tt.left {
				t.Errorf("it goes to %q, or %q was left; want %q and %q", tagOf(to), tagOf(left), tt.to, tt.left)
			}
		})
	}
}

func tagOf(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry == nil {
		return ""
	}
	return entry.Version.Tag
}

func TestPromotionNamedByTagOrNumber(t *testing.T) {
	p := request.Promotions{History: fixture.MakeRollout("shop").History(
		fixture.MakeEntry("1.2.0").ID(9), fixture.MakeEntry("7").ID(8), fixture.MakeEntry("1.0.0").ID(7)).Obj().Status.History}
	for name, want := range map[string]string{"1.0.0": "1.0.0", "8": "7", "#8": "7", "7": "7", "#7": "1.0.0", "9": "", "1.2.0": "", "38": "", "#": "", "": ""} {
		if got := tagOf(p.Named(name)); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
