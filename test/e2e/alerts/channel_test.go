// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// moment matches a point in time within a message.
var moment = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T[0-9:]+Z`)

// lines returns events as text, without points in time. The lines are sorted, because
// notification-controller delivers in no order.
func lines(events []eventv1.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, moment.ReplaceAllString(fmt.Sprintf("%s %s %s: %s", e.InvolvedObject.Kind, e.Severity, e.Reason, e.Message), "TIME"))
	}
	slices.Sort(all)
	return all
}

// await waits until the events that have arrived are those of the wanted lines.
func await(t *testing.T, c *env.Channel, want []string) {
	t.Helper()
	slices.Sort(want)
	env.Eventually(t, strings.Join(want, "\n"), func() (bool, string) {
		got := lines(c.Ours())
		return slices.Equal(got, want), strings.Join(got, "\n")
	})
}
