// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// Tag returns the tag at which the report of a Rollout is stored. No two Rollouts of a
// cluster have the same one: no namespace has a dot, and no name has an underscore.
func Tag(namespace, rollout string) string {
	const longest, digits = 128, 32
	tag := namespace + "." + rollout
	if len(tag) <= longest {
		return tag
	}
	sum := sha256.Sum256([]byte(tag))
	return tag[:longest-digits-1] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// farAhead is how far ahead a number may be. It is much more than clocks differ by.
const farAhead = 365 * 24 * time.Hour

// Latest returns the highest number that a report can have: nobody is to use up the numbers
// of all later reports with one of them.
func Latest(now time.Time) int64 { return now.Add(farAhead).Unix() }

// Sequence returns the number of a report after the previous one, which is 0 for none. It
// is higher than each before, even if the cluster has forgotten them, as long as its clock
// is not set back by more than the time between them. If the clock was far ahead for a
// while, the numbers of that time do not count: no reader has accepted them.
func Sequence(previous int64, now time.Time) int64 {
	if previous >= Latest(now) {
		previous = 0
	}
	return max(previous+1, now.Unix())
}

// Dated returns a report as it is signed now. Its time has whole seconds, as it is stored
// with them, and the soak of the current release ends at that time.
func Dated(r Report, last int64, now time.Time) Report {
	r.Created = metav1.Time{Time: now.Truncate(time.Second)}
	r.Sequence = Sequence(last, now)
	r.Releases = slices.Clone(r.Releases)
	for i := range r.Releases {
		if e := &r.Releases[i]; e.Current && e.HealthySince != nil {
			end := r.Created.Time
			if last := environment.Unheard(e, end); !last.IsZero() {
				end = last
			}
			e.Soaked = &metav1.Duration{Duration: max(0, end.Sub(e.HealthySince.Time))}
		}
	}
	return r
}
