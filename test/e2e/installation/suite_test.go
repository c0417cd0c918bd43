// SPDX-License-Identifier: Apache-2.0

// Package installation installs the controller in the ways that users do, on a control
// plane with Flux and without anything of the project. The tests run one after another,
// because there can be only one installation.
package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// everyComponent and everyValue install everything that can be installed.
var (
	everyComponent = []string{"sharding", "high-availability", "tenancy-lockdown", "notification-access", "deployment-coordination", "statefulset-rollout", "tenant-view"}
	everyValue     = "--set=namespace.create=true,replicas=2,noCrossNamespaceRefs=true,concurrent=4,watchLabelSelector=!sharding.fluxcd.io/key,notificationAccess.create=true," +
		"deploymentCoordination.enabled=true,statefulSetRollout.enabled=true,rbac.tenantView=true,monitoring.dashboard.create=true,monitoring.kubeStateMetrics.create=true"
)

// coordinations is the name of the CRD that a component installs.
const coordinations = "deploymentcoordinations.apps.containerinfra.nl"

// plane is shared by the tests.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(env.WithoutController(m, &plane, controlplane.Options{Workloads: true, Flux: true, Helm: true}, func(context.Context) error {
		return errors.Join(v1alpha1.AddToScheme(plane.Client().Scheme()), coordinationv1.AddToScheme(plane.Client().Scheme()))
	}))
}

// root returns the absolute form of a path in the repository.
func root(path string) string { return filepath.Join(parts.Root(), path) }

// run makes a target of the Makefile and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	command.Dir, command.Stderr = parts.Root(), os.Stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(printed))
}

// deployment returns the Deployment of the controller.
func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: manifests.Namespace, Name: "rollout-controller-controller-manager",
	}}
}

// awaitController waits until a number of replicas with an image are available.
func awaitController(t *testing.T, replicas int32, image string) {
	t.Helper()
	d := deployment()
	env.Eventually(t, fmt.Sprintf("%d replicas of %s", replicas, image), func() (bool, string) {
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return false, err.Error()
		}
		got := d.Spec.Template.Spec.Containers[0].Image
		return got == image && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas, fmt.Sprintf("%s: %+v", got, d.Status)
	})
}

// awaitGone waits until an object does not exist.
func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("no %s %s", object.GetObjectKind().GroupVersionKind().Kind, object.GetName()), func() (bool, string) {
		err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// awaitUninstalled waits until only the CRDs remain of everything that can be installed,
// and the namespace, which does not always belong to the installation. The CRD of
// coordinations is not always installed.
func awaitUninstalled(t *testing.T, coordinated bool) {
	t.Helper()
	installed, err := manifests.WithComponents(t.Context(), everyComponent...)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range installed {
		switch o.GetKind() {
		case "Namespace":
		case "CustomResourceDefinition":
			if o.GetName() == coordinations && !coordinated {
				continue
			}
			if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil {
				t.Errorf("the CRD %s was deleted with the controller: %v", o.GetName(), err)
			}
		default:
			awaitGone(t, o)
		}
	}
}

// createRollout creates a Rollout that no controller reconciles.
func createRollout(t *testing.T, name string) *v1alpha1.Rollout {
	t.Helper()
	rollout := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	rollout.Spec.ReleasesImagePolicy.Name = name
	if err := plane.Client().Create(t.Context(), rollout); err != nil {
		t.Fatal(err)
	}
	return rollout
}

// stillThere fails the test if an object is not the one that was created, or is being
// deleted.
func stillThere(t *testing.T, created client.Object) {
	t.Helper()
	found := created.DeepCopyObject().(client.Object)
	if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(created), found); err != nil {
		t.Fatal(err)
	}
	if created.GetUID() != "" && found.GetUID() != created.GetUID() || found.GetDeletionTimestamp() != nil {
		t.Errorf("%T %s was deleted with the controller", created, created.GetName())
	}
}

// namespace returns the namespace of the controller.
func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manifests.Namespace}}
}
