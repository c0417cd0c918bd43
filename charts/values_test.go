// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// chart is one of the charts, with the name and the namespace of its release.
type chart struct {
	folder, release, namespace string
	// settings contains, for each value, how to set it to something else, and a text that
	// appears in the manifests only then. If the text begins with !, it appears only
	// before the change.
	settings map[string]setting
	// needs contains what must be set for some values to have an effect.
	needs map[string]string
	// fixed are values that accept nothing else, or that have no effect.
	fixed []string
	// refused are values that the schema must refuse. The key describes the mistake.
	refused map[string]string
}

type setting struct{ set, effect string }

var mainChart = chart{
	folder: manifests.Chart, release: manifests.Release, namespace: manifests.Namespace,
	settings: settings, needs: needs, refused: refused,
}

func TestEveryValueHasItsEffect(t *testing.T) {
	for _, c := range []chart{mainChart, coordinatorChart} {
		names := slices.Sorted(maps.Keys(c.defaults(t)))
		tested := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(c.settings)), c.fixed)))
		if diff := cmp.Diff(names, tested); diff != "" {
			t.Errorf("%s: values (-) and those that are tested (+):\n%s", c.folder, diff)
		}
		plain := c.rendered(t)
		for name, setting := range c.settings {
			t.Run(c.release+"/"+name, func(t *testing.T) {
				t.Parallel()
				text, absent := strings.CutPrefix(setting.effect, "!")
				before, set := plain, setting.set
				if needs, depends := c.needs[name]; depends {
					before, set = c.rendered(t, "--set", needs), needs+","+set
				}
				after := c.rendered(t, "--set", set)
				if strings.Contains(before, text) != absent || strings.Contains(after, text) == absent {
					t.Errorf("%s has not the effect %q", set, setting.effect)
				}
			})
		}
	}
}

func TestSchemaRefusesWrongValues(t *testing.T) {
	for _, c := range []chart{mainChart, coordinatorChart} {
		for name, set := range c.refused {
			t.Run(c.release+"/"+name, func(t *testing.T) {
				t.Parallel()
				if _, err := c.template(t, "--set", set); err == nil || !strings.Contains(err.Error(), "don't meet the specifications of the schema") {
					t.Errorf("%s: %v, want the schema to refuse it", set, err)
				}
			})
		}
	}
}

func TestReadmeListsEveryValueWithItsDefault(t *testing.T) {
	for _, c := range []chart{mainChart, coordinatorChart} {
		content, err := os.ReadFile(filepath.Join(parts.Root(), c.folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| .+ \\|$").FindAllStringSubmatch(string(content), -1) {
			listed[row[1]] = row[2]
		}
		if diff := cmp.Diff(c.defaults(t), listed); diff != "" {
			t.Errorf("%s: values (-) and the table in the README (+):\n%s", c.folder, diff)
		}
	}
}

var needs = map[string]string{
	"web.publicURL":                    "web.enabled=true,web.publicURL=https://before.example.com",
	"web.tlsSecret":                    "web.enabled=true,web.publicURL=https://rollouts.example.com",
	"web.apiServers":                   "web.enabled=true,web.publicURL=https://rollouts.example.com",
	"web.resources":                    "web.enabled=true,web.publicURL=https://rollouts.example.com",
	"signingKeySecret":                 "clusterName=staging-eu",
	"prometheusCredentials":            "prometheusAddress=http://prometheus:9090",
	"deploymentCoordination.crd":       "deploymentCoordination.enabled=true",
	"deploymentCoordination.admission": "deploymentCoordination.enabled=true",
}

var settings = map[string]setting{
	"replicas":                                {"replicas=3", "kind: PodDisruptionBudget"},
	"fullnameOverride":                        {"fullnameOverride=other", "name: other-manager-role"},
	"crds.install":                            {"crds.install=false", "!kind: CustomResourceDefinition"},
	"crds.keep":                               {"crds.keep=false", "!helm.sh/resource-policy: keep"},
	"rbac.create":                             {"rbac.create=false", "!kind: ClusterRole"},
	"rbac.registryCredentials":                {"rbac.registryCredentials=false", "!name: rollout-controller-registry-credentials-rolebinding"},
	"rbac.healthWorkloads":                    {"rbac.healthWorkloads=false", "!name: rollout-controller-health-workloads-rolebinding"},
	"rbac.tenantView":                         {"rbac.tenantView=true", "name: rollout-controller-clusterrolloutschedule-viewer-rolebinding"},
	"rbac.aggregateGates":                     {"rbac.aggregateGates=false", "!aggregate-to-edit: \"true\"\n  name: rollout-controller-rolloutgate-editor-role"},
	"serviceAccount.create":                   {"serviceAccount.create=false", "!kind: ServiceAccount\nmetadata"},
	"serviceAccount.name":                     {"serviceAccount.name=other", "serviceAccountName: other"},
	"serviceAccount.annotations":              {"serviceAccount.annotations.cloud=me", "cloud: me"},
	"namespace.create":                        {"namespace.create=true", "kind: Namespace"},
	"image.repository":                        {"image.repository=registry.example.com/it", `image: "registry.example.com/it:v`},
	"image.tag":                               {"image.tag=v9", `rollout-controller:v9"`},
	"image.digest":                            {"image.digest=sha256:" + strings.Repeat("a", 64), "@sha256:aaaa"},
	"image.pullPolicy":                        {"image.pullPolicy=Always", "imagePullPolicy: Always"},
	"imagePullSecrets":                        {"imagePullSecrets[0].name=login", "- name: login"},
	"concurrent":                              {"concurrent=4", "--concurrent=4"},
	"watchLabelSelector":                      {"watchLabelSelector=!sharding.fluxcd.io/key", `- "--watch-label-selector=!sharding.fluxcd.io/key"`},
	"noCrossNamespaceRefs":                    {"noCrossNamespaceRefs=true", "--no-cross-namespace-refs"},
	"quarantineScope":                         {"quarantineScope=Cluster", "- --quarantine-scope=Cluster"},
	"approvals.enabled":                       {"approvals.enabled=true", "name: rollout-controller-withdrawals"},
	"approvals.deployUser":                    {"approvals.deployUser=true", "name: rollout-controller-deploy-user"},
	"approvals.sign":                          {"approvals.sign=true", "name: rollout-controller-sign-choices"},
	"approvals.identity":                      {"approvals.identity=Trusted", "- --approval-identity=Trusted"},
	"noOwnRegistryCredentials":                {"noOwnRegistryCredentials=false", "- --no-own-registry-credentials=false"},
	"clusterName":                             {"clusterName=staging-eu", `- "--cluster-name=staging-eu"`},
	"signingKeySecret":                        {"signingKeySecret=key", "- --signing-key-secret=key"},
	"trustedKeysSecret":                       {"trustedKeysSecret=keys", "- --trusted-keys-secret=keys"},
	"healthDestinations":                      {"healthDestinations[0]=https://*.example.com", `- "--health-destinations=https://*.example.com"`},
	"prometheusAddress":                       {"prometheusAddress=http://prometheus.monitoring.svc:9090", `- "--prometheus-address=http://prometheus.monitoring.svc:9090"`},
	"prometheusCredentials":                   {"prometheusCredentials=mimir", "- --prometheus-credentials=mimir"},
	"deploymentCoordination.enabled":          {"deploymentCoordination.enabled=true", "--controllers=*,deploymentcoordination"},
	"deploymentCoordination.crd":              {"deploymentCoordination.crd=false", "!name: deploymentcoordinations.apps.containerinfra.nl"},
	"deploymentCoordination.admission":        {"deploymentCoordination.admission=none", "!kind: MutatingAdmissionPolicy\n"},
	"statefulSetRollout.enabled":              {"statefulSetRollout.enabled=true", "--controllers=*,statefulsetrollout"},
	"web.enabled":                             {"web.enabled=true,web.publicURL=https://rollouts.example.com", "- /rollout-web"},
	"web.publicURL":                           {"web.publicURL=https://rollouts.example.com", "- --public-url=https://rollouts.example.com"},
	"web.tlsSecret":                           {"web.tlsSecret=page-tls", "secretName: page-tls"},
	"web.apiServers":                          {"web.apiServers[0]=10.0.0.1/32", "cidr: 10.0.0.1/32"},
	"web.resources":                           {"web.resources.limits.memory=1Gi", "memory: 1Gi"},
	"logLevel":                                {"logLevel=debug", "--log-level=debug"},
	"extraArgs":                               {"extraArgs[0]=--zap-log-level=debug", "- --zap-log-level=debug"},
	"extraEnv":                                {"extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=proxy", "- name: HTTPS_PROXY"},
	"extraVolumes":                            {"extraVolumes[0].name=login,extraVolumes[0].secret.secretName=docker", "secretName: docker"},
	"extraVolumeMounts":                       {"extraVolumeMounts[0].name=login,extraVolumeMounts[0].mountPath=/login", "mountPath: /login"},
	"resources":                               {"resources.limits.memory=1Gi", "memory: 1Gi"},
	"networkPolicy.create":                    {"networkPolicy.create=false", "!kind: NetworkPolicy"},
	"eventsAddress":                           {"eventsAddress=http://elsewhere/", "--events-addr=http://elsewhere/"},
	"notificationAccess.create":               {"notificationAccess.create=true", "app: notification-controller"},
	"notificationAccess.namespace":            {"notificationAccess.create=true,notificationAccess.namespace=flux", "namespace: flux\n"},
	"monitoring.namespace":                    {"monitoring.prometheusRule.create=true,monitoring.namespace=watch", "namespace: watch"},
	"monitoring.labels":                       {"monitoring.serviceMonitor.create=true,monitoring.labels.release=prometheus", "release: prometheus"},
	"monitoring.serviceMonitor.create":        {"monitoring.serviceMonitor.create=true", "kind: ServiceMonitor"},
	"monitoring.serviceMonitor.interval":      {"monitoring.serviceMonitor.create=true,monitoring.serviceMonitor.interval=30s", "interval: 30s"},
	"monitoring.serviceMonitor.scrapeTimeout": {"monitoring.serviceMonitor.create=true,monitoring.serviceMonitor.scrapeTimeout=20s", "scrapeTimeout: 20s"},
	"monitoring.prometheusRule.create":        {"monitoring.prometheusRule.create=true", "kind: PrometheusRule"},
	"monitoring.dashboard.create":             {"monitoring.dashboard.create=true", "grafana_dashboard:"},
	"monitoring.kubeStateMetrics.create":      {"monitoring.kubeStateMetrics.create=true", "name: rollout-controller-kube-state-metrics-config"},
	"commonLabels":                            {"commonLabels.cost=ours", "cost: ours"},
	"deploymentAnnotations":                   {"deploymentAnnotations.reload=always", "reload: always"},
	"podAnnotations":                          {"podAnnotations.mesh=out", "mesh: out"},
	"podLabels":                               {"podLabels.team=us", "team: us"},
	"podSecurityContext":                      {"podSecurityContext.fsGroup=65532", "fsGroup: 65532"},
	"securityContext":                         {"securityContext.runAsUser=1000", "runAsUser: 1000"},
	"nodeSelector":                            {"nodeSelector.pool=system", "pool: system"},
	"tolerations":                             {"tolerations[0].operator=Exists", "operator: Exists"},
	"affinity":                                {"affinity.nodeAffinity.weight=1", "nodeAffinity:"},
	"topologySpreadConstraints":               {"topologySpreadConstraints[0].topologyKey=zone", "topologyKey: zone"},
	"priorityClassName":                       {"priorityClassName=high", "priorityClassName: high"},
}

var refused = map[string]string{
	"a value that does not exist":         "replica=2",
	"one that does not exist below":       "image.tags=v1",
	"a text for a number":                 "replicas=two",
	"less than none":                      "replicas=-1",
	"a text for a yes or no":              "crds.install=please",
	"a name that is too long":             "fullnameOverride=" + strings.Repeat("a", 29),
	"a name with capitals":                "serviceAccount.name=Admin",
	"a form of admission that is none":    "deploymentCoordination.admission=always",
	"a digest that is none":               "image.digest=latest",
	"a text for own logins":               "noOwnRegistryCredentials=never",
	"a scope that is none":                "quarantineScope=namespace",
	"a scope that tenants must not have":  "quarantineScope=Cluster,noCrossNamespaceRefs=true",
	"a cluster whose name is two words":   "clusterName=staging eu",
	"a key of a cluster without a name":   "signingKeySecret=key",
	"a Secret that cannot exist":          "trustedKeysSecret=Keys",
	"a destination without a scheme":      "healthDestinations[0]=status.example.com",
	"a destination with a path":           "healthDestinations[0]=https://status.example.com/shop",
	"a Prometheus without a scheme":       "prometheusAddress=prometheus:9090",
	"a tag that is none":                  "image.tag=a/b",
	"a policy that does not exist":        "image.pullPolicy=Sometimes",
	"nobody at work":                      "concurrent=0",
	"a level that is none":                "logLevel=loud",
	"a page that nobody can reach":        "web.enabled=true",
	"a page without TLS":                  "web.enabled=true,web.publicURL=http://rollouts.example.com",
	"an API server that is no network":    "web.apiServers[0]=api.example.com",
	"a volume without a name":             "extraVolumes[0].emptyDir.medium=Memory",
	"a mount without a path":              "extraVolumeMounts[0].name=login",
	"an interval that is none":            "monitoring.serviceMonitor.interval=often",
	"an argument that is none":            "extraArgs[0]=verbose",
	"a variable without a name":           "extraEnv[0].value=1",
	"a quantity that is none":             "resources.limits.memory=much",
	"a resource list that does not exist": "resources.limit.memory=1Gi",
	"an address that is none":             "eventsAddress=notification-controller",
	"a monitor that does not exist":       "monitoring.podMonitor.create=true",
	"a secret without a name":             "imagePullSecrets[0].secret=login",
}

// handedOn are values that a chart passes on as a whole.
var handedOn = []string{"resources", "nodeSelector", "podSecurityContext", "securityContext", "livenessProbe", "readinessProbe"}

// defaults returns the values of the chart as JSON.
func (c chart) defaults(t *testing.T) map[string]string {
	t.Helper()
	var values map[string]any
	read(t, filepath.Join(c.folder, "values.yaml"), &values)
	all := map[string]string{}
	var add func(prefix string, values map[string]any)
	add = func(prefix string, values map[string]any) {
		for name, value := range values {
			group, isGroup := value.(map[string]any)
			whole := slices.Contains(handedOn, name) || len(group) == 0
			if isGroup && !whole {
				add(prefix+name+".", group)
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			all[prefix+name] = string(text)
		}
	}
	add("", values)
	return all
}

// rendered returns the manifests that the chart renders.
func (c chart) rendered(t *testing.T, args ...string) string {
	t.Helper()
	printed, err := c.template(t, args...)
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", args, err))
	}
	return string(printed)
}

func (c chart) template(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	return manifests.Rendered(t.Context(), c.folder, c.release, c.namespace, args...)
}
