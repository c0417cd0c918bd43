// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

func TestScopeOfQuarantines(t *testing.T) {
	for args, want := range map[string]quarantine.Scope{
		"": quarantine.ScopeNamespace,
		"--quarantine-scope=Namespace --no-cross-namespace-refs --watch-all-namespaces=false": quarantine.ScopeNamespace,
		"--quarantine-scope=Cluster":                              quarantine.ScopeCluster,
		"--quarantine-scope=Namespace --quarantine-scope=Cluster": quarantine.ScopeCluster,
	} {
		o, flags, err := parse(t, "apps", strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if o.quarantineScope != want {
			t.Errorf("%s: the scope is %s, want %s", args, o.quarantineScope, want)
		}
		if f := flags.Lookup("quarantine-scope"); f.DefValue != "Namespace" {
			t.Errorf("the default is shown as %q", f.DefValue)
		}
	}
}

func TestScopeOfQuarantinesThatCannotBeMeantIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"with the lockdown of references": {
			[]string{"--quarantine-scope=Cluster", "--no-cross-namespace-refs"},
			"--quarantine-scope=Cluster lets ReleaseQuarantines of other namespaces count, which --no-cross-namespace-refs forbids: leave one of them out",
		},
		"in one namespace": {
			[]string{"--quarantine-scope=Cluster", "--watch-all-namespaces=false"},
			"--quarantine-scope=Cluster needs --watch-all-namespaces: an instance that watches one namespace does not see ReleaseQuarantines of others",
		},
		"in one namespace, by the flag of others": {
			[]string{"--quarantine-scope=Cluster", "--controllers=*", "-kubernetes.namespace=shop"},
			"--quarantine-scope=Cluster needs --watch-all-namespaces",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parse(t, "apps", tt.args...); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want it to say %q", err, tt.says)
			}
		})
	}
}

func TestScopeOfQuarantinesIsOneOfTwo(t *testing.T) {
	var scope quarantine.Scope
	for _, value := range []string{"", "namespace", "All"} {
		if err := scope.Set(value); err == nil || err.Error() != "it is Namespace or Cluster" {
			t.Errorf("%q: the error is %v", value, err)
		}
	}
}

// planOfQuarantines is what Rollouts do with quarantines.
type planOfQuarantines struct {
	Watch, ReadOnly bool
	Lacks           string
}

func TestRolloutsObeyQuarantinesThatTheyMayReadAndReportToThoseThatTheyMayWrite(t *testing.T) {
	read := []string{"list releasequarantines", "watch releasequarantines", "list clusterreleasequarantines", "watch clusterreleasequarantines"}
	for name, tt := range map[string]struct {
		served [][]string
		may    []string
		want   planOfQuarantines
	}{
		"with the CRDs and the role of this version": {
			[][]string{recalls}, append(read, "get releasequarantines", "create releasequarantines", "patch releasequarantines/status"),
			planOfQuarantines{Watch: true},
		},
		"without the CRDs":     {nil, anything, planOfQuarantines{}},
		"with one of the CRDs": {[][]string{{"v1alpha1 kuberik.com ClusterReleaseQuarantine"}}, anything, planOfQuarantines{}},
		"with the CRDs and an older role": {
			[][]string{recalls}, nil, planOfQuarantines{Lacks: "list releasequarantines.kuberik.com"},
		},
		"without the right to read recalls": {
			[][]string{recalls}, []string{" releasequarantines"}, planOfQuarantines{Lacks: "list clusterreleasequarantines.kuberik.com"},
		},
		"without any right to write": {
			[][]string{recalls}, read, planOfQuarantines{Watch: true, ReadOnly: true, Lacks: "get releasequarantines.kuberik.com"},
		},
		"without the right to write the status": {
			[][]string{recalls}, append(read, "get releasequarantines", "create releasequarantines"),
			planOfQuarantines{Watch: true, ReadOnly: true, Lacks: "patch releasequarantines.kuberik.com/status"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster{mapper: serving(tt.served...), access: &rights{allowed: tt.may}}
			plan, missing, err := c.planQuarantines(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			got := planOfQuarantines{Watch: plan != leaveQuarantines, ReadOnly: plan == obeyQuarantines}
			if missing.verb != "" {
				got.Lacks = missing.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsToQuarantinesAreAskedForWhereTheyMustBe(t *testing.T) {
	account := &rights{allowed: anything}
	c := cluster{mapper: serving(recalls), access: account}
	if _, _, err := c.planQuarantines(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for _, asked := range account.asked {
		if want := map[string]string{quarantines: "shop", clusterQuarantines: ""}[asked.Resource]; asked.Namespace != want {
			t.Errorf("asked for %+v, want it in namespace %q", asked, want)
		}
	}
}
