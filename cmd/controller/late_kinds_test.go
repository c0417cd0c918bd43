// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
)

func TestPlanForLateKinds(t *testing.T) {
	helm := []string{"v2 helm.toolkit.fluxcd.io HelmRelease"}
	older := []string{"v2beta2 helm.toolkit.fluxcd.io HelmRelease"}
	for name, tt := range map[string]struct {
		served  meta.RESTMapper
		may     []string
		want    latePlan
		missing string
	}{
		"they are watched where they are served":                   {served: serving(flux, helm), may: []string{"helmreleases"}, want: lateWatch},
		"they are awaited where they are not":                      {served: serving(flux), may: anything, want: lateAwait},
		"they are awaited where they are served in older versions": {served: serving(flux, older), may: anything, want: lateAwait},
		"they are watched without the right to patch them": {
			served: serving(flux, helm), may: []string{"list helmreleases", "watch helmreleases"}, want: lateWatch,
		},
		"they are left alone without the right to read them": {
			served: serving(flux, helm), may: []string{"list helmreleases", "customresourcedefinitions"},
			want: lateLeave, missing: "watch helmreleases.helm.toolkit.fluxcd.io",
		},
		"they are left alone if their CRD cannot be awaited": {
			served: serving(flux), may: []string{"helmreleases"},
			want: lateLeave, missing: "list customresourcedefinitions.apiextensions.k8s.io",
		},
	} {
		t.Run(name, func(t *testing.T) {
			access := &rights{allowed: tt.may}
			plan, missing, err := cluster{mapper: tt.served, access: access}.plan(t.Context(), helmReleases, "shop")
			if err != nil {
				t.Fatal(err)
			}
			if plan != tt.want || missing != (right{}) && missing.String() != tt.missing || missing == (right{}) && tt.missing != "" {
				t.Errorf("got %s, for want of %q; want %s, %q", plan, missing, tt.want, tt.missing)
			}
			for _, asked := range access.asked {
				scope := map[string]string{"helmreleases": "shop ", "customresourcedefinitions": " " + helmReleases.crd()}[asked.Resource]
				if diff := cmp.Diff(scope, asked.Namespace+" "+asked.Name); diff != "" {
					t.Errorf("the scope of what was asked (-want +got):\n%s", diff)
				}
			}
		})
	}
}
