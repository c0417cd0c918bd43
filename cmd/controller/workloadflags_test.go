// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// effect is the result of flags and environment.
type effect struct {
	Controllers string
	Namespaces  []string
	Lease       string
	LeaseIn     string
	Metrics     string
	Secure      bool
	Ready       bool
	Webhooks    bool
	CertDir     string
	Log         string
	Eviction    bool
}

func effectOf(o *options) effect {
	m := o.manager(nil)
	return effect{
		Controllers: o.controllers.String(), Namespaces: slices.Sorted(maps.Keys(m.Cache.DefaultNamespaces)),
		Lease: m.LeaderElectionID, LeaseIn: m.LeaderElectionNamespace,
		Metrics: m.Metrics.BindAddress, Secure: m.Metrics.SecureServing, Ready: o.servesReady,
		Webhooks: o.webhooks, CertDir: o.webhookCertPath, Log: o.log.LogLevel + " " + o.log.LogEncoding, Eviction: o.useEviction,
	}
}

func TestFlagsOfTheFirstCoordinatorsMeanWhatTheyMeant(t *testing.T) {
	plain := effect{
		Controllers: "*", Lease: "8108ddc4.kuberik.com", LeaseIn: "system", Metrics: "0", Secure: true, Webhooks: true, Log: "info json",
	}
	for name, tt := range map[string]struct {
		args    []string
		env     map[string]string
		changed func(*effect)
	}{
		"none": {},
		"those of Deployments": {
			args: []string{"--controllers=deploymentcoordination", "--metrics-bind-address=:7712", "--health-probe-bind-address=:7713", "--leader-elect",
				"--leader-election-id=kube-deployment-coordinator.containerinfra.nl", "--metrics-secure=false", "--webhook-cert-dir=/certs"},
			changed: func(e *effect) {
				e.Controllers, e.Lease = "deploymentcoordination", "kube-deployment-coordinator.containerinfra.nl"
				e.Metrics, e.Secure, e.CertDir = ":7712", false, "/certs"
			},
		},
		"no webhook":                     {env: map[string]string{"ENABLE_WEBHOOKS": "false"}, changed: func(e *effect) { e.Webhooks = false }},
		"any other word leaves it":       {env: map[string]string{"ENABLE_WEBHOOKS": "no"}},
		"both names of the certificates": {args: []string{"--webhook-cert-path=/c", "--webhook-cert-dir=/c"}, changed: func(e *effect) { e.CertDir = "/c" }},
		"those of StatefulSets": {
			args: []string{"-kubernetes.namespace=loki", "-reconcile.interval=10s", "-log.level=warn", "-log.format=logfmt"},
			changed: func(e *effect) {
				e.Controllers, e.Namespaces = "statefulsetrollout", []string{"loki"}
				e.Metrics, e.Secure, e.Ready, e.Log = ":8001", false, true, "error console"
			},
		},
		"with two dashes, and another port": {
			args: []string{"--kubernetes.namespace=loki", "--server.port=9001", "--log.level=debug", "--use-eviction"},
			changed: func(e *effect) {
				e.Controllers, e.Namespaces = "statefulsetrollout", []string{"loki"}
				e.Metrics, e.Secure, e.Ready, e.Log, e.Eviction = ":9001", false, true, "debug json", true
			},
		},
		"a port alone": {
			args: []string{"-server.port=9001"}, changed: func(e *effect) { e.Metrics, e.Secure, e.Ready = ":9001", false, true },
		},
		"a namespace and more controllers": {
			args:    []string{"-kubernetes.namespace=loki", "--controllers=*", "--metrics-bind-address=:8443"},
			changed: func(e *effect) { e.Namespaces, e.Metrics = []string{"loki"}, ":8443" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			o, _, err := parse(t, "system", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			want := plain
			if tt.changed != nil {
				tt.changed(&want)
			}
			if diff := cmp.Diff(want, effectOf(o)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

// Outside of a pod, nothing else defines the controller's own namespace.
func TestOnlyNamespaceIsTheOwnOneIfThatIsUnknown(t *testing.T) {
	o, _, err := parse(t, "", "-kubernetes.namespace=loki")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.manager(nil).LeaderElectionNamespace; got != "loki" {
		t.Errorf("the Lease is in %q", got)
	}
}

func TestFlagsOfTheFirstCoordinatorsThatContradictOthersAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"two folders":           {[]string{"--webhook-cert-dir=/a", "--webhook-cert-path=/b"}, "--webhook-cert-dir=/a contradicts --webhook-cert-path=/b"},
		"two levels":            {[]string{"-log.level=warn", "--log-level=debug"}, "--log.level=warn contradicts --log-level=debug"},
		"a level that is none":  {[]string{"-log.level=loud"}, "--log-level=loud is none of"},
		"a format that is none": {[]string{"-log.format=xml"}, "--log-encoding=xml is none of"},
		"two loggers":           {[]string{"-log.level=debug", "--zap-devel"}, "both say how to log"},
		"two ports":             {[]string{"-server.port=8001", "--metrics-bind-address=:8443"}, "-server.port=8001 contradicts --metrics-bind-address=:8443"},
		"plain and not":         {[]string{"-server.port=8001", "--metrics-secure"}, "-server.port=8001 serves plain HTTP"},
		"one namespace and all": {[]string{"-kubernetes.namespace=loki", "--watch-all-namespaces"}, "-kubernetes.namespace=loki contradicts --watch-all-namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parse(t, "system", tt.args...); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want it to say %q", err, tt.says)
			}
		})
	}
}
