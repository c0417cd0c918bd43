// SPDX-License-Identifier: Apache-2.0

package installation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

func deployment(image string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "main"}}
	d.Spec.Template.Labels = installation.PodLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "proxy:v9"}, {Name: "manager", Image: image, Args: args}}
	return d
}

func TestInstanceOf(t *testing.T) {
	of := func(d *appsv1.Deployment) string {
		i, ok := installation.InstanceOf(d)
		if !ok {
			return "none"
		}
		return i.Namespace + "/" + i.Name + " " + i.Version
	}
	labelled := deployment("registry.example.com:5000/controller@sha256:a11b")
	labelled.Labels = map[string]string{installation.VersionLabel: "v0.3.0"}
	other := deployment("controller:v1")
	other.Spec.Template.Labels = map[string]string{installation.NameLabel: "rollout-controller"}
	foreign := deployment("controller:v1")
	foreign.Spec.Template.Spec.Containers[1].Name = "other"
	for name, tt := range map[string]struct {
		is   *appsv1.Deployment
		want string
	}{
		"the tag is the version":                    {deployment("controller:v0.3.1"), "system/main v0.3.1"},
		"a digest after the tag":                    {deployment("controller:v0.3.1@sha256:a11b"), "system/main v0.3.1"},
		"a port is no tag":                          {deployment("registry.example.com:5000/controller"), "system/main registry.example.com:5000/controller"},
		"without a tag, the chart says it":          {labelled, "system/main v0.3.0"},
		"pods with other labels are something else": {other, "none"},
		"a pod without the container, too":          {foreign, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := of(tt.is); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInstanceActsForWhatItsFlagsSelect(t *testing.T) {
	const key = "sharding.fluxcd.io/key"
	rollouts := []struct {
		namespace string
		labels    labels.Set
	}{{"shop", nil}, {"shop", labels.Set{key: "one"}}, {"system", nil}}
	for name, tt := range map[string]struct {
		args []string
		// acts are the answers for the Rollouts above.
		acts  []bool
		lease string
	}{
		"everything":                         {nil, []bool{true, true, true}, "8108ddc4.kuberik.com"},
		"what has no shard":                  {[]string{"--watch-label-selector=!" + key}, []bool{true, false, true}, "8108ddc4.kuberik.com-42da7484"},
		"one shard":                          {[]string{"-watch-label-selector", key + "=one"}, []bool{false, true, false}, "8108ddc4.kuberik.com-3bbc7129"},
		"a selector that cannot be parsed":   {[]string{"--watch-label-selector=a=(b"}, []bool{false, false, false}, "8108ddc4.kuberik.com-e3b0c442"},
		"its namespace":                      {[]string{"--watch-all-namespaces=false"}, []bool{false, false, true}, "8108ddc4.kuberik.com"},
		"Deployments alone":                  {[]string{"--controllers=deploymentcoordination"}, []bool{false, false, false}, "8108ddc4.kuberik.com"},
		"Deployments, and Rollouts":          {[]string{"--controllers=*,deploymentcoordination"}, []bool{true, true, true}, "8108ddc4.kuberik.com"},
		"everything except Rollouts":         {[]string{"--controllers=*,-rollout"}, []bool{false, false, false}, "8108ddc4.kuberik.com"},
		"a flag without a value before that": {[]string{"--leader-elect", "--watch-label-selector", key}, []bool{false, true, false}, "8108ddc4.kuberik.com-c6a5e4ff"},
	} {
		t.Run(name, func(t *testing.T) {
			i, ok := installation.InstanceOf(deployment("controller:v1", tt.args...))
			if !ok {
				t.Fatal("it is no instance")
			}
			var acts []bool
			for _, r := range rollouts {
				acts = append(acts, i.ActsFor(r.namespace, r.labels))
			}
			if diff := cmp.Diff(tt.acts, acts); diff != "" {
				t.Errorf("it acts (-want +got):\n%s", diff)
			}
			if got := i.LeaseName(); got != tt.lease {
				t.Errorf("its Lease is %q, want %q", got, tt.lease)
			}
		})
	}
}

func TestInstanceActsForEnvironments(t *testing.T) {
	for args, want := range map[string]bool{
		"": true, "--controllers=*": true, "--controllers=*,-environment": false, "--controllers=rollout": false, "--controllers=rollout,environment": true,
	} {
		if i, _ := installation.InstanceOf(deployment("controller:v1", args)); i.Environments != want {
			t.Errorf("%q: it acts for Environments: %v, want %v", args, i.Environments, want)
		}
	}
}

func TestInstanceHasTheFlagsOfReports(t *testing.T) {
	type flags struct {
		Reports                   bool
		Cluster, Signing, Trusted string
	}
	for name, tt := range map[string]struct {
		args []string
		want flags
	}{
		"no flags":           {nil, flags{Reports: true}},
		"all":                {[]string{"--cluster-name=eu", "--signing-key-secret", "key", "--trusted-keys-secret=keys"}, flags{true, "eu", "key", "keys"}},
		"turned off":         {[]string{"--feature-gates=Other=true,EnvironmentReports=false"}, flags{}},
		"turned on":          {[]string{"--feature-gates=EnvironmentReports=true"}, flags{Reports: true}},
		"another turned off": {[]string{"--feature-gates=Other=false"}, flags{Reports: true}},
	} {
		t.Run(name, func(t *testing.T) {
			i, _ := installation.InstanceOf(deployment("controller:v1", tt.args...))
			got := flags{i.Reports, i.ClusterName, i.SigningKeySecret, i.TrustedKeysSecret}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCoordinates(t *testing.T) {
	none := deployment("controller:v1")
	none.Spec.Replicas = new(int32)
	chart := deployment("controller:v1")
	chart.Spec.Template.Labels = map[string]string{installation.NameLabel: "kube-deployment-coordinator", "control-plane": "controller-manager"}
	foreign := deployment("controller:v1")
	foreign.Spec.Template.Labels = map[string]string{"app": "shop"}
	for name, tt := range map[string]struct {
		is   *appsv1.Deployment
		want bool
	}{
		"all controllers":          {deployment("controller:v1"), true},
		"it is named":              {deployment("controller:v1", "--controllers=deploymentcoordination"), true},
		"it is left out":           {deployment("controller:v1", "--controllers=*,-deploymentcoordination"), false},
		"others are named":         {deployment("controller:v1", "--controllers=rollout,healthcheck"), false},
		"a shard":                  {deployment("controller:v1", "--watch-label-selector=key=shard1"), false},
		"a shard that names it":    {deployment("controller:v1", "--watch-label-selector=key=shard1", "--controllers=*,deploymentcoordination"), true},
		"without replicas":         {none, false},
		"the chart for that alone": {chart, true},
		"another program":          {foreign, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := installation.Coordinates(tt.is); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
