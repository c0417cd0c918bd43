// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// mostApart is by how much the clocks of Prometheus and of the controller may differ. The
// time of a question is that of the controller, and the times of samples are those of
// Prometheus: a controller that is behind asks for the release before.
const mostApart = 30 * time.Second

// compareClocks returns an error if the date of an answer is too far from the time at which
// it came. Without a date nothing is known. The text changes as seldom as possible.
func compareClocks(date, now time.Time) error {
	apart := date.Sub(now).Abs()
	switch {
	case date.IsZero() || apart <= mostApart:
		return nil
	case apart >= time.Hour:
		return errClocks(fmt.Sprintf("%.0fh", apart.Hours()))
	case apart >= time.Minute:
		apart = apart.Round(time.Minute)
	}
	return errClocks(measure.Short(apart.Round(time.Second)))
}

func errClocks(apart string) error {
	return probe.Fault("the clocks of Prometheus and of this controller differ by " + apart + ": synchronize them")
}
