// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// after returns an Environment with upstreams in other clusters, and here.
func after(elsewhere, here int) *environmentsv1.Environment {
	e := &environmentsv1.Environment{}
	for i := range elsewhere {
		e.Spec.Upstreams = append(e.Spec.Upstreams, environmentsv1.Upstream{
			Environment: fmt.Sprintf("there-%d", i), Cluster: "eu", Repository: "registry.example.com/promotions",
		})
	}
	for i := range here {
		e.Spec.Upstreams = append(e.Spec.Upstreams, environmentsv1.Upstream{Environment: fmt.Sprintf("here-%d", i)})
	}
	return e
}

// largest returns as many releases as a report can have, each as large as it can be.
func largest() []environmentsv1.Release {
	const longest = 256
	long, day := strings.Repeat("<", longest/4), &metav1.Duration{Duration: 9*365*24*time.Hour + 59*time.Minute + 59*time.Second}
	var releases []environmentsv1.Release
	for i := range environment.MostReleases {
		releases = append(releases, environmentsv1.Release{
			Tag: fmt.Sprintf("%s-%d", strings.Repeat("t", 125), environment.MostReleases-i), Digest: "sha512:" + strings.Repeat("0", 128),
			Revision: long, ID: math.MaxInt64, State: v1alpha1.BakeSucceeded, Evidence: environmentsv1.EvidenceApplied, Current: i == 0,
			Message: long, Unhealthy: long, Withdrawn: long, Soaked: day, LongestSoak: day, RenewAfter: day,
			Since: &metav1.Time{Time: noon}, Until: &metav1.Time{Time: noon},
		})
	}
	return releases
}

// However much the reports of upstreams say, the status has room for the newest of it.
func TestStatusHasRoomForTheNewestReleasesOfAllReports(t *testing.T) {
	var talkative []environmentsv1.Release
	for i := range environment.MostReleases {
		talkative = append(talkative, environmentsv1.Release{
			Tag: fmt.Sprintf("1.%d.0", environment.MostReleases-i), State: v1alpha1.BakeFailed, Message: strings.Repeat("m", 250),
		})
	}
	for _, tt := range []struct {
		elsewhere, here int
		releases        []environmentsv1.Release
		want            int
	}{
		{1, 0, talkative, 30}, {1, 3, talkative, 30}, {4, 1, talkative, 30}, {16, 0, talkative, 11},
		{1, 0, largest(), 16}, {4, 0, largest(), 4}, {16, 0, largest(), 1},
	} {
		kept := environment.Kept(after(tt.elsewhere, tt.here), tt.releases)
		if len(kept) != tt.want || len(kept) > 0 && kept[0].Tag != tt.releases[0].Tag {
			t.Errorf("%d in other clusters, %d here: %d releases are kept of each report, want the newest %d", tt.elsewhere, tt.here, len(kept), tt.want)
		}
		text, err := json.Marshal(kept)
		if err != nil || len(text)*tt.elsewhere > 20<<10 {
			t.Errorf("%d in other clusters: %d bytes of each report, error %v", tt.elsewhere, len(text), err)
		}
	}
}

// What makes a release not proven must not be lost when its texts are shortened.
func TestShortTextsSayTheSame(t *testing.T) {
	is, was := environment.Kept(after(16, 0), largest())[0], largest()[0]
	if is.Withdrawn == "" || is.Unhealthy == "" || is.Message == "" {
		t.Errorf("%+v: a text is lost", is)
	}
	is.Withdrawn, is.Unhealthy, is.Message = was.Withdrawn, was.Unhealthy, was.Message
	diff(t, was, is)
	short := largest()[:1]
	short[0].Message, short[0].Unhealthy, short[0].Withdrawn = "short", "", ""
	diff(t, short, environment.Kept(after(1, 0), short))
}

func TestHighestNumberOfEachKeyIsKept(t *testing.T) {
	known := []environmentsv1.KeySequence{{Key: "old", Sequence: 900}, {Key: "new", Sequence: 7}}
	got := environment.Highest(known, []string{"new", "third"}, 8)
	want := []environmentsv1.KeySequence{{Key: "new", Sequence: 8}, {Key: "third", Sequence: 8}, {Key: "old", Sequence: 900}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got = environment.Highest(known, []string{"old"}, 8); got[0].Sequence != 900 {
		t.Errorf("got %v: a number that was verified before is forgotten", got)
	}
	for i := range 20 {
		known = environment.Highest(known, []string{fmt.Sprint(i)}, int64(i))
	}
	if len(known) != 8 || known[0].Key != "19" {
		t.Errorf("got %v, want the 8 keys that signed last", known)
	}
}
