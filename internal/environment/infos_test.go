// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// talkative returns an Environment that says something long of twelve releases.
func talkative(name, message string) *environmentsv1.Environment {
	e := &environmentsv1.Environment{Spec: environmentsv1.EnvironmentSpec{Environment: name}}
	for i := range 12 {
		e.Status.Releases = append(e.Status.Releases, environmentsv1.Release{
			Tag: fmt.Sprintf("1.%d.0", 12-i), ID: int64(12 - i), State: v1alpha1.BakeFailed, Message: message, Since: &metav1.Time{Time: noon},
		})
	}
	return e
}

func TestInfosAreTheEnvironmentsInOrderWithTheirNewestReleases(t *testing.T) {
	for name, tt := range map[string]struct {
		message string
		want    map[string]int // entries of the history
	}{
		"all have room":         {"", map[string]int{"dev": 1, "qa": 10, "load": 10, "prod": 10}},
		"messages are long":     {strings.Repeat("m", 1600), map[string]int{"dev": 1, "qa": 4, "load": 4, "prod": 9}},
		"one has no room":       {strings.Repeat("m", 9000), map[string]int{"dev": 1, "qa": 0, "load": 0, "prod": 1}},
		"no other one has room": {strings.Repeat("m", 17000), map[string]int{"dev": 0, "qa": 0, "load": 0, "prod": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := fixture.MakeRollout("shop").Obj()
			for i := range 11 {
				entry := fixture.MakeEntry(fmt.Sprintf("1.%d.0", 11-i)).ID(int64(11 - i)).Succeeded().Obj()
				entry.BakeStatusMessage = &tt.message
				rollout.Status.History = append(rollout.Status.History, entry)
			}
			infos, digest := environment.Infos(talkative("prod", ""), rollout, environment.Neighbors{
				Upstreams: []*environmentsv1.Environment{talkative("qa", tt.message), talkative("load", tt.message)},
				Further:   []*environmentsv1.Environment{talkative("dev", tt.message)},
			})
			got := map[string]int{}
			var order []string
			for _, info := range infos {
				order, got[info.Environment] = append(order, info.Environment), len(info.History)
			}
			if diff := cmp.Diff([]string{"dev", "qa", "load", "prod"}, order); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			cached := &environmentsv1.Environment{Status: environmentsv1.EnvironmentStatus{EnvironmentInfos: infos}}
			for range 2 { // an object may enter a cache more than once
				environment.DigestInfos(cached)
				if environment.InfosDigest(cached) != digest || cached.Status.EnvironmentInfos != nil {
					t.Error("a cache does not keep the digest instead of the list")
				}
			}
			if text, err := json.Marshal(infos); err != nil || len(text) > 3*16<<10+1<<10 {
				t.Errorf("%d bytes of JSON, want 16 KiB for each kind of neighbor and for itself; error %v", len(text), err)
			}
		})
	}
}
