// SPDX-License-Identifier: Apache-2.0

// Package alone runs each coordinator by itself, as the manifests for that do, in a
// cluster without Flux and without releases.
package alone

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

var (
	// plane is shared by the tests.
	plane *controlplane.ControlPlane
	// program is the path of the controller.
	program string
	// flux are the CRDs of Flux, which are not installed.
	flux []apiextensionsv1.CustomResourceDefinition
)

func TestMain(m *testing.M) {
	options := controlplane.Options{Workloads: true, HelmCRDs: true, CRDPaths: []string{scenario.CoordinationCRDs()}}
	os.Exit(env.WithoutController(m, &plane, options, prepare))
}

func prepare(ctx context.Context) (err error) {
	if program, err = scenario.BuildController(ctx, os.Stderr); err != nil {
		return err
	}
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, coordinationv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(plane.Client().Scheme()); err != nil {
			return err
		}
	}
	return removeFlux(ctx)
}

// removeFlux deletes the CRDs of Flux, which every control plane has.
func removeFlux(ctx context.Context) error {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := plane.Client().List(ctx, crds); err != nil {
		return err
	}
	for i := range crds.Items {
		if strings.HasSuffix(crds.Items[i].Spec.Group, ".fluxcd.io") {
			flux = append(flux, apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: crds.Items[i].Name}, Spec: crds.Items[i].Spec,
			})
			if err := plane.Client().Delete(ctx, &crds.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// installation contains the objects that some manifests install, and their namespace.
type installation struct {
	namespace string
	objects   []*unstructured.Unstructured
}

// coordinator renders the chart of the coordinator of Deployments, with values and with
// ports that are free here.
func coordinator(t *testing.T, namespace string, values ...string) installation {
	t.Helper()
	values = append(values, "metricsPort="+env.FreePort(t), "healthPort="+env.FreePort(t))
	objects, err := manifests.Coordinator(t.Context(), namespace, "--set="+strings.Join(values, ","))
	if err != nil {
		t.Fatal(err)
	}
	return installation{namespace: namespace, objects: objects}
}

// install creates all objects except hooks and ServiceMonitors, which the API server does
// not know. It removes them after the test.
func (i installation) install(t *testing.T) {
	t.Helper()
	if i.namespace != metav1.NamespaceDefault {
		ensure(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.namespace}})
	}
	for _, o := range i.objects {
		if !isHook(o) && o.GetKind() != "ServiceMonitor" {
			ensure(t, o.DeepCopy())
		}
	}
}

// hooks returns the objects that Helm runs before it uninstalls the release.
func (i installation) hooks() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(i.objects), func(o *unstructured.Unstructured) bool { return !isHook(o) })
}

func isHook(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

func (i installation) deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	deployments, err := manifests.As[appsv1.Deployment](i.objects, "Deployment")
	if err != nil || len(deployments) != 1 {
		t.Fatalf("there are %d Deployments: %v", len(deployments), err)
	}
	return deployments[0]
}

// ensure creates an object, and deletes it after the test.
func ensure(t *testing.T, o client.Object) {
	t.Helper()
	if err := plane.Client().Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := plane.Client().Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// run starts the first container of a pod as a process on this machine, under the pod's
// ServiceAccount. The name must be unique among the processes.
func (i installation) run(t *testing.T, name string, pod corev1.PodSpec, more ...string) *controlplane.Process {
	t.Helper()
	kubeconfig, err := plane.AddUser(i.user(pod), "system:serviceaccounts", "system:serviceaccounts:"+i.namespace)
	if err != nil {
		t.Fatal(err)
	}
	variables := []string{}
	for _, v := range pod.Containers[0].Env {
		switch {
		case v.ValueFrom == nil:
			variables = append(variables, v.Name+"="+v.Value)
		case v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
			variables = append(variables, v.Name+"="+i.namespace)
		}
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--webhook-port=" + env.FreePort(t)} // tests of other packages run at the same time
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "$(RUNTIME_NAMESPACE)", i.namespace))
	}
	process, err := plane.StartProcess(name, program, append(args, more...), variables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(context.Background()) })
	return process
}

// user returns the user name that the API server gives to the ServiceAccount of a pod.
func (i installation) user(pod corev1.PodSpec) string {
	return "system:serviceaccount:" + i.namespace + ":" + pod.ServiceAccountName
}

// awaitOK waits until a path of a process answers with 200.
func awaitOK(t *testing.T, process *controlplane.Process, port, path string) {
	t.Helper()
	env.Eventually(t, "200 from "+path, func() (bool, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		switch {
		case err != nil && !process.Running():
			t.Fatalf("%s ended:\n%s", process, logOf(t, process))
		case err != nil:
			return false, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

// used returns the rights that a user has used, as "verb resource", without the requests
// that every user may make about itself. The test fails if a request was refused.
func used(t *testing.T, user string) []string {
	t.Helper()
	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, request := range audited {
		if request.User != user || strings.HasPrefix(request.Resource, "authorization.k8s.io/self") || strings.HasPrefix(request.Resource, "authentication.k8s.io/self") {
			continue
		}
		if request.Code == http.StatusForbidden {
			t.Errorf("refused: %s", request)
		}
		rights = append(rights, request.Verb+" "+request.Resource)
	}
	slices.Sort(rights)
	return slices.Compact(rights)
}
