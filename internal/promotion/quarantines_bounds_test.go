// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
)

// abusive returns quarantines as large as a tenant can make them. They are about the tags,
// and about content that all releases may have; a third of them is lifted, and each lists
// failures of the Rollout. That is the most that can be looked up.
func abusive(n int, tags []string, digest string, uid types.UID) []quarantined.Quarantine {
	foreign := strings.Repeat("\x1b[31m\r\n\u202e", 128)
	all := make([]quarantined.Quarantine, n)
	for i := range all {
		q := &all[i]
		q.Name = fmt.Sprintf("ReleaseQuarantine %s-%d", strings.Repeat("x", 240), i)
		q.Spec = v1alpha1.ReleaseQuarantineSpec{Image: image, Reason: foreign, Lifted: i%3 == 0}
		if i%2 == 0 {
			q.Spec.Digest = digest
		}
		if i%5 == 0 {
			q.Spec.Enforce = v1alpha1.EnforceAlways
		}
		for j := range 20 {
			q.Spec.Tags = append(q.Spec.Tags, tags[(20*i+j)%len(tags)])
		}
		for j := range int64(10) {
			q.Status.Failures = append(q.Status.Failures, v1alpha1.ReleaseFailure{
				Rollout: v1alpha1.ReportingRollout{Name: foreign, UID: uid}, EntryID: math.MaxInt64 - j, Message: strings.Repeat(foreign, 20),
				LastRetryTimestamp: wireTime(noon),
			})
		}
		q.Status.Until = wireTime(one.Add(time.Duration(i) * time.Second))
	}
	return all
}

// overrun returns a Rollout with as many releases, and as many failures, as there can be,
// and that many quarantines.
func overrun(quarantines, releases int) *situation {
	const digest = "sha256:" + "00000000000000000000000000000000"
	tags := versions(releases, longest)
	s := behind(rollout().HistoryLimit(100).RollsBack(), tags)
	s.input.Policy.Image = image
	s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
	for i := range 99 {
		failed := entry(tags[1+i%(releases-1)]).ID(int64(i)).At(noon).BakeEnd(noon).Failed().Obj()
		failed.Version.Digest = to(digest)
		s.input.Rollout.Status.History = append(s.input.Rollout.Status.History, failed)
	}
	return s.quarantined(abusive(quarantines, tags, digest, s.input.Rollout.UID)...)
}

// What others write becomes part of the messages of a Rollout, which are stored and shown.
func TestQuarantinesCannotMakeMessagesLongOrOdd(t *testing.T) {
	d := promotion.Decide(overrun(200, 50).in())
	var held int
	for _, candidate := range d.Candidates {
		for _, hold := range candidate.Holds {
			if hold.Reason != v1alpha1.QuarantinedReason {
				continue
			}
			held++
			if strings.ContainsFunc(hold.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q has characters that cannot be printed", hold.Message)
			}
			if n := utf8.RuneCountInString(hold.Message); n > 1024 {
				t.Errorf("a message has %d characters", n)
			}
		}
	}
	if held == 0 {
		t.Error("nothing is held")
	}
}

// The Input decides as if each quarantine were looked at for each release.
func TestIndexFindsWhatALookAtEachFinds(t *testing.T) {
	s := overrun(97, 40)
	for i := range s.input.Quarantines.All {
		s.input.Quarantines.All[i].Status.Failures = nil
	}
	for _, candidate := range promotion.Decide(s.in()).Candidates {
		automatic, recalls := heldBy(s.in(), candidate.Release)
		want := slices.DeleteFunc([]time.Time{endOf(automatic), endOf(recalls)}, time.Time.IsZero)
		var got []time.Time
		for _, hold := range candidate.Holds {
			if hold.Reason == v1alpha1.QuarantinedReason {
				got = append(got, hold.Until)
			}
		}
		diff(t, want, got)
	}
}

func endOf(all []*quarantined.Quarantine) time.Time {
	if len(all) == 0 {
		return time.Time{}
	}
	return lastEnd(all)
}

// The names of quarantines count in the size of the history.
func TestForgedReportsDoNotMakeTheHistoryTooLarge(t *testing.T) {
	for name, forged := range map[string]string{
		"a usual name":     badName,
		"the longest":      strings.Repeat("x", 253),
		"one that is none": strings.Repeat("<\x01", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().HistoryLimit(500).Obj()
			for i := range 300 {
				e := fullEntry("plain")
				e.Rollback, e.Quarantine, e.Timestamp = nil, forged, metav1.NewTime(noon.Add(-time.Duration(i)*time.Hour))
				r.Status.History = append(r.Status.History, e)
			}
			in := given(rollout()).in()
			in.Rollout = r
			checkHistoryLimit(t, in)
		})
	}
}

// A failure is stored in an object that many Rollouts write.
func TestReportIsShortAndPrintable(t *testing.T) {
	s := reporting(badEntry().Because(strings.Repeat("\x1b[31mit is\ndown ", 500)), entry("1.1.0").ID(5).Succeeded())
	failure := promotion.DueReport(s.in()).Failure
	if utf8.RuneCountInString(failure.Message) > 256 || strings.ContainsFunc(failure.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("got %q", failure.Message)
	}
	if wire, err := json.Marshal(failure); err != nil || len(wire) > 1024 {
		t.Errorf("a failure takes %d bytes: %v", len(wire), err)
	}
}

// BenchmarkQuarantines shows what a tenant can make a decision cost: the time grows with
// the number of quarantines and of releases, not with their product.
func BenchmarkQuarantines(b *testing.B) {
	for _, releases := range []int{500, 5000} {
		for _, n := range []int{0, 500, 2000} {
			in := overrun(n, releases).in()
			b.Run(fmt.Sprintf("%d releases, %d quarantines", releases, n), func(b *testing.B) {
				for b.Loop() {
					d := promotion.Decide(in)
					if _, err := promotion.Record(in, d); err != nil {
						b.Fatal(err)
					}
					promotion.DueReport(in)
				}
			})
		}
	}
}
