// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Texts from users and objects are cut to these numbers of characters, because every
// entry of the history contains them.
const (
	LongestMessage   = 1024
	LongestName      = 256
	LongestComplaint = 256 // of one of many HealthChecks
)

// Clock formats a time for a message.
func Clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// WholeSecond rounds up to whole seconds, the precision of the Kubernetes API, so a bake
// is never shorter than requested.
func WholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// Count formats a number of things for a message.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Quote formats user input for a message, shortened if it is long.
func Quote(s string) string {
	const most = 80
	return strconv.Quote(truncate.Text(s, most))
}
