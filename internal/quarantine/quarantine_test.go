// SPDX-License-Identifier: Apache-2.0

package quarantine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var noon = fixture.Noon

const (
	open        = v1alpha1.IncidentOpen
	restored    = v1alpha1.IncidentRestored
	notRestored = v1alpha1.IncidentNotRestored
	unknown     = v1alpha1.IncidentUnknown
)

func incident(rollout types.UID, id int64, at time.Time, outcome v1alpha1.IncidentOutcome) v1alpha1.QuarantineIncident {
	return v1alpha1.QuarantineIncident{
		Rollout: v1alpha1.IncidentRollout{UID: rollout}, EntryID: id, Time: metav1.NewTime(at), Outcome: outcome,
	}
}

func of(incidents ...v1alpha1.QuarantineIncident) v1alpha1.ReleaseQuarantineStatus {
	return v1alpha1.ReleaseQuarantineStatus{Incidents: incidents}
}

func TestPhase(t *testing.T) {
	a := func(outcome v1alpha1.IncidentOutcome) v1alpha1.QuarantineIncident {
		return incident("a", 1, noon, outcome)
	}
	b := func(outcome v1alpha1.IncidentOutcome) v1alpha1.QuarantineIncident {
		return incident("b", 1, noon, outcome)
	}
	until := func(at time.Time, s v1alpha1.ReleaseQuarantineStatus) v1alpha1.ReleaseQuarantineStatus {
		s.Until = &metav1.Time{Time: at}
		return s
	}
	for name, test := range map[string]struct {
		spec   v1alpha1.ReleaseQuarantineSpec
		status v1alpha1.ReleaseQuarantineStatus
		want   v1alpha1.QuarantinePhase
	}{
		"lifted before all else": {v1alpha1.ReleaseQuarantineSpec{Lifted: true}, until(noon, of(a(restored))), v1alpha1.QuarantineLifted},
		"expired exactly then":   {v1alpha1.ReleaseQuarantineSpec{}, until(noon, of(a(restored))), v1alpha1.QuarantineExpired},
		"not before":             {v1alpha1.ReleaseQuarantineSpec{}, until(noon.Add(1), of(a(open))), v1alpha1.QuarantineSuspected},
		"the time in the spec decides": {
			v1alpha1.ReleaseQuarantineSpec{Until: &metav1.Time{Time: noon.Add(time.Hour)}}, until(noon, of(a(open))), v1alpha1.QuarantineSuspected,
		},
		"a user says so":                    {v1alpha1.ReleaseQuarantineSpec{}, of(), v1alpha1.QuarantineConfirmed},
		"one failure":                       {v1alpha1.ReleaseQuarantineSpec{}, of(a(open)), v1alpha1.QuarantineSuspected},
		"one failure without a rollback":    {v1alpha1.ReleaseQuarantineSpec{}, of(a(unknown)), v1alpha1.QuarantineSuspected},
		"a rollback that helped":            {v1alpha1.ReleaseQuarantineSpec{}, of(a(notRestored), b(restored)), v1alpha1.QuarantineConfirmed},
		"a rollback that did not help":      {v1alpha1.ReleaseQuarantineSpec{}, of(a(notRestored), b(unknown)), v1alpha1.QuarantineRefuted},
		"another failure after that":        {v1alpha1.ReleaseQuarantineSpec{}, of(a(open), a(notRestored)), v1alpha1.QuarantineSuspected},
		"another Rollout after that":        {v1alpha1.ReleaseQuarantineSpec{}, of(b(open), a(notRestored)), v1alpha1.QuarantineConfirmed},
		"two Rollouts":                      {v1alpha1.ReleaseQuarantineSpec{}, of(a(open), b(open)), v1alpha1.QuarantineConfirmed},
		"two failures of the same Rollout":  {v1alpha1.ReleaseQuarantineSpec{}, of(a(open), a(unknown)), v1alpha1.QuarantineSuspected},
		"two Rollouts, and none went back":  {v1alpha1.ReleaseQuarantineSpec{}, of(a(unknown), b(unknown)), v1alpha1.QuarantineConfirmed},
		"two Rollouts, and none has helped": {v1alpha1.ReleaseQuarantineSpec{}, of(a(notRestored), b(notRestored)), v1alpha1.QuarantineRefuted},
	} {
		t.Run(name, func(t *testing.T) {
			got := quarantine.Phase(&test.spec, &test.status, noon)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFailureCountsOnce(t *testing.T) {
	by := &v1alpha1.RolloutQuarantine{}
	status, changed := quarantine.Report(of(), incident("a", 1, noon, open), by)
	if !changed || status.Strikes != 1 || !status.Until.Time.Equal(noon.Add(24*time.Hour)) {
		t.Fatalf("got %v, %+v", changed, status)
	}
	if again, changed := quarantine.Report(status, incident("a", 1, noon.Add(time.Hour), open), by); changed || again.Strikes != 1 {
		t.Errorf("the same failure was counted twice: %+v", again)
	}
	retried := incident("a", 1, noon.Add(time.Hour), open)
	retried.LastRetryTimestamp = &metav1.Time{Time: noon.Add(30 * time.Minute)}
	status, changed = quarantine.Report(status, retried, by)
	if !changed || status.Strikes != 2 || !status.Until.Time.Equal(noon.Add(49*time.Hour)) {
		t.Errorf("got %v, %+v", changed, status)
	}
}

// The failures of others may have taken its place in the list before it is reported again.
func TestFailureCountsOnceAfterItIsNotListedAnyMore(t *testing.T) {
	status := of()
	report := func(id int64) (changed bool) {
		status, changed = quarantine.Report(status, incident(types.UID(fmt.Sprint(id)), id, noon, restored), nil)
		return changed
	}
	const many = 150
	for id := range int64(many) {
		report(id)
	}
	for id := range int64(many) {
		failed := incident(types.UID(fmt.Sprint(id)), id, noon, restored)
		if got, want := quarantine.Counts(&status, failed), id >= 50; got != want {
			t.Errorf("failure %d of %d counts: %t", id, many, got)
		}
		if failed.LastRetryTimestamp = (&metav1.Time{Time: noon}); quarantine.Counts(&status, failed) {
			t.Errorf("failure %d counts after a retry", id)
		}
	}
	for id := int64(50); id < many; id++ {
		if report(id) {
			t.Errorf("failure %d counts twice", id)
		}
	}
	if status.Strikes != many || len(status.Incidents) != 10 || len(status.Counted) != 100 {
		t.Errorf("%d strikes, %d incidents, %d counted", status.Strikes, len(status.Incidents), len(status.Counted))
	}
}

func TestSuspicionEndsAfterAWeekAtTheLatest(t *testing.T) {
	status := of()
	for i := range int64(300) {
		status, _ = quarantine.Report(status, incident("a", i, noon, open), &v1alpha1.RolloutQuarantine{})
	}
	if status.Strikes != 300 || !status.Until.Time.Equal(noon.Add(168*time.Hour)) {
		t.Errorf("%d strikes, until %s", status.Strikes, status.Until)
	}
}

func TestOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		before, outcome, want v1alpha1.IncidentOutcome
		until                 time.Duration
	}{
		"restored confirms, for longer":          {open, restored, restored, 720 * time.Hour},
		"not restored":                           {open, notRestored, notRestored, 24 * time.Hour},
		"restored after all":                     {notRestored, restored, restored, 720 * time.Hour},
		"what is restored stays":                 {restored, notRestored, restored, 24 * time.Hour},
		"what nobody has answered stays unknown": {unknown, restored, unknown, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			status := of(incident("a", 1, noon, test.before))
			status.Strikes, status.Until = 1, &metav1.Time{Time: noon.Add(24 * time.Hour)}
			got, changed := quarantine.Close(status, incident("a", 1, noon, test.outcome), &v1alpha1.RolloutQuarantine{})
			if changed != (test.before != test.want) || got.Incidents[0].Outcome != test.want || !got.Until.Time.Equal(noon.Add(test.until)) {
				t.Errorf("got %v, %+v", changed, got)
			}
		})
	}
	if _, changed := quarantine.Close(of(incident("a", 1, noon, open)), incident("b", 1, noon, restored), nil); changed {
		t.Error("the outcome of another Rollout was taken")
	}
}

func TestOfManyIncidentsThoseThatSaySomethingStay(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes map[int64]v1alpha1.IncidentOutcome // of the rest: open
		want     []int64
	}{
		"the oldest that is open goes":           {nil, []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3}},
		"what says nothing goes first":           {map[int64]v1alpha1.IncidentOutcome{9: unknown, 10: unknown}, []int64{12, 11, 8, 7, 6, 5, 4, 3, 2, 1}},
		"what proves the release bad stays":      {map[int64]v1alpha1.IncidentOutcome{1: restored, 3: unknown}, []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 1}},
		"if all do, the oldest goes":             {allOf(restored, 12), []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3}},
		"and if those that are listed all do so": {allOf(restored, 10), []int64{12, 10, 9, 8, 7, 6, 5, 4, 3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			status := of()
			for id := int64(1); id <= 12; id++ {
				outcome, ok := test.outcomes[id]
				if !ok {
					outcome = open
				}
				status, _ = quarantine.Report(status, incident(types.UID(fmt.Sprint(id)), id, noon.Add(time.Duration(id)*time.Minute), outcome), nil)
			}
			var kept []int64
			for _, i := range status.Incidents {
				kept = append(kept, i.EntryID)
			}
			if d := cmp.Diff(test.want, kept); d != "" {
				t.Error(d)
			}
			if status.Strikes != 12 {
				t.Errorf("%d strikes", status.Strikes)
			}
		})
	}
}

func allOf(outcome v1alpha1.IncidentOutcome, last int64) map[int64]v1alpha1.IncidentOutcome {
	all := map[int64]v1alpha1.IncidentOutcome{}
	for id := int64(1); id <= last; id++ {
		all[id] = outcome
	}
	return all
}

func TestFailureIsListedWhateverIsListedAlready(t *testing.T) {
	for name, test := range map[string]struct {
		outcome v1alpha1.IncidentOutcome
		at      time.Time
	}{
		"others of the same second":        {open, noon},
		"later ones":                       {open, noon.Add(-time.Minute)},
		"those that prove the release bad": {restored, noon},
	} {
		t.Run(name, func(t *testing.T) {
			status := of()
			for id := range int64(10) {
				status, _ = quarantine.Report(status, incident("other", id, noon, test.outcome), nil)
			}
			added := incident("mine", 1, test.at, open)
			status, _ = quarantine.Report(status, added, nil)
			status.Counted = nil // an older controller does not write it
			if _, changed := quarantine.Report(status, added, nil); changed || status.Strikes != 11 || len(status.Incidents) != 10 {
				t.Errorf("reported again: %t; %d strikes, %d incidents", changed, status.Strikes, len(status.Incidents))
			}
		})
	}
}

// The status of a quarantine may be written by hand.
func TestAbsurdStatusIsNoReasonToPanicOrToHoldForEver(t *testing.T) {
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	for name, test := range map[string]struct {
		strikes, wantStrikes int32
		at, want             time.Time
		suspectFor           time.Duration
	}{
		"negative strikes":             {-7, 1, noon, noon.Add(time.Hour), time.Hour},
		"as many as there can be":      {math.MaxInt32, math.MaxInt32, noon, noon.Add(168 * time.Hour), time.Hour},
		"a suspicion without end":      {7, 8, noon, noon.Add(168 * time.Hour), math.MaxInt64},
		"a failure at the end of time": {0, 1, last, last, time.Hour},
		"a failure without a time":     {0, 1, time.Time{}, time.Time{}.Add(time.Hour), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			by := &v1alpha1.RolloutQuarantine{SuspectFor: &metav1.Duration{Duration: test.suspectFor}}
			got, _ := quarantine.Report(v1alpha1.ReleaseQuarantineStatus{Strikes: test.strikes}, incident("a", 1, test.at, open), by)
			if got.Strikes != test.wantStrikes || !got.Until.Time.Equal(test.want) {
				t.Errorf("%d strikes, until %s", got.Strikes, got.Until)
			}
		})
	}
}

func TestTakesFailures(t *testing.T) {
	lifted := v1alpha1.ReleaseQuarantineSpec{Lifted: true}
	for _, test := range []struct {
		spec          v1alpha1.ReleaseQuarantineSpec
		managed, want bool
	}{
		{managed: true, want: true},
		{managed: false, want: false},
		{spec: lifted, managed: true, want: false},
	} {
		if got := quarantine.TakesFailures(&test.spec, test.managed); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

func TestQuarantineThatWasNeverReportedToEnds(t *testing.T) {
	for name, test := range map[string]struct {
		status v1alpha1.ReleaseQuarantineStatus
		want   *metav1.Time
	}{
		"an hour after it was created": {of(), &metav1.Time{Time: noon.Add(time.Hour)}},
		"not if it lists a failure":    {of(incident("a", 1, noon, open)), nil},
		"not twice":                    {v1alpha1.ReleaseQuarantineStatus{Until: &metav1.Time{Time: noon}}, &metav1.Time{Time: noon}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(test.want, quarantine.Begun(test.status, noon).Until); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	const image, bad = "registry.example.com/shop", "sha256:bad"
	byDigest := v1alpha1.ReleaseQuarantineSpec{Digest: bad, Image: image, Tags: []string{"1.2.0"}}
	byTags := v1alpha1.ReleaseQuarantineSpec{Image: image, Tags: []string{"1.2.0", "1.2.1"}}
	for name, test := range map[string]struct {
		spec    v1alpha1.ReleaseQuarantineSpec
		release quarantine.Release
		want    bool
	}{
		"the content under another tag in another repository": {byDigest, quarantine.Release{"other", "2.0.0", bad}, true},
		"other content under the tag":                         {byDigest, quarantine.Release{image, "1.2.0", "sha256:fixed"}, false},
		"the tag, if the content is not known":                {byDigest, quarantine.Release{image, "1.2.0", ""}, true},
		"the tag of another image":                            {byDigest, quarantine.Release{"other", "1.2.0", ""}, false},
		"one of the tags, whatever the content":               {byTags, quarantine.Release{image, "1.2.1", bad}, true},
		"none of the tags":                                    {byTags, quarantine.Release{image, "1.2.2", bad}, false},
		"an image that is not known":                          {byTags, quarantine.Release{"", "1.2.0", ""}, false},
		"a digest without image": {
			v1alpha1.ReleaseQuarantineSpec{Digest: bad}, quarantine.Release{image, "1.2.0", ""}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quarantine.Matches(&test.spec, test.release); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestName(t *testing.T) {
	for digest, want := range map[string]string{
		"sha256:3f2a9c1d5b7e8f60a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e": "sha256-3f2a9c1d5b7e8f60a1b2",
		"sha512+b64:00000000000000000000000000000000":                             "sha512-b64-00000000000000000000",
		"sha256:short": "",
		"SHA256:3f2a9c1d5b7e8f60a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e": "",
		"sha256:no digits at all, but long enough for a name of them":             "",
		strings.Repeat("a", 150) + ":00000000000000000000000000000000":            "",
		"": "",
	} {
		got, ok := quarantine.Name(digest)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", digest, got, ok)
		}
	}
}
