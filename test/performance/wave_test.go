// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestWaveIsTimedFromTheFirstPolicyToTheLastTarget(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	w := newWave(release{tag: "1"}, 7, 8)
	w.named[0], w.named[1] = at(12), at(10)
	w.note(7, repositoryWritten, at(13))
	w.note(7, kustomizationWritten, at(17))
	w.note(8, repositoryWritten, at(15))
	w.note(8, kustomizationWritten, at(14))
	w.note(8, kustomizationWritten, at(99)) // again, by another event
	w.note(6, kustomizationWritten, at(99)) // not of this wave
	w.note(7, succeeded, at(18))
	if w.missing[succeeded] != 1 || w.missing[kustomizationWritten] != 0 {
		t.Errorf("missing are %v", w.missing)
	}
	w.note(8, succeeded, at(20))
	got := []time.Duration{w.targets(), w.all(), w.latencies()[0], w.latencies()[1]}
	want := []time.Duration{7 * time.Second, 10 * time.Second, 5 * time.Second, 5 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestPercentilesAndMedians(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	got := []float64{float64(percentile(all, 50)), float64(percentile(all, 99)), median([]float64{3, 1, 2}), median([]float64{1, 2, 3, 10})}
	if diff := cmp.Diff([]float64{50, 99, 2, 2.5}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// All repeated statuses of a prompt Rollout are counted. One of a slow Rollout is not
// counted, and neither is a second one if the metadata of the release has come.
func TestSlowPromotionsMaySayThatTheyWait(t *testing.T) {
	bare, resolved := fixture.MakeRelease("1").Obj(), fixture.MakeRelease("1").Digest("sha256:1").Obj()
	for name, tc := range map[string]struct {
		said []v1alpha1.VersionInfo
		want int
	}{
		"for its HealthCheck":           {[]v1alpha1.VersionInfo{bare, bare, bare}, 1},
		"and what the registry says":    {[]v1alpha1.VersionInfo{bare, resolved, resolved}, 2},
		"but say nothing a third time":  {[]v1alpha1.VersionInfo{bare, resolved, resolved, resolved}, 2},
		"or only what the registry has": {[]v1alpha1.VersionInfo{bare, resolved}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, noon := newWave(release{tag: "1"}, 7, 8), time.Unix(0, 0)
			w.named[0], w.named[1] = noon, noon
			for _, i := range []int{7, 8} {
				for _, version := range tc.said {
					deploying := fixture.MakeEntry("1").Version(version).Deploying().Obj()
					w.hears(i, &deploying)
				}
				ended := fixture.MakeEntry("1").Succeeded().Obj()
				w.hears(i, &ended)
			}
			w.note(7, succeeded, noon.Add(promotion.Patience-time.Second))
			w.note(8, succeeded, noon.Add(promotion.Patience-time.Second/2))
			if late := w.late(); late != tc.want {
				t.Errorf("%d statuses are not counted, want %d of the slow Rollout", late, tc.want)
			}
		})
	}
}
