// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

func TestStandingOfAnyTag(t *testing.T) {
	running := func() *situation {
		return given(rollout().Ledger("1.0.0", "1.1.0", "1.2.0", "1.3.0").
			History(entry("1.1.0").ID(2).Succeeded(), entry("1.0.0").ID(1).Failed())).latest("1.3.0")
	}
	for name, tt := range map[string]struct {
		of      *situation
		tag     string
		want    promotion.Position
		message string
		entry   bool
	}{
		"no tag":       {running(), "a b", promotion.NoTag, `"a b" cannot be a tag in an OCI registry`, false},
		"deployed":     {running(), "1.1.0", promotion.Deployed, "1.1.0 is deployed: Succeeded", true},
		"a candidate":  {running(), "1.2.0", promotion.Candidate, "", false},
		"older":        {running(), "1.0.0", promotion.Older, "1.0.0 is not newer than 1.1.0, which is deployed", true},
		"not admitted": {running(), "latest", promotion.NotAdmitted, "ImagePolicy shop does not admit latest: its range or filter leaves the tag out", false},
		"never seen": {
			running(), "1.4.0", promotion.NotSeen,
			"ImagePolicy shop has not reported 1.4.0: it is not in the registry, or Flux has not seen it yet", false,
		},
		"withdrawn": {running().registryHas("1.0.0", "1.1.0", "1.3.0"), "1.2.0", promotion.Withdrawn, "1.2.0 was deleted from the registry", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := tt.of.in()
			got := promotion.StandingOf(in, promotion.Decide(in), tt.tag)
			if got.Position != tt.want || got.Message != tt.message {
				t.Errorf("got %s %q, want %s %q", got.Position, got.Message, tt.want, tt.message)
			}
			if (got.Verdict != nil) != (tt.want == promotion.Candidate) {
				t.Errorf("verdict %+v", got.Verdict)
			}
			if (got.Entry != nil) != tt.entry {
				t.Errorf("entry %+v", got.Entry)
			}
		})
	}
}
