// SPDX-License-Identifier: Apache-2.0

// Package recovery loses what the controller remembers, and brings it back as
// docs/guides/backup-and-recovery.md says: the tests run the commands of that page, and await
// what it shows.
//
// The tests share two control planes and a registry. Each has two environments of its own. Those
// that write the status of everything, delete CRDs or restore etcd run alone, before those that
// run in parallel. There is no controller manager: nothing here needs pods.
package recovery

import (
	"flag"
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// The names of the clusters.
const (
	stagingCluster = "staging-eu"
	prodCluster    = "prod-eu"
)

var (
	// plane is shared by the tests. Most have both environments there.
	plane *env.Plane
	// stagingPlane is another cluster. Its environments report to those of plane.
	stagingPlane *env.Plane
	// stagingKeys sign its reports. Production trusts them.
	stagingKeys scenario.KeyPair
)

func TestMain(m *testing.M) {
	// All parallel tests run at the same time: they mostly wait.
	code, err := 1, flag.Set("test.parallel", "8")
	if err == nil {
		code, err = runAll(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		return 1, err
	}
	defer func() { _ = registry.GoAway() }()
	if stagingKeys, err = scenario.NewKeyPair(); err != nil {
		return 1, err
	}
	production := setting(prodCluster, registry)
	production.Objects = append(production.Objects, scenario.TrustedKeys(scenario.Namespace, map[string]scenario.KeyPair{stagingCluster: stagingKeys}))
	return env.MainOf(m,
		env.Cluster{Plane: &plane, Setting: production},
		env.Cluster{Plane: &stagingPlane, Setting: staging("staging", registry, stagingKeys.Secret(scenario.Namespace))}), nil
}

// staging is the cluster of staging, also when it is created again, with the key that it signs
// with.
func staging(name string, registry *controlplane.Registry, key *corev1.Secret) env.Setting {
	s := setting(stagingCluster, registry, "--signing-key-secret="+key.Name)
	key.ResourceVersion = ""
	s.Name, s.Objects = name, append(s.Objects, key)
	return s
}

func setting(cluster string, registry *controlplane.Registry, flags ...string) env.Setting {
	args := append(scenario.ReportFlags(cluster), flags...)
	s := env.Setting{Options: controlplane.Options{Flux: true, ImageScanner: true, Registry: registry}, Args: args}
	s.Objects = append(s.Objects, deployment(args...))
	return s
}

// deployment is where the command line finds the flags of a controller. Nothing runs it: the
// controller is a process here.
func deployment(args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Namespace, Name: scenario.Account, Labels: installation.PodLabels}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: installation.PodLabels}
	d.Spec.Template.Labels = installation.PodLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "rollout-controller", Args: args}}
	return d
}
