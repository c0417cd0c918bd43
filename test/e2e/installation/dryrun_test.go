// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// strictly makes the API server check everything and store nothing.
var strictly = []client.PatchOption{
	client.DryRunAll, client.ForceOwnership, client.FieldOwner("installation"), client.FieldValidation(metav1.FieldValidationStrict),
}

func TestAPIServerAcceptsWhatIsInstalled(t *testing.T) {
	ensureNamespace(t, namespace())
	for name, render := range map[string]func() ([]*unstructured.Unstructured, error){
		"by kustomize": func() ([]*unstructured.Unstructured, error) {
			return manifests.Kustomize(t.Context(), manifests.Default)
		},
		"by kustomize with every component": func() ([]*unstructured.Unstructured, error) {
			return manifests.WithComponents(t.Context(), everyComponent...)
		},
		"by kustomize with the webhook": func() ([]*unstructured.Unstructured, error) {
			return manifests.WithComponents(t.Context(), "deployment-coordination-webhook")
		},
		"by kustomize, for StatefulSets alone": func() ([]*unstructured.Unstructured, error) {
			return manifests.Kustomize(t.Context(), "config/statefulset-rollout")
		},
		"by Helm, for Deployments alone": func() ([]*unstructured.Unstructured, error) {
			return manifests.Coordinator(t.Context(), manifests.Namespace)
		},
		"by Helm, for Deployments alone with everything": func() ([]*unstructured.Unstructured, error) {
			return manifests.Coordinator(t.Context(), manifests.Namespace, "--set=replicaCount=2,enablePodDisruptionBudget=true,webhook.caBundle=YQ==,webhook.objectSelector.matchLabels.a=b")
		},
		"by Helm": func() ([]*unstructured.Unstructured, error) { return manifests.Template(t.Context()) },
		"by Helm with every object": func() ([]*unstructured.Unstructured, error) {
			return manifests.Template(t.Context(), everyValue)
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				if err := dryRun(t, o); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
		})
	}
}

func TestDryRunRefusesAFieldThatDoesNotExist(t *testing.T) {
	ensureNamespace(t, namespace())
	objects, err := manifests.Kustomize(t.Context(), manifests.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			if err := unstructured.SetNestedField(o.Object, "5s", "spec", "template", "spec", "patience"); err != nil {
				t.Fatal(err)
			}
			if err := dryRun(t, o); err == nil {
				t.Error("a Deployment with a field that does not exist was accepted")
			}
		}
	}
}

// The controller also runs where the restricted standard is enforced.
func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	ensureNamespace(t, restricted)
	objects, err := manifests.Kustomize(t.Context(), manifests.Default)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := manifests.As[appsv1.Deployment](objects, "Deployment")
	if err != nil {
		t.Fatal(err)
	}
	template := deployments[0].Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: restricted.Name, Name: "controller"}, Spec: template.Spec}
	if err := plane.Client().Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := plane.Client().Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that may run as root: %v, want it forbidden", err)
	}
}

func dryRun(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return plane.Client().Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.ApplyPatchType, data), strictly...)
}

// ensureNamespace creates a namespace unless it exists.
func ensureNamespace(t *testing.T, n *corev1.Namespace) {
	t.Helper()
	if err := plane.Client().Create(t.Context(), n); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
