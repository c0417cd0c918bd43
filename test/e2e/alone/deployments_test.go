// SPDX-License-Identifier: Apache-2.0

package alone

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// documented contains the values of the HelmRelease that is documented for the chart.
const documented = "enableServiceMonitor=true,replicaCount=2,nodeSelector.pool=system,tolerations[0].operator=Exists"

func TestCoordinatorStartsByItsChartAlone(t *testing.T) {
	for name, values := range map[string]string{
		"default": "webhook.enabled=true", "documented": documented, "without-webhook": "webhook.enabled=false",
	} {
		t.Run(name, func(t *testing.T) {
			i := coordinator(t, "start-"+name, values)
			i.install(t)
			pod := i.deployment(t).Spec.Template.Spec
			process := i.run(t, "coordinator-"+name, pod)
			awaitOK(t, process, portOf(t, pod, "health"), "/readyz")
			awaitOK(t, process, portOf(t, pod, "health"), "/healthz")
			awaitOK(t, process, portOf(t, pod, "metrics"), "/metrics")
			for _, right := range used(t, i.user(pod)) {
				if strings.Contains(right, "fluxcd.io") || strings.Contains(right, "kuberik.com") || strings.Contains(right, "pods") {
					t.Errorf("the coordinator of Deployments alone did %s", right)
				}
			}
		})
	}
}

func TestDeploymentsTakeTurnsAndAreLetGoBeforeTheUninstallation(t *testing.T) {
	i := coordinator(t, "coordinator-system")
	i.install(t)
	own := i.deployment(t)
	process := i.run(t, "coordinator-turns", own.Spec.Template.Spec)
	fleet := scenario.Fleet{App: scenario.NewApp("turns", "shop"), Members: []string{"cart", "checkout", "front"}}
	fleet.Replicas = 1
	ensure(t, fleet.NamespaceObject())
	for _, o := range fleet.Objects("1.0.0", nil) {
		o.SetNamespace(fleet.Namespace)
		ensure(t, o)
	}
	env.AwaitDeployments(t, plane.Client(), fleet, "all rolled out, and paused since they are idle", func(d *appsv1.Deployment) bool {
		return d.Spec.Paused && d.Status.AvailableReplicas == 1 && d.Annotations[coordinationv1.HeldByAnnotation] == "shop"
	})
	holdByHand(t, fleet, "front")

	uninstall := hookOf(t, i)
	hook := i.run(t, "coordinator-uninstall", uninstall.Spec.Template.Spec)
	awaitStopped(t, own)
	if webhookGone(t) {
		t.Error("it is at work while the controller still is")
	}
	if err := process.Stop(t.Context()); err != nil { // as the kubelet does
		t.Fatal(err)
	}
	if err := hook.Wait(t.Context()); err != nil {
		t.Fatalf("the hook failed: %v", err)
	}
	env.AwaitDeployments(t, plane.Client(), fleet, "all let go, but for the one that is held by hand", func(d *appsv1.Deployment) bool {
		_, held := d.Annotations[coordinationv1.HeldByAnnotation]
		return !held && d.Spec.Paused == (d.Name == "front")
	})
	if !webhookGone(t) {
		t.Error("the webhook would hold them again")
	}
	for _, right := range spare(t, i, used(t, i.user(own.Spec.Template.Spec))) {
		if unused[right] == "" {
			t.Errorf("the right to %s is not used", right)
		}
	}
}

// unused contains the rights in the chart's roles that a test need not use. Each has a
// reason to be there.
var unused = map[string]string{
	"get admissionregistration.k8s.io/mutatingadmissionpolicies":       "reading and watching go together",
	"get admissionregistration.k8s.io/mutatingadmissionpolicybindings": "the same",
	"get apps/replicasets":                                         "the same",
	"get apps.containerinfra.nl/deploymentcoordinations":           "the contract with clients that bind to the role",
	"get apps.containerinfra.nl/deploymentcoordinations/status":    "the contract",
	"update apps.containerinfra.nl/deploymentcoordinations/status": "the contract",
	"patch /events":   "an event that is sent again",
	"update /secrets": "a certificate that is renewed",
}

// spare returns the rights of the chart's roles that are not among the used ones. It
// skips the roles for users.
func spare(t *testing.T, i installation, used []string) []string {
	t.Helper()
	roles, err := manifests.As[rbacv1.ClusterRole](i.objects, "Role", "ClusterRole")
	if err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, role := range roles {
		if len(role.Labels) > 0 && slices.ContainsFunc(slices.Collect(maps.Keys(role.Labels)), func(l string) bool {
			return strings.Contains(l, "/aggregate-to-")
		}) {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if verb == "list" && slices.Contains(used, "watch "+rule.APIGroups[0]+"/"+resource) {
						continue // clients list first if an API server cannot stream lists
					}
					rights = append(rights, verb+" "+rule.APIGroups[0]+"/"+resource)
				}
			}
		}
	}
	slices.Sort(rights)
	return slices.DeleteFunc(slices.Compact(rights), func(right string) bool { return slices.Contains(used, right) })
}

// hookOf installs the objects that Helm installs before it uninstalls the release, and
// returns the Job.
func hookOf(t *testing.T, i installation) batchv1.Job {
	t.Helper()
	for _, o := range i.hooks() {
		if o.GetKind() != "Job" {
			ensure(t, o.DeepCopy())
		}
	}
	jobs, err := manifests.As[batchv1.Job](i.hooks(), "Job")
	if err != nil || len(jobs) != 1 {
		t.Fatalf("there are %d Jobs: %v", len(jobs), err)
	}
	return jobs[0]
}

func holdByHand(t *testing.T, fleet scenario.Fleet, name string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, coordinationv1.RolloutPausedAnnotation, coordinationv1.RolloutPausedValue)
	if err := plane.Client().Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// awaitStopped waits until no replica of the controller is wanted.
func awaitStopped(t *testing.T, own appsv1.Deployment) {
	t.Helper()
	env.Eventually(t, "the controller's Deployment at zero", func() (bool, string) {
		d := &appsv1.Deployment{}
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(&own), d); err != nil {
			t.Fatal(err)
		}
		return *d.Spec.Replicas == 0 && d.Status.Replicas == 0, fmt.Sprintf("%d wanted, %d there", *d.Spec.Replicas, d.Status.Replicas)
	})
}

func webhookGone(t *testing.T) bool {
	t.Helper()
	err := plane.Client().Get(t.Context(), client.ObjectKey{Name: "kube-deployment-coordinator-webhook"}, &admissionv1.MutatingWebhookConfiguration{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

func portOf(t *testing.T, pod corev1.PodSpec, name string) string {
	t.Helper()
	for _, port := range pod.Containers[0].Ports {
		if port.Name == name {
			return fmt.Sprint(port.ContainerPort)
		}
	}
	t.Fatalf("there is no port %s", name)
	return ""
}
