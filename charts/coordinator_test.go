// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// coordinatorChart describes the values of the chart kube-deployment-coordinator that
// users of the first implementation know.
var coordinatorChart = chart{
	folder: "charts/kube-deployment-coordinator", release: "kube-deployment-coordinator", namespace: "kube-deployment-coordinator-system",
	fixed: []string{"webhook.name", "webhook.webhookName", "webhook.path", "webhook.admissionReviewVersions", "webhook.sideEffects", "webhook.failurePolicy"},
	needs: map[string]string{
		"minAvailable":                        "enablePodDisruptionBudget=true",
		"webhook.certManager.createIssuer":    "webhook.certManager.enabled=true",
		"webhook.certManager.issuerName":      "webhook.certManager.enabled=true",
		"webhook.certManager.issuerRef":       "webhook.certManager.enabled=true",
		"webhook.certManager.certificateName": "webhook.certManager.enabled=true",
		"webhook.certManager.secretName":      "webhook.certManager.enabled=true",
		"webhook.certManager.dnsNames":        "webhook.certManager.enabled=true",
	},
	settings: map[string]setting{
		"replicaCount":                        {"replicaCount=3", "replicas: 3"},
		"image.repository":                    {"image.repository=registry.example.com/it", `image: "registry.example.com/it:v`},
		"image.tag":                           {"image.tag=v9", `rollout-controller:v9"`},
		"image.digest":                        {"image.digest=sha256:" + strings.Repeat("a", 64), "@sha256:aaaa"},
		"image.pullPolicy":                    {"image.pullPolicy=Always", "imagePullPolicy: Always"},
		"imagePullSecrets":                    {"imagePullSecrets[0].name=login", "- name: login"},
		"nameOverride":                        {"nameOverride=other", "app.kubernetes.io/name: other"},
		"fullnameOverride":                    {"fullnameOverride=other", "name: other-controller-manager"},
		"extraArgs":                           {"extraArgs[0]=--zap-log-level=debug", "- --zap-log-level=debug"},
		"envFrom":                             {"envFrom[0].secretRef.name=proxy", "name: proxy"},
		"metricsPort":                         {"metricsPort=9999", "- --metrics-bind-address=:9999"},
		"healthPort":                          {"healthPort=9998", "- --health-probe-bind-address=:9998"},
		"enableServiceMonitor":                {"enableServiceMonitor=true", "kind: ServiceMonitor"},
		"enablePodDisruptionBudget":           {"enablePodDisruptionBudget=true", "kind: PodDisruptionBudget"},
		"minAvailable":                        {"minAvailable=2", "minAvailable: 2"},
		"networkPolicy.create":                {"networkPolicy.create=false", "!kind: NetworkPolicy"},
		"networkPolicy.metricsFrom":           {"networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus", "app: prometheus"},
		"service.type":                        {"service.type=NodePort", "type: NodePort"},
		"serviceAccount.create":               {"serviceAccount.create=false", "!kind: ServiceAccount\nmetadata"},
		"serviceAccount.name":                 {"serviceAccount.name=other", "serviceAccountName: other"},
		"serviceAccount.annotations":          {"serviceAccount.annotations.cloud=me", "cloud: me"},
		"leaderElection.enabled":              {"leaderElection.enabled=false", "- --leader-elect=false"},
		"leaderElection.id":                   {"leaderElection.id=mine", "- --leader-election-id=mine"},
		"webhook.enabled":                     {"webhook.enabled=false", "!kind: MutatingWebhookConfiguration"},
		"webhook.serviceName":                 {"webhook.serviceName=ask", "name: ask\n"},
		"webhook.operations":                  {"webhook.operations={CREATE}", "!- UPDATE"},
		"webhook.caBundle":                    {"webhook.caBundle=YQ==", "- --webhook-cert-dir=/certificate"},
		"webhook.annotations":                 {"webhook.annotations.team=us", "team: us"},
		"webhook.namespaceSelector":           {"webhook.namespaceSelector.matchLabels.team=us", "team: us"},
		"webhook.objectSelector":              {"webhook.objectSelector.matchLabels.team=us", "objectSelector:"},
		"webhook.certManager.enabled":         {"webhook.certManager.enabled=true", "cert-manager.io/inject-ca-from: kube-deployment-coordinator-system/kube-deployment-coordinator-webhook"},
		"webhook.certManager.createIssuer":    {"webhook.certManager.createIssuer=false", "!kind: Issuer\nmetadata"},
		"webhook.certManager.issuerName":      {"webhook.certManager.issuerName=signer", "name: signer"},
		"webhook.certManager.issuerRef":       {"webhook.certManager.issuerRef.kind=ClusterIssuer,webhook.certManager.issuerRef.name=all", "kind: ClusterIssuer"},
		"webhook.certManager.certificateName": {"webhook.certManager.certificateName=paper", "kube-deployment-coordinator-system/paper"},
		"webhook.certManager.secretName":      {"webhook.certManager.secretName=paper", "secretName: paper"},
		"webhook.certManager.dnsNames":        {"webhook.certManager.dnsNames={a.example.com}", "- a.example.com"},
		"podAnnotations":                      {"podAnnotations.mesh=out", "mesh: out"},
		"podSecurityContext":                  {"podSecurityContext.fsGroup=7", "fsGroup: 7"},
		"securityContext":                     {"securityContext.runAsUser=7", "runAsUser: 7"},
		"resources":                           {"resources.limits.memory=1Gi", "memory: 1Gi"},
		"livenessProbe":                       {"livenessProbe.periodSeconds=7", "periodSeconds: 7"},
		"readinessProbe":                      {"readinessProbe.periodSeconds=7", "periodSeconds: 7"},
		"nodeSelector":                        {"nodeSelector.pool=system", "pool: system"},
		"tolerations":                         {"tolerations[0].operator=Exists", "operator: Exists"},
		"affinity":                            {"affinity.nodeAffinity.weight=1", "nodeAffinity:"},
	},
	refused: map[string]string{
		"a value that does not exist":   "replicas=2",
		"a webhook that may block":      "webhook.failurePolicy=Fail",
		"a path that nobody serves":     "webhook.path=/hold",
		"a name that nobody looks for":  "webhook.webhookName=hold.example.com",
		"an operation next to these":    "webhook.operations={DELETE}",
		"a digest that is none":         "image.digest=latest",
		"a peer that is none":           "networkPolicy.metricsFrom[0].namespace=monitoring",
		"a port for the privileged":     "metricsPort=80",
		"an autoscaler":                 "hpa.enabled=true",
		"pull secrets that are no list": "imagePullSecrets.name=login",
	},
}

// documented contains the values of the HelmRelease that is documented for the first
// implementation.
const documented = "enableServiceMonitor=true,replicaCount=2,nodeSelector.pool=system,tolerations[0].operator=Exists," +
	"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1"

func TestDocumentedHelmReleaseGivesTheNamesThatAreDocumented(t *testing.T) {
	objects := objectsOf(t, coordinatorChart.rendered(t, "--set", documented))
	deployment := deploymentOf(t, objects)
	if got := deployment.Namespace + "/" + deployment.Name; got != "kube-deployment-coordinator-system/kube-deployment-coordinator-controller-manager" {
		t.Errorf("the Deployment is %s", got)
	}
	if only(objects, "MutatingWebhookConfiguration", "kube-deployment-coordinator-webhook").Object == nil {
		t.Error("the webhook is not called as it was")
	}
	for _, arg := range []string{"--controllers=deploymentcoordination", "--leader-elect=true", "--leader-election-id=kube-deployment-coordinator.containerinfra.nl"} {
		if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, arg) {
			t.Errorf("%s is not among the arguments %v", arg, args)
		}
	}
}

// Users may have copied all values of the first implementation's chart. They can keep
// them.
func TestValuesOfTheFirstImplementationAreAccepted(t *testing.T) {
	plain := objectsOf(t, coordinatorChart.rendered(t))
	kept := objectsOf(t, coordinatorChart.rendered(t, "--values", "testdata/containerinfra-values.yaml"))
	before, after := deploymentOf(t, plain).Spec.Template.Spec, deploymentOf(t, kept).Spec.Template.Spec
	if before.Containers[0].Image != after.Containers[0].Image {
		t.Errorf("it runs %s", after.Containers[0].Image)
	}
	if len(after.ImagePullSecrets) > 0 || len(after.Containers[0].EnvFrom) > 0 {
		t.Errorf("it has %v and %v", after.ImagePullSecrets, after.Containers[0].EnvFrom)
	}
	if only(kept, "Service", "webhook-service").Object == nil {
		t.Error("the Service of the webhook has another name")
	}
	mirrored := deploymentOf(t, objectsOf(t, coordinatorChart.rendered(t, "--values", "testdata/containerinfra-values.yaml",
		"--set", "image.repository=registry.example.com/rollout-controller,image.tag=v9")))
	if got := mirrored.Spec.Template.Spec.Containers[0].Image; got != "registry.example.com/rollout-controller:v9" {
		t.Errorf("a mirror of the right program is %s", got)
	}
}

// Metrics must be served in the way in which they are scraped.
func TestServiceMonitorFindsTheMetricsAsTheyAreServed(t *testing.T) {
	objects := objectsOf(t, coordinatorChart.rendered(t, "--set", documented))
	deployment := deploymentOf(t, objects)
	services, err := manifests.As[corev1.Service](objects, "Service")
	if err != nil {
		t.Fatal(err)
	}
	monitor := only(objects, "ServiceMonitor", "kube-deployment-coordinator")
	wanted, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	services = slices.DeleteFunc(services, func(s corev1.Service) bool {
		return !labels.SelectorFromSet(wanted).Matches(labels.Set(s.Labels))
	})
	if len(services) != 1 || len(endpoints) != 1 {
		t.Fatalf("it finds %d services, and has %d endpoints", len(services), len(endpoints))
	}
	endpoint, service := endpoints[0].(map[string]any), services[0]
	if endpoint["port"] != service.Spec.Ports[0].Name || endpoint["scheme"] != "http" {
		t.Errorf("it scrapes %v of %v", endpoint, service.Spec.Ports)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--metrics-secure=false") || !slices.Contains(container.Args, "--metrics-bind-address=:7712") {
		t.Errorf("metrics are served by %v", container.Args)
	}
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == service.Spec.Ports[0].TargetPort.String() && p.ContainerPort == 7712
	}) {
		t.Errorf("the Service leads to %v of %v", service.Spec.Ports[0].TargetPort, container.Ports)
	}
}

func TestWebhookLeavesNothingWhenItIsOff(t *testing.T) {
	objects := objectsOf(t, coordinatorChart.rendered(t, "--set", "webhook.enabled=false,webhook.certManager.enabled=true"))
	for _, o := range objects {
		if kind := o.GetKind(); strings.HasSuffix(kind, "WebhookConfiguration") || kind == "Certificate" || strings.Contains(o.GetName(), "webhook") {
			t.Errorf("there is %s %s", kind, o.GetName())
		}
	}
	container := deploymentOf(t, objects).Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Env, corev1.EnvVar{Name: "ENABLE_WEBHOOKS", Value: "false"}) {
		t.Errorf("the controller does not get its name: %v", container.Env)
	}
}

func TestAnotherNameForTheWebhookIsRefusedInWords(t *testing.T) {
	_, err := coordinatorChart.template(t, "--set", "webhook.name=mine")
	if err == nil || !strings.Contains(err.Error(), "the configuration can only be called kube-deployment-coordinator-webhook") {
		t.Errorf("the error is %v", err)
	}
}

// Except for the names, the roles are those of config/coordination.
func TestCoordinatorMayDoWhatTheComponentsLetItDo(t *testing.T) {
	for name, tt := range map[string]struct{ set, component string }{
		"with the webhook":    {"webhook.enabled=true", "deployment-coordination-webhook"},
		"without the webhook": {"webhook.enabled=false", "deployment-coordination"},
	} {
		t.Run(name, func(t *testing.T) {
			with, err := manifests.WithComponents(t.Context(), tt.component)
			if err != nil {
				t.Fatal(err)
			}
			without, err := manifests.Kustomize(t.Context(), manifests.Default)
			if err != nil {
				t.Fatal(err)
			}
			want := rulesOf(with)
			maps.DeleteFunc(want, func(name string, _ any) bool {
				_, before := rulesOf(without)[name]
				return before && !strings.HasSuffix(name, "leader-election-role")
			})
			// This chart contains only the coordinator: an uninstallation removes it.
			delete(want, "ClusterRole INSTALLATION-deploymentcoordination-cleanup-role")
			got := rulesOf(slices.DeleteFunc(objectsOf(t, coordinatorChart.rendered(t, "--set", tt.set)), isHook))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("config (-) and the chart (+):\n%s", diff)
			}
		})
	}
}

func TestChartOfCRDsHasTheKindAndNoValues(t *testing.T) {
	want, err := manifests.Kustomize(t.Context(), "config/coordination/crd")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := manifests.Rendered(t.Context(), "charts/kube-deployment-coordinator-crds", "crds", manifests.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	got := objectsOf(t, string(printed))
	for _, o := range got {
		if o.GetAnnotations()[helmAnnotation] != "keep" {
			t.Errorf("%s goes with the release, and all coordinations with it", o.GetName())
		}
		forgetHelm(o)
	}
	if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
		t.Errorf("config/coordination/crd (-) and the chart (+):\n%s", diff)
	}
	var values map[string]any
	if read(t, "charts/kube-deployment-coordinator-crds/values.yaml", &values); len(values) > 0 {
		t.Errorf("it has the values %v", values)
	}
	if entries, err := os.ReadDir("kube-deployment-coordinator-crds/templates"); err != nil || len(entries) != 1 {
		t.Errorf("it has the templates %v: %v", entries, err)
	}
}

func objectsOf(t *testing.T, printed string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Decode([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func deploymentOf(t *testing.T, objects []*unstructured.Unstructured) appsv1.Deployment {
	t.Helper()
	deployments, err := manifests.As[appsv1.Deployment](objects, "Deployment")
	if err != nil || len(deployments) != 1 {
		t.Fatalf("there are %d Deployments: %v", len(deployments), err)
	}
	return deployments[0]
}

// rulesOf returns the rules of all roles by name. It replaces the name of the
// installation with one fixed word.
func rulesOf(objects []*unstructured.Unstructured) map[string]any {
	name := strings.NewReplacer("rollout-controller", "INSTALLATION", "kube-deployment-coordinator", "INSTALLATION")
	rules := map[string]any{}
	for _, o := range objects {
		if strings.HasSuffix(o.GetKind(), "Role") {
			list, _, _ := unstructured.NestedSlice(o.Object, "rules")
			for _, rule := range list {
				if names, found, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames"); found {
					for i := range names {
						names[i] = name.Replace(names[i])
					}
					slices.Sort(names)
					rule.(map[string]any)["resourceNames"] = slices.Compact(names)
				}
			}
			rules[o.GetKind()+" "+name.Replace(o.GetName())] = list
		}
	}
	return rules
}
