// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// keepsFromFlux shows that kustomize-controller deletes what old pods need before the
// Deployments that wait have changed, unless its annotation says otherwise.
func (f *fleet) keepsFromFlux() {
	f.Fleet.Members = members
	f.Fleet.ConfigMaps = map[string]map[string]string{
		"plain": nil,
		"once":  {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"},
		"kept":  {"kustomize.toolkit.fluxcd.io/prune": "disabled"},
	}
	f.deploy(true)
	f.stopsHalfWay("1.5.0", func(version string) { f.release(version, nil) })
	f.awaitConfigMaps("kept-1.0.0", "kept-1.5.0", "once-1.5.0", "plain-1.5.0")
	shown := f.CommandLine(f.Namespace+":henry", "system:masters").MustRun("status", f.Name)
	if want := "2 ConfigMaps (once-1.0.0, plain-1.0.0)  ✗ does not exist, and 2 pods cannot start again without it"; !strings.Contains(shown, want) {
		f.T.Errorf("the command line does not show %q:\n%s", want, shown)
	}
	f.deletesWhatNobodyNeeds()
	f.goesOn("1.5.0")
}

// keepsFromHelm shows the same of Helm, which helm-controller runs.
func (f *fleet) keepsFromHelm() {
	f.Fleet.Members = members
	f.Fleet.ConfigMaps = map[string]map[string]string{"plain": nil, "kept": {"helm.sh/resource-policy": "keep"}}
	host := f.Plane.Registry.Host()
	f.Create(f.NamespaceObject(), f.ImageRepository(host), f.ImagePolicy(">=1.0.0"), f.ChartRepository(host), f.HelmRelease(), f.Rollout())
	f.publishChart("1.0.0")
	f.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	f.awaitRolledOut("1.0.0")
	f.stopsHalfWay("1.6.0", f.publishChart)
	f.awaitConfigMaps("kept-1.0.0", "kept-1.6.0", "plain-1.6.0")
	f.goesOn("1.6.0")
}

func (f *fleet) publishChart(version string) {
	f.T.Helper()
	chart, err := f.Fleet.Chart(version)
	if err == nil {
		err = f.Plane.Registry.PushChart(f.T.Context(), chart)
	}
	if err != nil {
		f.T.Fatal(err)
	}
	f.Scan()
}

// stopsHalfWay releases a version with which the first Deployment does not become ready,
// and waits until the last one waits for its turn with its old pods.
func (f *fleet) stopsHalfWay(version string, release func(version string)) {
	f.T.Helper()
	if err := f.Plane.BreakVersion(f.T.Context(), version); err != nil {
		f.T.Fatal(err)
	}
	release(version)
	last := f.Fleet.Members[len(f.Fleet.Members)-1]
	env.Eventually(f.T, last+" to wait for its turn", func() (bool, string) {
		d := f.deployment(last)
		f.Read(d)
		c := d.Spec.Template.Spec.Containers[0]
		return d.Spec.Paused && c.Image == imageOf(last, version) && d.Status.AvailableReplicas == 2, c.Image
	})
}

// awaitConfigMaps waits until the application has only these.
func (f *fleet) awaitConfigMaps(want ...string) {
	f.T.Helper()
	env.Eventually(f.T, "the ConfigMaps "+strings.Join(want, ", "), func() (bool, string) {
		diff := cmp.Diff(want, f.configMaps())
		return diff == "", diff
	})
}

func (f *fleet) configMaps() []string {
	f.T.Helper()
	list := &corev1.ConfigMapList{}
	if err := f.Plane.Client().List(f.T.Context(), list, client.InNamespace(f.Namespace), client.HasLabels{scenario.GeneratedLabel}); err != nil {
		f.T.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// deletesWhatNobodyNeeds runs the commands of the guide.
func (f *fleet) deletesWhatNobodyNeeds() {
	f.T.Helper()
	before := f.configMaps()
	forgotten := &corev1.ConfigMap{}
	forgotten.Namespace, forgotten.Name = f.Namespace, "kept-0.9.0"
	forgotten.Labels = map[string]string{scenario.GeneratedLabel: "kept"}
	f.Create(forgotten)
	f.follow("workloads.md", "delete those that nothing names any more")
	if diff := cmp.Diff(before, f.configMaps()); diff != "" {
		f.T.Errorf("ConfigMaps that are needed (-before +after):\n%s", diff)
	}
}

// goesOn repairs the version, and waits until all run it.
func (f *fleet) goesOn(version string) {
	f.T.Helper()
	if err := f.Plane.FixVersion(f.T.Context(), version); err != nil {
		f.T.Fatal(err)
	}
	f.awaitRolledOut(version)
}
