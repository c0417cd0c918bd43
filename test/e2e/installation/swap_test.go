// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// coordinatorNamespace and coordinator are the namespace and the name with which the
	// first implementation is installed.
	coordinatorNamespace = "kube-deployment-coordinator-system"
	coordinator          = "kube-deployment-coordinator"
	// first is the folder with the manifests of the first implementation.
	first = "test/e2e/installation/testdata/containerinfra"
)

// keepingValues returns the arguments for a HelmRelease that keeps all values of the
// first implementation. There are no ServiceMonitors here.
func keepingValues() []string {
	return []string{"--values=" + root("charts/testdata/containerinfra-values.yaml"), "--set=enableServiceMonitor=false"}
}

// Each way follows the guide docs/guides/workloads.md.
func TestFirstCoordinatorIsReplacedAsTheGuideSays(t *testing.T) {
	for name, way := range map[string]struct{ install, replace func(*testing.T) }{
		"chart":         {installFirstByHelm, replaceByHelm},
		"kustomization": {installFirstByKustomize, replaceByDeleting},
	} {
		t.Run("installed by its "+name, func(t *testing.T) {
			removeCoordinations(t)
			fleet := pausedFleet(t, "swapped-"+name)
			way.install(t)
			c := fleet.Coordination()
			c.Namespace = fleet.Namespace
			create(t, c)

			way.replace(t)
			own := coordinatorDeployment()
			process := runAs(t, own, "swapped")
			env.AwaitDeployments(t, plane.Client(), fleet, "rolled out one after the other", func(d *appsv1.Deployment) bool {
				return d.Spec.Paused && d.Annotations[coordinationv1.HeldByAnnotation] == c.Name && d.Status.AvailableReplicas == 1
			})
			stop(t, process)
			for _, o := range ofTheFirst() {
				awaitGone(t, o)
			}
			helmIn(t, coordinatorNamespace, "uninstall", coordinator, "--wait")
			helmIn(t, coordinatorNamespace, "uninstall", coordinator+"-crds", "--wait")
			deleteAll(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: coordinatorNamespace}})
		})
	}
}

func installFirstByHelm(t *testing.T) {
	t.Helper()
	helmIn(t, coordinatorNamespace, "install", coordinator+"-crds", root(first+"/crds"), "--create-namespace", "--wait")
	helmIn(t, coordinatorNamespace, append([]string{"install", coordinator, root(first + "/chart"), "--wait"}, keepingValues()...)...)
}

// replaceByHelm keeps the release and its values.
func replaceByHelm(t *testing.T) {
	t.Helper()
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: coordinatorNamespace, Name: coordinator}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 0}}
	if err := plane.Client().SubResource("scale").Update(t.Context(), old, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	upgradeKind(t)
	helmIn(t, coordinatorNamespace, append([]string{"upgrade", coordinator, root("charts/" + coordinator), "--wait"}, keepingValues()...)...)
}

func installFirstByKustomize(t *testing.T) {
	t.Helper()
	objects, err := manifests.Kustomize(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		create(t, o)
	}
}

// replaceByDeleting keeps the CRD and the namespace, and deletes the objects with the
// labels of the first implementation's kustomization.
func replaceByDeleting(t *testing.T) {
	t.Helper()
	labels := client.MatchingLabels{"app.kubernetes.io/name": coordinator, "app.kubernetes.io/managed-by": "kustomize"}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&admissionv1.MutatingWebhookConfigurationList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		deleteSelected(t, list, labels)
	}
	upgradeKind(t)
	helmIn(t, coordinatorNamespace, "install", coordinator, root("charts/"+coordinator), "--wait")
}

func deleteSelected(t *testing.T, list client.ObjectList, labels client.MatchingLabels) {
	t.Helper()
	if err := plane.Client().List(t.Context(), list, labels); err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		t.Fatalf("%T has no object with the labels: %v", list, err)
	}
	for _, item := range items {
		deleteAll(t, item.(client.Object))
	}
}

func upgradeKind(t *testing.T) {
	t.Helper()
	helmIn(t, coordinatorNamespace, "upgrade", "--install", coordinator+"-crds", root("charts/"+coordinator+"-crds"), "--take-ownership", "--wait")
}

// pausedFleet creates a fleet as the first implementation leaves it: its Deployments are
// paused, and nothing in them shows why.
func pausedFleet(t *testing.T, namespace string) scenario.Fleet {
	t.Helper()
	fleet := scenario.Fleet{App: scenario.NewApp(namespace, "shop"), Members: []string{"cart", "checkout"}}
	fleet.Replicas = 1
	create(t, fleet.NamespaceObject())
	for _, o := range fleet.Objects("1.0.0", nil) {
		if d, ok := o.(*appsv1.Deployment); ok {
			d.Namespace, d.Spec.Paused = fleet.Namespace, true
			create(t, d)
		}
	}
	return fleet
}

// removeCoordinations removes the CRD that other tests have left.
func removeCoordinations(t *testing.T) {
	t.Helper()
	kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: coordinations}}
	if err := plane.Client().Delete(t.Context(), kind); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	awaitGone(t, kind)
}

func coordinatorDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: coordinatorNamespace, Name: coordinator + "-controller-manager"}}
}

// ofTheFirst returns the objects that show whether the first implementation can still
// write.
func ofTheFirst() []client.Object {
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: coordinatorNamespace, Name: coordinator}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: coordinator}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: coordinator + "-manager-rolebinding"}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: coordinator + "-" + coordinator + "-webhook"}},
	}
}
