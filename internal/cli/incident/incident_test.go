// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/incident"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var (
	bad, good = fixture.DigestOf("bad"), fixture.DigestOf("good")
	now       = fixture.Noon
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func with(tag, digest string) v1alpha1.VersionInfo {
	return v1alpha1.VersionInfo{Tag: tag, Digest: &digest}
}

// failedAt is an entry of the bad content.
func failedAt(tag string, promoted, failed time.Duration) *fixture.EntryBuilder {
	return fixture.MakeEntry(tag).Version(with(tag, bad)).At(ago(promoted)).Failed().Because("smoke: 502").BakeEnd(ago(failed))
}

func goodAt(at time.Duration) *fixture.EntryBuilder {
	return fixture.MakeEntry("1.0.0").Version(with("1.0.0", good)).At(ago(at)).Succeeded()
}

func rollout(name string, history ...*fixture.EntryBuilder) v1alpha1.Rollout {
	return *fixture.MakeRollout(name).History(history...).Obj()
}

// lines are the lanes as text.
func lines(f incident.Facts) []string {
	var all []string
	lanes, omitted := incident.Of(f, now)
	for _, l := range lanes {
		all = append(all, strings.Join(l.Versions, ",")+" lasts: "+fmt.Sprint(l.Lasts))
		for _, e := range l.Events {
			line := fmt.Sprintf("  %s %s %s/%s from -%s", e.Kind, e.Object, e.Namespace, e.Name, now.Sub(e.From.Time))
			if e.To != nil {
				line += fmt.Sprintf(" to -%s", now.Sub(e.To.Time))
			}
			for _, word := range []string{e.Version, e.Why, e.By} {
				if word != "" {
					line += "; " + word
				}
			}
			all = append(all, line)
		}
	}
	if omitted > 0 {
		all = append(all, fmt.Sprintf("%d more", omitted))
	}
	return all
}

func TestIncidentsOfTheLastDayByContent(t *testing.T) {
	ended, until := metav1.NewTime(ago(time.Hour)), metav1.NewTime(now.Add(20*time.Hour))
	quarantined := func(name string, since time.Duration, status v1alpha1.ReleaseQuarantineStatus) v1alpha1.ReleaseQuarantine {
		q := v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(ago(since))}, Status: status}
		q.Spec.Digest, q.Spec.Tags, q.Spec.Until = bad, []string{"2.0.0"}, status.Until
		return q
	}
	for name, tt := range map[string]struct {
		facts incident.Facts
		want  []string
	}{
		"nothing": {incident.Facts{Rollouts: []v1alpha1.Rollout{rollout("a", goodAt(time.Hour))}}, nil},
		"one content fails in two places, under two tags": {
			incident.Facts{Rollouts: []v1alpha1.Rollout{
				rollout("a", failedAt("2.0.0", 3*time.Hour, 2*time.Hour), goodAt(50*time.Hour)),
				rollout("b", failedAt("2.0.0-eu", 5*time.Hour, 4*time.Hour), goodAt(50*time.Hour)),
			}},
			[]string{
				"2.0.0,2.0.0-eu lasts: true", "  Failed Rollout shop-prod/b from -4h0m0s; smoke: 502", "  Failed Rollout shop-prod/a from -2h0m0s; smoke: 502",
			},
		},
		"a rollback belongs to what was left": {
			incident.Facts{Rollouts: []v1alpha1.Rollout{
				rollout("a", goodAt(time.Hour).Back("2.0.0", 2, 1), failedAt("2.0.0", 3*time.Hour, 2*time.Hour), goodAt(50*time.Hour)),
			}},
			[]string{
				"2.0.0 lasts: false", "  Failed Rollout shop-prod/a from -2h0m0s to -1h0m0s; smoke: 502",
				"  WentBack Rollout shop-prod/a from -1h0m0s to -1h0m0s; 1.0.0; rolled back from 2.0.0",
			},
		},
		"a user goes back from what did not fail": {
			incident.Facts{Rollouts: []v1alpha1.Rollout{rollout("a",
				goodAt(time.Hour).Grounds(v1alpha1.GroundsPinned).Message("it is slow").By(v1alpha1.TriggeredByUser, "alice"),
				fixture.MakeEntry("2.0.0").Version(with("2.0.0", bad)).At(ago(2*time.Hour)).Succeeded(), goodAt(50*time.Hour))}},
			[]string{"2.0.0 lasts: false", "  WentBack Rollout shop-prod/a from -1h0m0s to -1h0m0s; 1.0.0; it is slow; alice"},
		},
		"what was over a day ago is none, and what still runs is one": {
			incident.Facts{Rollouts: []v1alpha1.Rollout{
				rollout("a", goodAt(25*time.Hour), failedAt("2.0.0", 30*time.Hour, 29*time.Hour)),
				rollout("b", failedAt("2.0.0", 30*time.Hour, 29*time.Hour)),
			}},
			[]string{"2.0.0 lasts: true", "  Failed Rollout shop-prod/b from -29h0m0s; smoke: 502"},
		},
		"quarantines": {
			incident.Facts{Quarantines: []v1alpha1.ReleaseQuarantine{
				quarantined("lasts", 3*time.Hour, v1alpha1.ReleaseQuarantineStatus{Until: &until}),
				quarantined("over", 90*time.Hour, v1alpha1.ReleaseQuarantineStatus{Until: &ended, EndedAt: &ended}),
				quarantined("old", 90*time.Hour, v1alpha1.ReleaseQuarantineStatus{}),
			}},
			[]string{"2.0.0 lasts: true", "  Quarantined ReleaseQuarantine shop/over from -90h0m0s to -1h0m0s", "  Quarantined ReleaseQuarantine shop/lasts from -3h0m0s"},
		},
		"without a digest, a tag is that of an image": {
			incident.Facts{Rollouts: []v1alpha1.Rollout{
				rollout("a", fixture.MakeEntry("3.0.0").At(ago(time.Hour)).Failed()), rollout("b", fixture.MakeEntry("3.0.0").At(ago(2*time.Hour)).Failed()),
			}},
			[]string{"3.0.0 lasts: true", "  Failed Rollout shop-prod/a from -1h0m0s", "3.0.0 lasts: true", "  Failed Rollout shop-prod/b from -2h0m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(tt.facts)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A bad release on every Rollout is one lane that can still be read.
func TestManyIncidentsAreCut(t *testing.T) {
	var all []v1alpha1.Rollout
	for i := range 300 {
		all = append(all, rollout(fmt.Sprintf("a-%03d", i), failedAt("2.0.0", 3*time.Hour, 2*time.Hour)),
			rollout(fmt.Sprintf("b-%03d", i), fixture.MakeEntry(fmt.Sprintf("3.0.%d", i)).At(ago(time.Hour)).Failed()))
	}
	lanes, omitted := incident.Of(incident.Facts{Rollouts: all}, now)
	if len(lanes) != 100 || omitted != 201 {
		t.Errorf("%d lanes, %d omitted", len(lanes), omitted)
	}
	lanes, _ = incident.Of(incident.Facts{Rollouts: all[: 2*60 : 2*60]}, now)
	for _, l := range lanes {
		if l.Digest == bad && (len(l.Events) != 50 || l.Omitted != 10) {
			t.Errorf("%d events, %d omitted", len(l.Events), l.Omitted)
		}
	}
}
