// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// The controller does not import the package, which has all definitions in it.
func TestLeaseIsTheOneThatTheCommandLineLooksFor(t *testing.T) {
	if leaseName != installation.Lease {
		t.Errorf("the controller holds Lease %s, and the command line looks for %s", leaseName, installation.Lease)
	}
}

// parse parses a command line, with an environment that sets a namespace.
func parse(t *testing.T, namespace string, args ...string) (*options, *flag.FlagSet, error) {
	t.Helper()
	t.Setenv(runtimeNamespace, namespace)
	o, flags := &options{}, flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := mergeFlags(flags); err != nil {
		return o, flags, err
	}
	if _, err := o.logger(flags); err != nil {
		return o, flags, err
	}
	return o, flags, o.complete(flags)
}

func TestDefaultsOfFlags(t *testing.T) {
	o, _, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	manager := o.manager(nil)
	got := []any{
		manager.Metrics.BindAddress, manager.Metrics.SecureServing, manager.HealthProbeBindAddress,
		manager.LeaderElection, manager.LeaderElectionID, len(manager.Cache.DefaultNamespaces), o.concurrent, o.apiQPS,
	}
	want := []any{"0", true, ":8081", false, "8108ddc4.kuberik.com", 0, 10, 0.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the defaults have changed (-want +got):\n%s", diff)
	}
}

// TestOwnLoginsAreOffForTenants: who separates tenants does not expect that they log in as
// the controller.
func TestOwnLoginsAreOffForTenants(t *testing.T) {
	for args, want := range map[string]bool{
		"":                                false,
		"--no-own-registry-credentials":   true,
		"--no-cross-namespace-refs":       true,
		"--no-cross-namespace-refs=false": false,
		"--no-cross-namespace-refs --no-own-registry-credentials=false": false,
		"--no-own-registry-credentials=false --no-cross-namespace-refs": false,
		"--no-cross-namespace-refs --no-own-registry-credentials":       true,
	} {
		o, _, err := parse(t, "", strings.Fields(args)...)
		if err != nil || o.noOwnLogin != want {
			t.Errorf("%q: own logins are off: %v, want %v (%v)", args, o.noOwnLogin, want, err)
		}
	}
}

func TestFlagHasTheSameEffectByEachOfItsNames(t *testing.T) {
	for _, args := range [][]string{
		{"--metrics-addr=:8080", "--health-addr=:9440", "--enable-leader-election"},
		{"--metrics-bind-address=:8080", "--health-probe-bind-address=:9440", "--leader-elect"},
		{"--metrics-addr=:8080", "--metrics-bind-address=:8080", "--health-addr=:9440", "--leader-elect", "--enable-leader-election=true"},
	} {
		o, _, err := parse(t, "", args...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		manager := o.manager(nil)
		got := []any{manager.Metrics.BindAddress, manager.HealthProbeBindAddress, manager.LeaderElection}
		if diff := cmp.Diff([]any{":8080", ":9440", true}, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
}

func TestFlagsThatCannotAllBeMeantAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says []string
	}{
		"two addresses": {
			[]string{"--metrics-addr=:8080", "--metrics-bind-address=:8443"},
			[]string{"--metrics-addr=:8080 contradicts --metrics-bind-address=:8443"},
		},
		"led and not led": {
			[]string{"--leader-elect", "--enable-leader-election=false"},
			[]string{"--enable-leader-election=false contradicts --leader-elect=true"},
		},
		"two ways to log":          {[]string{"--log-level=debug", "--zap-encoder=json"}, []string{"--log-level", "--zap-encoder"}},
		"a level that is none":     {[]string{"--log-level=loud"}, []string{"--log-level=loud is none of trace, debug, info, error"}},
		"an encoding that is none": {[]string{"--log-encoding=xml"}, []string{"--log-encoding=xml is none of json, console"}},
		"a feature that is none":   {[]string{"--feature-gates=Nonsense=true"}, []string{"--feature-gates", "Nonsense"}},
		"a selector that is none":  {[]string{"--watch-label-selector=a in"}, []string{"--watch-label-selector"}},
		"approvals kept for less":  {[]string{"--approval-retention=-1h"}, []string{"--approval-retention=-1h0m0s: it must be longer than 0"}},
		"an unknown own namespace": {[]string{"--watch-all-namespaces=false"}, []string{"--watch-all-namespaces", "RUNTIME_NAMESPACE"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(t, "", tt.args...)
			for _, words := range tt.says {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("the error is %v, want it to say %q", err, words)
				}
			}
		})
	}
}

func TestEachSelectorHasALeaseOfItsOwn(t *testing.T) {
	leases := map[string]string{}
	for _, selector := range []string{"", "sharding.fluxcd.io/key=shard1", "sharding.fluxcd.io/key=shard2", "!sharding.fluxcd.io/key"} {
		o, _, err := parse(t, "", "--watch-label-selector="+selector)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := leases[o.lease()]; taken {
			t.Errorf("%q and %q share the Lease %s", selector, other, o.lease())
		}
		leases[o.lease()] = selector
	}
	if leases["8108ddc4.kuberik.com"] != "" {
		t.Errorf("without a selector the Lease is not that of the contract: %v", leases)
	}
	same, _, err := parse(t, "", "--watch-label-selector=sharding.fluxcd.io/key = shard1")
	if err != nil || leases[same.lease()] != "sharding.fluxcd.io/key=shard1" {
		t.Errorf("the same selector in other words has another Lease: %s, %v", same.lease(), err)
	}
}

func TestRuntimeNamespaceSaysWhereTheLeaseIsAndWhatIsWatched(t *testing.T) {
	for name, tt := range map[string]struct {
		args     []string
		lease    string
		watched  []string
		selected string // of the objects of the kind Namespace
	}{
		"by itself":        {nil, "apps", nil, ""},
		"only it":          {[]string{"--watch-all-namespaces=false"}, "apps", []string{"apps"}, "metadata.name=apps"},
		"a flag says more": {[]string{"--leader-election-namespace=locks"}, "locks", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := parse(t, "apps", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			var watched []string
			for namespace := range o.manager(nil).Cache.DefaultNamespaces {
				watched = append(watched, namespace)
			}
			selected := ""
			for object, by := range o.manager(nil).Cache.ByObject {
				if _, is := object.(*corev1.Namespace); is {
					selected = by.Field.String()
				}
			}
			want, got := []any{tt.lease, tt.watched, tt.selected}, []any{o.manager(nil).LeaderElectionNamespace, watched, selected}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Lease, watched namespaces, and Namespaces selected (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTenantsHaveTheirMemory: without tenants, a fleet may be in one namespace.
func TestTenantsHaveTheirMemory(t *testing.T) {
	for args, want := range map[string]memory{
		"": 0, "--no-cross-namespace-refs": 8 << 20, "--no-cross-namespace-refs --namespace-memory=0": 0,
		"--namespace-memory=16Mi": 16 << 20, "--no-cross-namespace-refs --namespace-memory=1M": 1_000_000,
	} {
		o, _, err := parse(t, "", strings.Fields(args)...)
		if err != nil || o.namespaceMemory != want {
			t.Errorf("%q: %v, %v, want %v", args, &o.namespaceMemory, err, &want)
		}
	}
	for _, wrong := range []string{"much", "-1Mi", "4Gi"} {
		if new(memory).Set(wrong) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
