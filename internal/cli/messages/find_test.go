// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"slices"
	"strings"
	"testing"
)

// Users have other names and versions than the examples.
func TestEachExampleIsFoundByOtherNames(t *testing.T) {
	renamed := strings.NewReplacer("podinfo/podinfo", "billing/api", "podinfo", "api", "shop", "till", "1.2.0", "7.0.1", "1.1.0", "6.9.9", "RolloutGate qa", "RolloutGate security-team")
	catalogue, looked := newIndex(), 0
	for _, e := range catalogue.entries {
		for _, quote := range quoted.FindAllStringSubmatch(e.Seen, -1) {
			if !strings.Contains(quote[1], " ") || len(wordsOf(quote[1])) < 2 {
				continue
			}
			looked++
			message := renamed.Replace(quote[1])
			if found := catalogue.find(message); !slices.ContainsFunc(found, func(f Found) bool { return f.Means == e.Means && f.Section == e.Section }) {
				t.Errorf("%q is not found, but %q", message, found)
			}
		}
	}
	if looked < 700 {
		t.Errorf("looked for %d messages only", looked)
	}
}

func TestFind(t *testing.T) {
	for message, want := range map[string]string{
		"Ready=True ReconciliationSucceeded: 1.1.0: applied and healthy (1 HealthCheck); 1.2.0 waits: not passing: RolloutGate release-team": "not passing: RolloutGate",
		"BakeOverdue": "`BakeOverdue`",
		"RolloutSchedule weekdays is closed until 2031-01-02T03:04:05Z": "is closed until",
	} {
		if found := Find(message); len(found) == 0 || !strings.Contains(found[0].Seen, want) {
			t.Errorf("%q: found %q", message, found)
		}
	}
	for _, message := range []string{"", "hello", "the weather is fine, and nobody complains about it"} {
		if found := Find(message); len(found) > 0 {
			t.Errorf("%q: found %q", message, found)
		}
	}
}
