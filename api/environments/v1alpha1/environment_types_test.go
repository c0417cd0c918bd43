// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func TestUpstreamsOfAnEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		spec environmentsv1.EnvironmentSpec
		want []environmentsv1.Upstream
	}{
		"none": {want: []environmentsv1.Upstream{}},
		"a relationship is exactly one": {
			environmentsv1.EnvironmentSpec{Relationship: &environmentsv1.Relationship{Environment: "eu", Type: environmentsv1.Parallel}},
			[]environmentsv1.Upstream{{Environment: "eu", Type: environmentsv1.Parallel, Namespace: "shop-prod", Rollout: "shop"}},
		},
		"by its name alone": {
			environmentsv1.EnvironmentSpec{Upstreams: []environmentsv1.Upstream{{Environment: "staging"}}},
			[]environmentsv1.Upstream{{Environment: "staging", Type: environmentsv1.After, Namespace: "shop-prod", Rollout: "shop"}},
		},
		"with everything": {
			environmentsv1.EnvironmentSpec{Upstreams: []environmentsv1.Upstream{
				{Environment: "staging", Type: environmentsv1.After, Namespace: "shop-staging", Rollout: "store"}, {Environment: "eu", Type: environmentsv1.Parallel},
			}},
			[]environmentsv1.Upstream{
				{Environment: "staging", Type: environmentsv1.After, Namespace: "shop-staging", Rollout: "store"},
				{Environment: "eu", Type: environmentsv1.Parallel, Namespace: "shop-prod", Rollout: "shop"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.spec.RolloutRef = v1alpha1.LocalObjectReference{Name: "shop"}
			e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod"}, Spec: tt.spec}
			before := e.DeepCopy()
			if diff := cmp.Diff(tt.want, e.GetUpstreams()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, e); diff != "" {
				t.Errorf("it has changed the Environment (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRequeueIntervalHasADefaultAndALeast(t *testing.T) {
	for _, tt := range []struct {
		given *metav1.Duration
		want  time.Duration
	}{
		{nil, time.Minute},
		{&metav1.Duration{Duration: time.Millisecond}, 10 * time.Second},
		{&metav1.Duration{Duration: 90 * time.Second}, 90 * time.Second},
	} {
		e := &environmentsv1.Environment{Spec: environmentsv1.EnvironmentSpec{RequeueInterval: tt.given}}
		if got := e.GetRequeueInterval(); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.given, got, tt.want)
		}
	}
}
