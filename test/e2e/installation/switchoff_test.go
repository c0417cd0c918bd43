// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// way is one way to install the coordinator and to switch it off.
type way struct{ install, switchOff, remove func(*testing.T) }

func TestNothingStaysPausedWhenTheCoordinatorIsSwitchedOff(t *testing.T) {
	for name, w := range map[string]func(*testing.T) way{"by Helm": byHelm, "by a HelmRelease": byHelmRelease, "by a Kustomization": byKustomization} {
		t.Run(name, func(t *testing.T) {
			way := w(t)
			way.install(t)
			awaitController(t, 1, image+":v0.1.0")
			before := runController(t, "before")
			fleet := heldFleet(t, "switched-off-"+strings.ToLower(strings.ReplaceAll(name, " ", "-")))

			way.switchOff(t)
			awaitGone(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-deploymentcoordination-rolebinding"}})
			stop(t, before) // as the kubelet does, once the next one is ready
			if args := args(t); slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") }) {
				t.Errorf("the coordinator is still among the arguments %v", args)
			}
			after := runController(t, "after")
			awaitLetGo(t, fleet)
			awaitNoCleanup(t)
			stop(t, after)
			way.remove(t)
			awaitUninstalled(t, true)
		})
	}
}

// The coordinator starts although no argument names it, because its role still exists. In
// each way this is the case for a moment.
func TestCoordinatorEndsWithItsRole(t *testing.T) {
	way := byHelm(t)
	way.install(t)
	awaitController(t, 1, image+":v0.1.0")
	unnamed(t)
	process := runController(t, "unnamed")
	fleet := heldFleet(t, "unnamed")

	// The guide describes this for users who apply without pruning.
	for _, o := range []client.Object{
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-hold"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-deploymentcoordination-rolebinding"}},
	} {
		deleteAll(t, o)
	}
	if err := process.Wait(t.Context()); err == nil {
		t.Error("it ended well, so that nobody would start it again")
	}
	again := runController(t, "again")
	awaitLetGo(t, fleet)
	awaitNoCleanup(t)
	stop(t, again)
	way.remove(t)
	awaitUninstalled(t, true)
}

// The role and the policy of the coordinator remain, and nobody coordinates. What a tenant
// has made to look like a coordinator changes nothing.
func TestNothingStaysPausedWhenControllersLeavesOutTheCoordinator(t *testing.T) {
	way := byHelm(t)
	way.install(t)
	awaitController(t, 1, image+":v0.1.0")
	before := runController(t, "before")
	fleet := heldFleet(t, "left-out")
	stop(t, before)
	unnamed(t)
	createLookAlike(t, "look-alike")
	after := runController(t, "after", "--controllers=*,-deploymentcoordination")
	awaitLetGo(t, fleet)
	awaitLine(t, after, "are unpaused now", `"unpaused":`, "--controllers leaves out deploymentcoordination")
	awaitLine(t, after, "the API server still pauses new Deployments", "rollout-controller-hold")
	stop(t, after)
	dropCleanup(t)
	way.remove(t)
	awaitUninstalled(t, true)
}

// Without the kind, nobody can want that they wait, whether the coordinator is named or not.
func TestNothingStaysPausedWhenTheKindIsGone(t *testing.T) {
	for name, named := range map[string]bool{"named": true, "unnamed": false} {
		t.Run(name, func(t *testing.T) {
			way := byHelm(t)
			way.install(t)
			awaitController(t, 1, image+":v0.1.0")
			before := runController(t, "before")
			fleet := heldFleet(t, "kind-gone-"+name)
			stop(t, before)
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "deploymentcoordinations.apps.containerinfra.nl"}}
			if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				t.Fatal(err)
			}
			again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
			deleteAll(t, crd)
			awaitGone(t, crd)
			if !named {
				unnamed(t)
			}
			after := runController(t, "after")
			awaitLetGo(t, fleet)
			_ = after.Stop(t.Context()) // the one that names the coordinator has ended
			create(t, again)
			dropCleanup(t)
			way.remove(t)
			awaitUninstalled(t, true)
		})
	}
}

// createLookAlike creates a Deployment of a tenant that has everything of the controller
// except its account.
func createLookAlike(t *testing.T, namespace string) {
	t.Helper()
	original := deployment()
	if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(original), original); err != nil {
		t.Fatal(err)
	}
	tenant := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: original.Name, Labels: original.Labels}, Spec: original.Spec}
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, tenant)
	t.Cleanup(func() { deleteLater(t, tenant) })
}

// awaitLine waits for a line of the log that has all of some texts.
func awaitLine(t *testing.T, process *controlplane.Process, texts ...string) {
	t.Helper()
	env.Eventually(t, "a line with "+strings.Join(texts, ", "), func() (bool, string) {
		log, err := os.ReadFile(process.LogFile)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
		}), string(log)
	})
}

// unnamed removes the argument that names the coordinator.
func unnamed(t *testing.T) {
	t.Helper()
	d := deployment()
	change(t, d, func() {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") })
	})
}

func TestHookBeforeAnUninstallationDropsEveryRight(t *testing.T) {
	way := byHelm(t)
	way.install(t)
	awaitController(t, 1, image+":v0.1.0")
	process := runController(t, "uninstalled")
	fleet := heldFleet(t, "uninstalled")
	stop(t, process)
	createHooks(t)
	hook := runController(t, "uninstallation", "--release-held")
	if err := hook.Wait(t.Context()); err != nil {
		t.Fatalf("the hook failed: %v", err)
	}
	awaitLetGo(t, fleet)
	awaitNoCleanup(t)
	way.remove(t)
	awaitUninstalled(t, true)
}

func byHelm(*testing.T) way {
	chart := manifests.Chart
	return way{
		install: func(t *testing.T) {
			t.Helper()
			helm(t, "install", manifests.Release, root(chart), "--create-namespace", "--wait", "--take-ownership", "--set=deploymentCoordination.enabled=true")
		},
		switchOff: func(t *testing.T) {
			t.Helper()
			helm(t, "upgrade", manifests.Release, root(chart), "--wait", "--set=deploymentCoordination.enabled=false")
		},
		remove: func(t *testing.T) {
			t.Helper()
			helm(t, "uninstall", manifests.Release, "--wait")
		},
	}
}

func byHelmRelease(t *testing.T) way {
	t.Helper()
	publishChart(t)
	meta := metav1.ObjectMeta{Namespace: controlplane.FluxNamespace, Name: manifests.Release}
	source := &sourcev1.OCIRepository{ObjectMeta: meta, Spec: sourcev1.OCIRepositorySpec{
		URL: "oci://" + plane.Registry.Host() + "/charts/rollout-controller", Reference: &sourcev1.OCIRepositoryRef{Tag: "0.1.0"},
		LayerSelector: &sourcev1.OCILayerSelector{MediaType: string(controlplane.ChartContentType), Operation: sourcev1.OCILayerCopy},
		Interval:      metav1.Duration{Duration: time.Hour}, Insecure: true,
	}}
	release := &helmv2.HelmRelease{ObjectMeta: meta, Spec: helmv2.HelmReleaseSpec{
		ReleaseName: manifests.Release, TargetNamespace: manifests.Namespace, StorageNamespace: manifests.Namespace,
		ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: meta.Name},
		Install:  &helmv2.Install{CreateNamespace: true},
		Interval: metav1.Duration{Duration: time.Hour}, Timeout: &metav1.Duration{Duration: time.Minute},
		Values: coordinated(true),
	}}
	return way{
		install: func(t *testing.T) {
			t.Helper()
			create(t, source, release)
			awaitReleased(t, release)
		},
		switchOff: func(t *testing.T) {
			t.Helper()
			change(t, release, func() { release.Spec.Values = coordinated(false) })
			awaitReleased(t, release)
		},
		remove: func(t *testing.T) {
			t.Helper()
			deleteAll(t, release, source)
		},
	}
}

func coordinated(enabled bool) *apiextensionsv1.JSON {
	return &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"deploymentCoordination":{"enabled":%t}}`, enabled)}
}

func byKustomization(t *testing.T) way {
	t.Helper()
	digest := makePush(t, "v0.1.0")
	source, kustomization := fluxObjects()
	source.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "v0.1.0"}
	kustomization.Spec.Components = []string{"components/deployment-coordination"}
	return way{
		install: func(t *testing.T) {
			t.Helper()
			create(t, source, kustomization)
			awaitApplied(t, kustomization, "v0.1.0@"+digest)
		},
		switchOff: func(t *testing.T) {
			t.Helper()
			change(t, kustomization, func() { kustomization.Spec.Components = nil })
		},
		remove: func(t *testing.T) {
			t.Helper()
			deleteAll(t, kustomization, source)
		},
	}
}

// heldFleet creates Deployments, one of them paused by hand, and waits until all are
// paused because there is nothing to roll out.
func heldFleet(t *testing.T, namespace string) scenario.Fleet {
	t.Helper()
	fleet := scenario.Fleet{App: scenario.NewApp(namespace, "shop"), Members: []string{"cart", "checkout", "front"}}
	fleet.Replicas = 1
	create(t, fleet.NamespaceObject())
	for _, o := range fleet.Objects("1.0.0", nil) {
		o.SetNamespace(fleet.Namespace)
		if o.GetName() == "front" {
			o.SetAnnotations(map[string]string{coordinationv1.RolloutPausedAnnotation: coordinationv1.RolloutPausedValue})
		}
		create(t, o)
	}
	env.AwaitDeployments(t, plane.Client(), fleet, "all paused", func(d *appsv1.Deployment) bool {
		return d.Spec.Paused && (d.Name == "front" || d.Annotations[coordinationv1.HeldByAnnotation] == "shop" && d.Status.AvailableReplicas == 1)
	})
	return fleet
}

// awaitLetGo waits until only the Deployment that is paused by hand is paused.
func awaitLetGo(t *testing.T, fleet scenario.Fleet) {
	t.Helper()
	env.AwaitDeployments(t, plane.Client(), fleet, "none held", func(d *appsv1.Deployment) bool {
		_, held := d.Annotations[coordinationv1.HeldByAnnotation]
		return !held && d.Spec.Paused == (d.Name == "front")
	})
}

// awaitNoCleanup waits until the controller has lost the rights that it needs to clean
// up.
func awaitNoCleanup(t *testing.T) {
	t.Helper()
	awaitGone(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-deploymentcoordination-cleanup-rolebinding"}})
	awaitGone(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-deploymentcoordination-cleanup-role"}})
}

// args returns the arguments of the controller as it is installed now.
func args(t *testing.T) []string {
	t.Helper()
	return container(t, deployment()).Args
}

// container returns the only container of a stored Deployment.
func container(t *testing.T, d *appsv1.Deployment) *corev1.Container {
	t.Helper()
	if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	return &d.Spec.Template.Spec.Containers[0]
}

// runController runs the controller as it is installed now, with additional arguments
// before its own.
func runController(t *testing.T, name string, more ...string) *controlplane.Process {
	t.Helper()
	return runAs(t, deployment(), name, more...)
}

// runAs runs the controller as a Deployment would: under its ServiceAccount, with its
// arguments and environment.
func runAs(t *testing.T, d *appsv1.Deployment, name string, more ...string) *controlplane.Process {
	t.Helper()
	return runServing(t, d, name, "0", more...)
}

// runServing does the same as runAs, and serves metrics at an address.
func runServing(t *testing.T, d *appsv1.Deployment, name, metrics string, more ...string) *controlplane.Process {
	t.Helper()
	program, err := scenario.BuildController(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := container(t, d)
	kubeconfig, err := plane.AddUser("system:serviceaccount:"+d.Namespace+":"+d.Spec.Template.Spec.ServiceAccountName,
		"system:serviceaccounts", "system:serviceaccounts:"+d.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	variables := []string{"RUNTIME_NAMESPACE=" + d.Namespace}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			variables = append(variables, v.Name+"="+v.Value)
		}
	}
	arguments := slices.Concat([]string{"--kubeconfig=" + kubeconfig}, more, c.Args,
		[]string{"--metrics-bind-address=" + metrics, "--health-probe-bind-address=0", "--webhook-port=" + env.FreePort(t)}) // the usual ports may be taken here
	process, err := plane.StartProcess(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())+"-"+name, program, arguments, variables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(context.Background()) })
	return process
}

func stop(t *testing.T, process *controlplane.Process) {
	t.Helper()
	if err := process.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// createHooks creates the objects that Helm creates before its Job. Nothing runs the Job
// here.
func createHooks(t *testing.T) {
	t.Helper()
	objects, err := manifests.Template(t.Context(), "--set=deploymentCoordination.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetAnnotations()["helm.sh/hook"] != "" && o.GetKind() != "Job" {
			create(t, o)
			t.Cleanup(func() { deleteLater(t, o) })
		}
	}
}

// deleteLater deletes an object after a test.
func deleteLater(t *testing.T, o client.Object) {
	t.Helper()
	if err := plane.Client().Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// create creates objects. The API server may set further fields in typed objects. An
// unstructured object stays as it is.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			o = u.DeepCopy()
		}
		if err := plane.Client().Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// change changes an object in the API server.
func change(t *testing.T, object client.Object, do func()) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("%T %s changed", object, object.GetName()), func() (bool, string) {
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		do()
		err := plane.Client().Update(t.Context(), object)
		return err == nil, fmt.Sprint(err)
	})
}

func deleteAll(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := plane.Client().Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, o)
	}
}

// awaitReleased waits until Flux has installed or upgraded the chart with the present
// spec.
func awaitReleased(t *testing.T, release *helmv2.HelmRelease) {
	t.Helper()
	env.Eventually(t, "the HelmRelease ready", func() (bool, string) {
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(release), release); err != nil {
			return false, err.Error()
		}
		ready := false
		var seen []string
		for _, c := range release.Status.Conditions {
			seen = append(seen, c.Type+"="+string(c.Status)+" "+c.Message)
			ready = ready || c.Type == "Ready" && c.Status == metav1.ConditionTrue && c.ObservedGeneration == release.Generation
		}
		return ready, strings.Join(seen, "\n")
	})
}
