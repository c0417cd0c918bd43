// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"
	"time"
)

func TestTimesOfFlags(t *testing.T) {
	noon := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	zone := time.FixedZone("CET", 3600)
	for text, want := range map[string]struct {
		at  string
		err string
	}{
		"":                          {at: "2026-11-21T12:00:00Z"},
		"2026-11-23T08:00:00+01:00": {at: "2026-11-23T07:00:00Z"},
		"2026-11-23 08:00":          {at: "2026-11-23T07:00:00Z"},
		"2026-11-23":                {at: "2026-11-22T23:00:00Z"},
		"2h":                        {at: "2026-11-21T14:00:00Z"},
		"3d":                        {at: "2026-11-24T12:00:00Z"},
		"-2h":                       {at: "2026-11-21T10:00:00Z"},
		"+90m":                      {at: "2026-11-21T13:30:00Z"},
		"+7d":                       {at: "2026-11-28T12:00:00Z"},
		"+soon":                     {err: `"soon" is no duration of at most ten years; write 30m, 2h or 7d`},
		"+450000d":                  {err: `"450000d" is no duration of at most ten years; write 30m, 2h or 7d`},
		"+100000h":                  {err: `"100000h" is no duration of at most ten years; write 30m, 2h or 7d`},
		"tomorrow":                  {err: `"tomorrow" is no time; write 2h, 3d, 2006-01-02, "2006-01-02 15:04" in your zone, or RFC 3339`},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := TimeOf(text, noon, zone)
			if want.err != "" {
				if err == nil || err.Error() != want.err {
					t.Errorf("got error %v, want %s", err, want.err)
				}
				return
			}
			if at := got.UTC().Format(time.RFC3339); err != nil || at != want.at {
				t.Errorf("got %s, %v; want %s", at, err, want.at)
			}
		})
	}
}
