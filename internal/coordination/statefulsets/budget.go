// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"strconv"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// budget returns how many pods of the set may be unavailable. It returns false if the
// annotation is invalid, which makes it 1.
func (s *Set) budget() (int32, bool) {
	text, isPercent := strings.CutSuffix(s.MaxUnavailable, "%")
	number, err := strconv.ParseInt(text, 10, 32)
	switch {
	case s.MaxUnavailable == "":
		return 1, true
	case err != nil, number < 1, isPercent && number > 100:
		return 1, false
	case isPercent:
		return int32(max(int64(s.Replicas)*number/100, 1)), true
	}
	return int32(number), true
}

// warnings returns notes about invalid annotations, and about a status that stays old.
func warnings(sets []*tally, now time.Time) []Note {
	var notes []Note
	for _, s := range sets {
		if at := s.overdueAt(); !at.IsZero() && !at.After(now) {
			notes = append(notes, Note{Set: s.Name, Reason: rolloutgroup.NotObservedEvent, Message: s.overdue()})
		}
		if _, ok := s.budget(); !ok {
			notes = append(notes, Note{Set: s.Name, Reason: rolloutgroup.InvalidMaxUnavailableEvent,
				Message: rolloutgroup.MaxUnavailableAnnotation + " is " + strconv.Quote(s.MaxUnavailable) +
					", which is neither a positive number nor a percentage from 1% to 100%; 1 is used"})
		}
	}
	return notes
}
