// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// TestOrderTakesLittleMemory checks that this is true for any text in an ImagePolicy:
// an order is prepared in each pass, together with those of all other policies.
func TestOrderTakesLittleMemory(t *testing.T) {
	const most = 4 << 20
	for name, test := range map[string]struct {
		spec releases.OrderSpec
		says string // the error; empty if there is none
	}{
		"what people write":               {stamped, ""},
		"the largest pattern that may be": {releases.OrderSpec{Pattern: strings.Repeat("a{1000}", 10)}, ""},
		"a pattern of many repetitions": {
			releases.OrderSpec{Pattern: strings.Repeat("a{1000}", 140)},
			"filterTags.pattern: it is too large: with its repetitions written out it may have 10000 steps",
		},
		"repetitions of large classes": {
			releases.OrderSpec{Pattern: strings.Repeat(`[\pL\pN]{1000}`, 70)},
			"filterTags.pattern: it is too large: with its repetitions written out it may have 10000 steps",
		},
		"a long pattern":    {releases.OrderSpec{Pattern: strings.Repeat("a{1000}", 3300)}, "filterTags.pattern: it has 23100 characters, and may have 1024"},
		"a long extract":    {releases.OrderSpec{Pattern: ".*", Extract: strings.Repeat("$0", 1000)}, "filterTags.extract: it has 2000 characters, and may have 1024"},
		"a long range":      {releases.OrderSpec{Kind: releases.BySemver, Range: strings.Repeat(">=1.0.0 ", 1000)}, "semver range: it has 8000 characters, and may have 1024"},
		"a pattern of none": {releases.OrderSpec{Pattern: "("}, "filterTags.pattern: error parsing regexp: missing closing ): `(`"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := releases.NewOrder(test.spec)
			runtime.ReadMemStats(&after)
			if said := errorText(err); said != test.says {
				t.Errorf("it says %q, want %q", said, test.says)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("it took %d bytes, want at most %d", took, most)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
