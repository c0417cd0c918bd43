// SPDX-License-Identifier: Apache-2.0

package quarantined_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const image = "registry.example.com/shop"

var (
	noon = fixture.Noon
	one  = noon.Add(time.Hour)
)

type change = func(*quarantined.Quarantine)

// failed returns a quarantine of a digest until one, because it failed somewhere.
func failed(digest string, changes ...change) quarantined.Quarantine {
	q := quarantined.Quarantine{Name: "ReleaseQuarantine bad", Spec: v1alpha1.ReleaseQuarantineSpec{Digest: digest}, Managed: true}
	q.Status.Failures = []v1alpha1.ReleaseFailure{{Rollout: v1alpha1.ReportingRollout{Name: "other", UID: "other"}, EntryID: 7}}
	q.Status.Until = &metav1.Time{Time: one}
	for _, change := range changes {
		change(&q)
	}
	return q
}

// byUser makes it one that a user has created, and that does not end.
func byUser(q *quarantined.Quarantine) {
	q.Status, q.Managed = v1alpha1.ReleaseQuarantineStatus{}, false
}

func recall(q *quarantined.Quarantine) { q.Spec.Enforce = v1alpha1.EnforceAlways }

func tagged(q *quarantined.Quarantine) { q.Spec.Image, q.Spec.Tags = image, []string{"1.2.0"} }

func until(end time.Time) change {
	return func(q *quarantined.Quarantine) { q.Status.Until = &metav1.Time{Time: end} }
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

func all(quarantines ...quarantined.Quarantine) []quarantined.Quarantine { return quarantines }

func TestHoldingHoldsARelease(t *testing.T) {
	const pin = "; pin it to try it all the same, or set spec.lifted of the quarantine"
	known, unknown := fixture.MakeRelease("1.2.0").Digest("sha256:bad").Obj(), fixture.MakeRelease("1.2.0").Obj()
	for name, test := range map[string]struct {
		quarantines []quarantined.Quarantine
		release     v1alpha1.VersionInfo
		now         time.Time
		want        string
		until       time.Time
	}{
		"until its time is over": {
			all(failed("sha256:bad")), known, noon, "1.2.0 is in quarantine by ReleaseQuarantine bad until 2026-03-02T13:00:00Z" + pin, one,
		},
		"not from then on":                                    {all(failed("sha256:bad")), known, one, "", time.Time{}},
		"not before the failure is reported":                  {all(failed("sha256:bad", func(q *quarantined.Quarantine) { q.Status.Failures = nil })), known, noon, "", time.Time{}},
		"not other content":                                   {all(failed("sha256:other")), known, noon, "", time.Time{}},
		"not other content, though under a tag that it names": {all(failed("sha256:other", tagged)), known, noon, "", time.Time{}},
		"not once it is lifted":                               {all(failed("sha256:bad", func(q *quarantined.Quarantine) { q.Spec.Lifted = true })), known, noon, "", time.Time{}},
		"not if it only recalls":                              {all(failed("sha256:bad", recall)), known, noon, "", time.Time{}},
		"by its tag": {
			all(failed("", byUser, tagged)), known, noon, "1.2.0 is in quarantine by ReleaseQuarantine bad" + pin, time.Time{},
		},
		"by its tag, if the digest is not known": {
			all(failed("sha256:bad", byUser, tagged)), unknown, noon,
			"the digest of 1.2.0 is not known, and its tag is in quarantine by ReleaseQuarantine bad" + pin, time.Time{},
		},
		"until the last of several ends": {
			all(failed("sha256:bad"), failed("sha256:bad", until(one.Add(time.Hour)))), known, noon,
			"1.2.0 is in quarantine by ReleaseQuarantine bad until 2026-03-02T14:00:00Z" + pin, one.Add(time.Hour),
		},
		"with its reason, on one line and cut": {
			all(failed("sha256:bad", byUser, func(q *quarantined.Quarantine) {
				q.Spec.Reason = "\x1b[31mleaks\n\tmemory " + strings.Repeat("x", 1000)
			})), known, noon,
			"1.2.0 is in quarantine by ReleaseQuarantine bad: [31mleaks memory " + strings.Repeat("x", 152) + " … " + strings.Repeat("x", 84) + pin, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want *verdict.Hold
			if test.want != "" {
				want = &verdict.Hold{Reason: v1alpha1.QuarantinedReason, Message: test.want, Until: test.until}
			}
			quarantines := quarantined.Quarantines{All: test.quarantines}
			diff(t, want, quarantines.Holding(image, test.now).Held(test.release))
			diff(t, want, quarantines.Indexed(image, test.now).Holding(image, test.now).Held(test.release))
		})
	}
}

func TestHoldingHoldsMoreTheStrongerItIs(t *testing.T) {
	release := fixture.MakeRelease("1.2.0").Digest("sha256:bad").Obj()
	for name, test := range map[string]struct {
		quarantine          quarantined.Quarantine
		held, bad, recalled bool
	}{
		"after a failure": {failed("sha256:bad"), true, false, false},
		"by a user":       {failed("sha256:bad", byUser), true, true, false},
		"as a recall":     {failed("sha256:bad", byUser, recall), false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := quarantined.Quarantines{All: all(test.quarantine)}.Holding(image, noon)
			diff(t, []bool{test.held, test.bad, test.recalled}, []bool{h.Held(release) != nil, h.KnownBad(release) != nil, h.Recalled(release) != nil})
		})
	}
}

func TestAcknowledgeNamesTheQuarantineOfThatFailureOnly(t *testing.T) {
	failure := func(id int64) *fixture.EntryBuilder { return fixture.MakeEntry("1.2.0").ID(id).Failed() }
	for name, test := range map[string]struct {
		entry *fixture.EntryBuilder
		want  string
	}{
		"the failure":                 {failure(7), "bad"},
		"another one":                 {failure(6), ""},
		"one that was tried again":    {failure(7).Retried(noon), ""},
		"one that is being tried now": {failure(7).Deploying(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			history := []v1alpha1.DeploymentHistoryEntry{test.entry.Obj()}
			quarantined.Acknowledge(history, quarantined.Report{Name: "bad", Failure: v1alpha1.ReleaseFailure{EntryID: 7}})
			diff(t, test.want, history[0].Quarantine)
		})
	}
}
