// SPDX-License-Identifier: Apache-2.0

package quarantine_test

import (
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

func failure(rollout types.UID, id int64, at time.Time) v1alpha1.ReleaseFailure {
	return v1alpha1.ReleaseFailure{Rollout: v1alpha1.ReportingRollout{UID: rollout}, EntryID: id, Time: metav1.NewTime(at)}
}

func holdFor(d time.Duration) *v1alpha1.RolloutQuarantine {
	return &v1alpha1.RolloutQuarantine{HoldFor: &metav1.Duration{Duration: d}}
}

func TestPhase(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }
	const held, ended = v1alpha1.QuarantineHeld, v1alpha1.QuarantineEnded
	for name, test := range map[string]struct {
		spec   v1alpha1.ReleaseQuarantineSpec
		status v1alpha1.ReleaseQuarantineStatus
		want   v1alpha1.QuarantinePhase
	}{
		"without an end":               {v1alpha1.ReleaseQuarantineSpec{}, v1alpha1.ReleaseQuarantineStatus{}, held},
		"lifted before its end":        {v1alpha1.ReleaseQuarantineSpec{Lifted: true}, v1alpha1.ReleaseQuarantineStatus{Until: at(1)}, ended},
		"over exactly then":            {v1alpha1.ReleaseQuarantineSpec{}, v1alpha1.ReleaseQuarantineStatus{Until: at(0)}, ended},
		"not before":                   {v1alpha1.ReleaseQuarantineSpec{}, v1alpha1.ReleaseQuarantineStatus{Until: at(1)}, held},
		"the time in the spec decides": {v1alpha1.ReleaseQuarantineSpec{Until: at(1)}, v1alpha1.ReleaseQuarantineStatus{Until: at(0)}, held},
		"also if it is earlier":        {v1alpha1.ReleaseQuarantineSpec{Until: at(0)}, v1alpha1.ReleaseQuarantineStatus{Until: at(1)}, ended},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quarantine.Phase(&test.spec, &test.status, noon); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEachFailureBeginsTheTimeAgain(t *testing.T) {
	status := v1alpha1.ReleaseQuarantineStatus{}
	for _, step := range []struct {
		failure v1alpha1.ReleaseFailure
		by      *v1alpha1.RolloutQuarantine
		until   time.Duration
	}{
		{failure("a", 1, noon), nil, 24 * time.Hour},
		{failure("a", 2, noon.Add(time.Hour)), nil, 25 * time.Hour},
		{failure("b", 1, noon.Add(2*time.Hour)), nil, 26 * time.Hour},
		{failure("b", 2, noon.Add(3*time.Hour)), holdFor(time.Hour), 26 * time.Hour}, // never earlier
		{failure("b", 3, noon.Add(4*time.Hour)), holdFor(48 * time.Hour), 52 * time.Hour},
	} {
		next, changed := quarantine.Report(status, step.failure, step.by)
		if !changed || !next.Until.Time.Equal(noon.Add(step.until)) {
			t.Errorf("after %s #%d: %t, until %s", step.failure.Rollout.UID, step.failure.EntryID, changed, next.Until)
		}
		status = next
	}
}

func TestFailureThatIsListedIsNotListedTwice(t *testing.T) {
	status, _ := quarantine.Report(v1alpha1.ReleaseQuarantineStatus{}, failure("a", 1, noon), nil)
	if again, changed := quarantine.Report(status, failure("a", 1, noon.Add(time.Hour)), nil); changed {
		t.Errorf("the same failure: %+v", again)
	}
	retried := failure("a", 1, noon.Add(time.Hour))
	retried.LastRetryTimestamp = &metav1.Time{Time: noon.Add(30 * time.Minute)}
	if again, changed := quarantine.Report(status, retried, nil); !changed || len(again.Failures) != 2 {
		t.Errorf("a retry that failed: %t, %+v", changed, again)
	}
}

func TestNewestTenFailuresAreListed(t *testing.T) {
	status := v1alpha1.ReleaseQuarantineStatus{}
	for id := int64(1); id <= 12; id++ {
		status, _ = quarantine.Report(status, failure("a", id, noon), nil)
	}
	var listed []int64
	for _, f := range status.Failures {
		listed = append(listed, f.EntryID)
	}
	if d := cmp.Diff([]int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3}, listed); d != "" {
		t.Error(d)
	}
	again, _ := quarantine.Report(status, failure("a", 1, noon), nil)
	if !again.Until.Equal(status.Until) {
		t.Errorf("reported once more, it ends at %s after %s", again.Until, status.Until)
	}
}

// The status of a quarantine may be written by hand.
func TestAbsurdTimesAreNoReasonToPanic(t *testing.T) {
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	for name, test := range map[string]struct {
		at, want time.Time
		holdFor  time.Duration
	}{
		"without end":                {noon, noon.Add(math.MaxInt64), math.MaxInt64},
		"a failure at the end":       {last, last, time.Hour},
		"a failure without a time":   {time.Time{}, time.Time{}.Add(time.Hour), time.Hour},
		"a time that has passed":     {noon, noon.Add(-time.Hour), -time.Hour},
		"a failure years in advance": {last.Add(-time.Hour), last, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := quarantine.Report(v1alpha1.ReleaseQuarantineStatus{}, failure("a", 1, test.at), holdFor(test.holdFor))
			if !got.Until.Time.Equal(test.want) {
				t.Errorf("until %s", got.Until)
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
