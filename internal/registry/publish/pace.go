// SPDX-License-Identifier: Apache-2.0

package publish

import "time"

const (
	shortestPause = 5 * time.Second
	longestPause  = 5 * time.Minute
	// mostInARow is after how many quick reports the pause doubles.
	mostInARow = 6
)

// pace defines how soon a report may follow another one. After a quiet time, a report is
// stored at once: a promotion has few, and others wait for them. An environment that flaps
// has a new one all the time, and its pauses become longer.
type pace struct {
	pause time.Duration
	last  time.Time
	quick int // how many in a row came within twice the pause
}

// due returns when the next report may be stored; zero if there was none.
func (p *pace) due() time.Time {
	if p.last.IsZero() {
		return time.Time{}
	}
	return p.last.Add(p.pause)
}

// add records that the registry was asked to store a report.
func (p *pace) add(now time.Time) {
	if p.last.IsZero() || now.Sub(p.last) > 2*p.pause {
		p.pause, p.quick = shortestPause, 0
	} else if p.quick++; p.quick == mostInARow {
		p.pause, p.quick = min(2*p.pause, longestPause), 0
	}
	p.last = now
}
