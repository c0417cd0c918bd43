// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// given returns one Environment with these upstreams.
func given(upstreams ...upstream.Upstream) upstream.Upstreams {
	return upstream.Upstreams{Environments: []upstream.Environment{{Environment: &environmentsv1.Environment{}, Upstreams: upstreams}}}
}

func after(name string, releases ...environmentsv1.Release) upstream.Upstream {
	return upstream.Upstream{
		Upstream: environmentsv1.Upstream{Environment: name, Type: environmentsv1.After}, Releases: releases, Seen: fixture.Noon,
	}
}

func parallel(name string, releases ...environmentsv1.Release) upstream.Upstream {
	u := after(name, releases...)
	u.Type = environmentsv1.Parallel
	return u
}

func there(tag string, state v1alpha1.BakeStatus, changes ...func(*environmentsv1.Release)) environmentsv1.Release {
	r := environmentsv1.Release{Tag: tag, Digest: "sha256:" + tag, State: state}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func proven(tag string, changes ...func(*environmentsv1.Release)) environmentsv1.Release {
	return there(tag, v1alpha1.BakeSucceeded, changes...)
}

func known(tag string) v1alpha1.VersionInfo {
	return fixture.MakeRelease(tag).Digest("sha256:" + tag).Obj()
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

func TestWhatUpstreamsHaveAgainstWhatRuns(t *testing.T) {
	gone := func(r *environmentsv1.Release) { r.Withdrawn = "went back to 1.2.0" }
	current := fixture.MakeEntry("1.3.0").Version(known("1.3.0")).Succeeded().Obj()
	unknown := after("staging")
	unknown.Problem = &verdict.Problem{Message: "it is away"}
	for name, test := range map[string]struct {
		current *v1alpha1.DeploymentHistoryEntry
		there   upstream.Upstream
		want    string
	}{
		"nothing":                     {&current, after("staging", proven("1.3.0")), ""},
		"it never was there":          {&current, after("staging", proven("1.2.0")), ""},
		"it was withdrawn":            {&current, after("staging", proven("1.2.0"), proven("1.3.0", gone)), "1.3.0 no longer counts in staging, which went back to 1.2.0"},
		"in a parallel one, too":      {&current, parallel("eu", proven("1.2.0"), proven("1.3.0", gone)), "1.3.0 no longer counts in eu, which went back to 1.2.0"},
		"it failed there since":       {&current, after("staging", there("1.3.0", v1alpha1.BakeFailed)), "1.3.0 failed in staging"},
		"another image by that tag":   {&current, after("staging", there("1.3.0", v1alpha1.BakeFailed, func(r *environmentsv1.Release) { r.Digest = "sha256:other" })), ""},
		"nothing runs here":           {nil, after("staging", proven("1.3.0", gone)), ""},
		"the upstream cannot be read": {&current, unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if hold := given(test.there).Withdrawn(test.current); hold != nil {
				got = hold.Message
			}
			diff(t, test.want, got)
		})
	}
}

func TestSinceWhenAReleaseIsProven(t *testing.T) {
	noon := fixture.Noon
	at := func(minute int) func(*environmentsv1.Release) {
		return func(r *environmentsv1.Release) {
			r.Since = &metav1.Time{Time: noon.Add(time.Duration(minute) * time.Minute)}
		}
	}
	for name, test := range map[string]struct {
		upstreams []upstream.Upstream
		want      time.Time
	}{
		"no upstream":         {nil, time.Time{}},
		"the last one counts": {[]upstream.Upstream{after("a", proven("1.4.0", at(1))), after("b", proven("1.4.0", at(5))), parallel("c", proven("1.4.0", at(9)))}, noon.Add(5 * time.Minute)},
		"not in each":         {[]upstream.Upstream{after("a", proven("1.4.0", at(1))), after("b", there("1.4.0", v1alpha1.BakeInProgress, at(5)))}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, given(test.upstreams...).ProvenSince(known("1.4.0")))
		})
	}
}
