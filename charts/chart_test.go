// SPDX-License-Identifier: Apache-2.0

// Package charts_test checks that the Helm chart matches the manifests of config/ and its
// own documents.
package charts_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// Helm adds these labels and this annotation for its own bookkeeping. kustomize does not.
var (
	helmLabels     = []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
	helmAnnotation = "helm.sh/resource-policy"
)

func TestChartInstallsWhatKustomizeInstalls(t *testing.T) {
	for name, variant := range map[string]struct {
		components []string
		values     []string
	}{
		"by default":                  {values: []string{"namespace.create=true"}},
		"highly available":            {components: []string{"high-availability"}, values: []string{"namespace.create=true", "replicas=2"}},
		"locked down for tenants":     {components: []string{"tenancy-lockdown"}, values: []string{"namespace.create=true", "noCrossNamespaceRefs=true"}},
		"let in to notification":      {components: []string{"notification-access"}, values: []string{"namespace.create=true", "notificationAccess.create=true"}},
		"as the main one of shards":   {components: []string{"sharding"}, values: []string{"namespace.create=true", "watchLabelSelector=!sharding.fluxcd.io/key"}},
		"with Deployments in turn":    {components: []string{"deployment-coordination"}, values: []string{"namespace.create=true", "deploymentCoordination.enabled=true"}},
		"with Deployments by webhook": {components: []string{"deployment-coordination-webhook"}, values: []string{"namespace.create=true", "deploymentCoordination.enabled=true", "deploymentCoordination.admission=webhook"}},
		"with StatefulSets by zone":   {components: []string{"statefulset-rollout"}, values: []string{"namespace.create=true", "statefulSetRollout.enabled=true"}},
		"with both":                   {components: []string{"deployment-coordination", "statefulset-rollout"}, values: []string{"namespace.create=true", "deploymentCoordination.enabled=true", "statefulSetRollout.enabled=true"}},
		"with more rights of tenants": {components: []string{"tenant-view"}, values: []string{"namespace.create=true", "rbac.tenantView=true"}},
		"with the page":               {components: []string{"web"}, values: []string{"namespace.create=true", "web.enabled=true", "web.publicURL=https://rollouts.example.com"}},
		"with approvals":              {components: []string{"approvals", "deploy-user", "sign"}, values: []string{"namespace.create=true", "approvals.enabled=true", "approvals.deployUser=true", "approvals.sign=true"}},
		"with all of these together":  {components: []string{"high-availability", "tenancy-lockdown", "notification-access", "statefulset-rollout", "web"}, values: []string{"namespace.create=true", "replicas=2", "noCrossNamespaceRefs=true", "notificationAccess.create=true", "statefulSetRollout.enabled=true", "web.enabled=true", "web.publicURL=https://rollouts.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := manifests.WithComponents(t.Context(), variant.components...)
			if err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(want, func(o *unstructured.Unstructured) bool { return strings.HasSuffix(o.GetName(), "-shard1") })
			got := template(t, variant.values...)
			got = slices.DeleteFunc(got, isHook)
			for _, o := range got {
				forgetHelm(o)
			}
			if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
				t.Errorf("kustomize (-) and Helm (+) install different objects:\n%s", diff)
			}
		})
	}
}

// Except for labels, the alerts and the dashboard of the chart must equal those of
// config/monitoring. That includes braces in texts.
func TestChartHasTheSameMonitoring(t *testing.T) {
	want, err := manifests.Kustomize(t.Context(), "config/monitoring")
	if err != nil {
		t.Fatal(err)
	}
	before := byName(t, template(t))
	got := template(t, "monitoring.namespace=monitoring", "monitoring.serviceMonitor.create=true",
		"monitoring.prometheusRule.create=true", "monitoring.dashboard.create=true", "monitoring.kubeStateMetrics.create=true")
	got = slices.DeleteFunc(got, func(o *unstructured.Unstructured) bool { return before[nameOf(o)] != nil })
	for _, o := range got {
		forgetHelm(o)
		labels := o.GetLabels()
		delete(labels, "app.kubernetes.io/instance") // not part of an installation there
		o.SetLabels(labels)
		// Each release reads its own metrics.
		unstructured.RemoveNestedField(o.Object, "spec", "selector", "matchLabels", "app.kubernetes.io/instance")
	}
	if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
		t.Errorf("config/monitoring (-) and the chart (+) differ:\n%s", diff)
	}
}

func TestHelmMarksWhatItInstallsAsItsOwn(t *testing.T) {
	for _, o := range template(t, "namespace.create=true") {
		labels := o.GetLabels()
		for _, label := range helmLabels {
			if labels[label] == "" {
				t.Errorf("%s %s has no label %s", o.GetKind(), o.GetName(), label)
			}
		}
		kept := o.GetAnnotations()[helmAnnotation] == "keep"
		if want := o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"; kept != want {
			t.Errorf("%s %s is kept when the release is uninstalled: %t, want %t", o.GetKind(), o.GetName(), kept, want)
		}
	}
}

// Helm creates the namespace by itself. The installation fails if the chart has it as
// well.
func TestNamespaceIsLeftToHelm(t *testing.T) {
	for _, o := range template(t) {
		if o.GetKind() == "Namespace" {
			t.Errorf("the chart has the Namespace %s", o.GetName())
		}
	}
}

func TestAnotherReleaseSharesNoNameWithTheFirst(t *testing.T) {
	first := byName(t, template(t, "crds.install=false"))
	for name := range byName(t, template(t, "crds.install=false", "fullnameOverride=second")) {
		if _, shared := first[name]; shared {
			t.Errorf("both have %s", name)
		}
	}
}

// A shard is a Helm release of its own. The first release installs the CRDs for it.
func TestShardDiffersInNamesAndSelector(t *testing.T) {
	all, err := manifests.WithComponents(t.Context(), "sharding")
	if err != nil {
		t.Fatal(err)
	}
	want := only(all, "Deployment", "rollout-controller-controller-manager-shard1")
	printed, err := manifests.Rendered(t.Context(), manifests.Chart, "rollout-controller-shard1", manifests.Namespace,
		"--set=crds.install=false,watchLabelSelector=sharding.fluxcd.io/key=shard1")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Decode(printed)
	if err != nil {
		t.Fatal(err)
	}
	got := only(objects, "Deployment", "rollout-controller-shard1-controller-manager")
	forgetOwnName(t, want)
	forgetOwnName(t, got)
	for path, fields := range map[string][]string{
		"selector":  {"spec", "selector"},
		"arguments": {"spec", "template", "spec", "containers"},
	} {
		wanted, _, _ := unstructured.NestedFieldNoCopy(want.Object, fields...)
		found, _, _ := unstructured.NestedFieldNoCopy(got.Object, fields...)
		if diff := cmp.Diff(wanted, found); diff != "" || wanted == nil {
			t.Errorf("%s of the shard by kustomize (-) and by Helm (+):\n%s", path, diff)
		}
	}
}

// forgetOwnName removes from a Deployment the settings for its own name and for the name
// of its certificate. With Helm a shard has names of its own.
func forgetOwnName(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || len(containers) != 1 {
		t.Fatalf("%s has containers %v: %v", deployment.GetName(), containers, err)
	}
	env := containers[0].(map[string]any)["env"].([]any)
	containers[0].(map[string]any)["env"] = slices.DeleteFunc(env, func(v any) bool {
		return v.(map[string]any)["name"] == "RUNTIME_NAME" && v.(map[string]any)["value"] == deployment.GetName()
	})
	args := containers[0].(map[string]any)["args"].([]any)
	containers[0].(map[string]any)["args"] = slices.DeleteFunc(args, func(arg any) bool {
		return strings.HasPrefix(arg.(string), "--metrics-cert-secret=rollout-controller")
	})
	if err := unstructured.SetNestedSlice(deployment.Object, containers, path...); err != nil {
		t.Fatal(err)
	}
}

// After the uninstallation nothing can resume paused Deployments. So the Job removes the
// policy or webhook that pauses them, and resumes them, while the roles still exist.
func TestUninstallationLetsGoFirst(t *testing.T) {
	for _, o := range template(t, "statefulSetRollout.enabled=true") {
		if isHook(o) {
			t.Errorf("%s %s runs although nothing is ever held", o.GetKind(), o.GetName())
		}
	}
	var hooks []string
	for _, o := range template(t, "deploymentCoordination.enabled=true") {
		if isHook(o) {
			hooks = append(hooks, o.GetAnnotations()["helm.sh/hook"]+" "+o.GetAnnotations()["helm.sh/hook-weight"]+" "+nameOf(o))
		}
	}
	slices.Sort(hooks)
	// The name of the Lease depends on the arguments.
	all := template(t, "deploymentCoordination.enabled=true,watchLabelSelector=a=b,extraArgs={--leader-election-id=mine}")
	jobs, err := manifests.As[batchv1.Job](all, "Job")
	if err != nil || len(jobs) != 1 {
		t.Fatalf("there are %d Jobs: %v", len(jobs), err)
	}
	args := append([]string{"--release-held"}, deploymentOf(t, all).Spec.Template.Spec.Containers[0].Args...)
	if diff := cmp.Diff(args, jobs[0].Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("the controller's arguments (-) and the Job's (+):\n%s", diff)
	}
	want := []string{
		"pre-delete -1 ClusterRole//rollout-controller-uninstall",
		"pre-delete -1 ClusterRoleBinding//rollout-controller-uninstall",
		"pre-delete 0 Job/kuberik-system/rollout-controller-uninstall",
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("what runs before (-want +got):\n%s", diff)
	}
}

func TestAdmissionModeIsChosenByTheCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		version, admission string
		policy             bool
	}{
		"1.36":                {"1.36.0", "auto", true},
		"an older one":        {"1.33.0", "auto", false},
		"1.36, and a setting": {"1.36.0", "webhook", false},
	} {
		printed, err := manifests.Rendered(t.Context(), manifests.Chart, manifests.Release, manifests.Namespace,
			"--kube-version="+tt.version, "--set=deploymentCoordination.enabled=true,deploymentCoordination.admission="+tt.admission)
		if err != nil {
			t.Fatal(err)
		}
		policy := strings.Contains(string(printed), "kind: MutatingAdmissionPolicy\n")
		webhook := strings.Contains(string(printed), "kind: MutatingWebhookConfiguration\n")
		if policy != tt.policy || webhook == tt.policy {
			t.Errorf("%s: the policy is there: %t; the webhook is there: %t", name, policy, webhook)
		}
	}
}

// isHook reports whether an object is a Helm hook: Helm runs it, but does not install it.
func isHook(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

// only returns the object of a kind and name, or an empty object if there is none.
func only(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return &unstructured.Unstructured{}
}

func TestLintFindsNothing(t *testing.T) {
	for _, folder := range folders(t) {
		output, err := manifests.Helm(t.Context(), "lint", "--strict", filepath.Join(parts.Root(), folder))
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

// folders returns the folders of the charts.
func folders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/Chart.yaml")
	if err != nil || len(found) != 3 {
		t.Fatalf("there are %v: %v", found, err)
	}
	for i := range found {
		found[i] = filepath.Join("charts", filepath.Dir(found[i]))
	}
	return found
}

func TestChartsAndManifestsAreOfOneVersion(t *testing.T) {
	var manager struct {
		Images []struct{ NewTag string }
	}
	read(t, "config/manager/kustomization.yaml", &manager)
	for _, folder := range folders(t) {
		var chart struct {
			Version, AppVersion string
		}
		read(t, filepath.Join(folder, "Chart.yaml"), &chart)
		if len(manager.Images) != 1 || manager.Images[0].NewTag != chart.AppVersion || "v"+chart.Version != chart.AppVersion {
			t.Errorf("%s %s of %s, manifests of %+v: want one version", folder, chart.Version, chart.AppVersion, manager.Images)
		}
	}
}

// TestArtifactHubListsTheKindsThatAChartInstalls also checks that the page that a chart
// links exists.
func TestArtifactHubListsTheKindsThatAChartInstalls(t *testing.T) {
	for _, folder := range folders(t) {
		var chart struct{ Annotations map[string]string }
		read(t, filepath.Join(folder, "Chart.yaml"), &chart)
		var links []struct{ Name, URL string }
		decode(t, chart.Annotations["artifacthub.io/links"], &links)
		_, page, _ := strings.Cut(links[0].URL, "/blob/main/")
		if _, err := os.Stat(filepath.Join(parts.Root(), page)); page == "" || err != nil {
			t.Errorf("%s links the page %q: %v", folder, page, err)
		}
		var listed []struct{ Kind, Version, Name, DisplayName, Description string }
		decode(t, chart.Annotations["artifacthub.io/crds"], &listed)
		var names []string
		for _, crd := range listed {
			names = append(names, crd.Name+" "+crd.Version+" "+crd.Kind)
			if crd.DisplayName != crd.Kind || crd.Description == "" {
				t.Errorf("%s describes %s as %q, %q", folder, crd.Name, crd.DisplayName, crd.Description)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(installedKinds(t, folder), names); diff != "" {
			t.Errorf("%s (-installed +listed):\n%s", folder, diff)
		}
	}
}

// installedKinds returns the names, versions and kinds of the CRDs that a chart can
// install, sorted.
func installedKinds(t *testing.T, folder string) []string {
	t.Helper()
	var args []string
	if folder == "charts/rollout-controller" {
		args = append(args, "--set", "deploymentCoordination.enabled=true")
	}
	printed, err := manifests.Rendered(t.Context(), folder, "kinds", manifests.Namespace, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	var names []string
	for _, o := range objectsOf(t, string(printed)) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		names = append(names, o.GetName()+" "+versions[0].(map[string]any)["name"].(string)+" "+kind)
	}
	slices.Sort(names)
	return names
}

// template renders the chart with values of the form name=value.
func template(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	var args []string
	for _, value := range values {
		args = append(args, "--set", value)
	}
	objects, err := manifests.Template(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// forgetHelm removes Helm's own labels and annotation from an object.
func forgetHelm(o *unstructured.Unstructured) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(helmLabels, key) })
	delete(annotations, helmAnnotation)
	o.SetLabels(labels)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// byName returns the contents of objects by kind, namespace and name.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		name := nameOf(o)
		if all[name] != nil {
			t.Errorf("there is more than one %s", name)
		}
		all[name] = o.Object
	}
	return all
}

func nameOf(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/")
}

// read decodes a file of the repository.
func read(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(content), into)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
}
