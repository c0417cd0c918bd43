// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// However much the reports of upstreams say, the status has room for the newest of it.
func TestStatusHasRoomForTheNewestReleasesOfAllReports(t *testing.T) {
	var releases []environmentsv1.Release
	for i := range environment.MostReleases {
		releases = append(releases, environmentsv1.Release{
			Tag: fmt.Sprintf("1.%d.0", environment.MostReleases-i), State: v1alpha1.BakeFailed, Message: strings.Repeat("m", 900),
		})
	}
	for _, tt := range []struct{ elsewhere, here, want int }{
		{1, 0, 12}, {1, 3, 12}, {2, 0, 6}, {4, 1, 3}, {16, 0, 0},
	} {
		e := &environmentsv1.Environment{}
		for i := range tt.elsewhere {
			e.Spec.Upstreams = append(e.Spec.Upstreams, environmentsv1.Upstream{
				Environment: fmt.Sprintf("there-%d", i), Cluster: "eu", Repository: "registry.example.com/promotions",
			})
		}
		for i := range tt.here {
			e.Spec.Upstreams = append(e.Spec.Upstreams, environmentsv1.Upstream{Environment: fmt.Sprintf("here-%d", i)})
		}
		kept := environment.Kept(e, releases)
		if len(kept) != tt.want || len(kept) > 0 && kept[0].Tag != "1.30.0" {
			t.Errorf("%d in other clusters, %d here: %d releases are kept of each report, want the newest %d", tt.elsewhere, tt.here, len(kept), tt.want)
		}
		text, err := json.Marshal(kept)
		if err != nil || len(text)*tt.elsewhere > 12<<10 {
			t.Errorf("%d in other clusters: %d bytes of each report, error %v", tt.elsewhere, len(text), err)
		}
	}
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
