// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

const (
	// leastPause is the least time between two fetches of an upstream. It is also how long
	// after the end of a bake the report about it is expected.
	leastPause = 5 * time.Second
	// After a failure, it is fetched again after these pauses.
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
	// patience is how long the regular pause stays the same while there is nothing new.
	// Then it grows up to longestPause.
	patience     = time.Hour
	longestPause = 10 * time.Minute
	// longestBake is how long the end of a bake is waited for without a fetch.
	longestBake = time.Hour
)

// pace is when it is fetched while a candidate waits.
type pace struct {
	// next is when to fetch.
	next time.Time
	// since is when the wait began, or something new was read, or expected.
	since time.Time
	// read is when something new was read.
	read time.Time
	// pause is the last regular pause.
	pause time.Duration
	// late counts the fetches since the bake of the upstream should have ended.
	late int
	// failures counts the fetches since the last one that found what counts.
	failures int
}

// outcome is what a fetch means for the next one.
type outcome struct {
	// interval is the longest pause that the Environment allows.
	interval time.Duration
	// report is the one that counts; nil if none does.
	report *report.Report
	// isNew means that the report was not known before.
	isNew bool
	// failed means that the registry, or what is needed to ask it, did not answer. If there
	// is no report although nothing failed, somebody may publish one at any time.
	failed bool
}

// begin starts to wait.
func (p *pace) begin(now time.Time) { p.next, p.since = now, now }

// retry returns the pause after as many failures as there were.
func (p *pace) retry(longest time.Duration) time.Duration { return doubled(p.failures, longest) }

// doubled returns the first pause, doubled for each time but the first.
func doubled(times int, longest time.Duration) time.Duration {
	pause := firstRetry
	for i := 1; i < times && pause < longest; i++ {
		pause *= 2
	}
	return min(pause, longest)
}

// end sets when to fetch next, after a fetch that ended now.
func (p *pace) end(now time.Time, o outcome) {
	if o.isNew {
		p.since, p.read = now, now
	}
	p.next = now.Add(p.after(now, o))
}

func (p *pace) after(now time.Time, o outcome) time.Duration {
	if o.report != nil {
		p.failures = 0
		pause := p.expected(now, endOfBake(*o.report), o.interval)
		if next := renewal(*o.report); next > 0 && p.read.Add(next).After(now) {
			pause = min(pause, p.read.Add(next).Sub(now))
		}
		return pause
	}
	p.failures++
	p.late = 0
	if retry := p.retry(max(lastRetry, o.interval)); o.failed || retry < o.interval {
		return retry
	}
	return p.regular(now, o.interval)
}

// expected returns the pause until a report that says how a bake has ended. When it ends
// is known from the clock of another cluster, and only used to fetch at a good time.
func (p *pace) expected(now, until time.Time, interval time.Duration) time.Duration {
	if until.After(now) {
		p.late, p.since = 0, until // nothing new is expected before
		return min(until.Sub(now)+leastPause, longestBake)
	}
	if until.IsZero() {
		p.late = 0
		return p.regular(now, interval)
	}
	if soon := doubled(p.late+1, interval); soon < interval {
		p.late++
		return soon
	}
	return p.regular(now, interval)
}

func (p *pace) regular(now time.Time, interval time.Duration) time.Duration {
	longest := interval
	if now.Sub(p.since) >= patience {
		longest = max(interval, longestPause)
	}
	p.pause = min(max(2*p.pause, interval), longest)
	return p.pause
}

// renewal returns how long after a report the next one is expected, with which its cluster
// confirms that the current release is still healthy; zero if none is announced.
func renewal(r report.Report) time.Duration {
	if current := environment.Current(r.Releases); current != nil && current.RenewAfter != nil {
		return current.RenewAfter.Duration + leastPause
	}
	return 0
}

// endOfBake returns when the bake of a release ends; zero if none bakes.
func endOfBake(r report.Report) time.Time {
	for i := range r.Releases {
		if release := &r.Releases[i]; release.State == v1alpha1.BakeInProgress && release.Until != nil {
			return release.Until.Time
		}
	}
	return time.Time{}
}
