// SPDX-License-Identifier: Apache-2.0

// Package monitoring_test checks, without a control plane, that alerts and dashboard use
// metrics that exist. test/e2e/monitoring evaluates them on a real Prometheus.
package monitoring_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/monitoring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// own returns the metrics of the controller and their labels, including the series that
// Prometheus creates for a histogram.
func own(t *testing.T) map[string][]string {
	t.Helper()
	described := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	all := map[string][]string{}
	for _, collector := range []prometheus.Collector{
		metrics.NewRollouts(nil), metrics.NewDurations(nil, nil), metrics.Build("1.0.0"), metrics.NewGroups(), metrics.NewQuarantines(), metrics.Unreadable(nil),
	} {
		descriptions := make(chan *prometheus.Desc)
		go func() { collector.Describe(descriptions); close(descriptions) }()
		for description := range descriptions {
			found := described.FindStringSubmatch(description.String())
			if found == nil {
				t.Fatalf("cannot read %s", description)
			}
			names := strings.Split(found[2], ",")
			all[found[1]] = names
			all[found[1]+"_bucket"] = append([]string{"le"}, names...)
		}
	}
	return all
}

// inWords maps the waiting time of an alert to the words of the guide.
var inWords = map[string]string{
	"": "at once", "1m": "after a minute", "2m": "after two minutes", "5m": "after five minutes",
	"15m": "after a quarter of an hour", "30m": "after half an hour", "1d": "after a day", "2d": "after two days",
}

// ofNotifications are the metrics of the queue of Flux events.
var ofNotifications = map[string][]string{
	"rollout_notifications_sent_total":    {"result"},
	"rollout_notifications_dropped_total": {"reason"},
	"rollout_notifications_queue_length":  nil,
}

// ofMeasurements are the metrics of the measurements of HealthChecks.
var ofMeasurements = map[string][]string{"rollout_probe_lag_seconds": nil}

func TestQueriesSelectOnlyWhatThereIs(t *testing.T) {
	g := NewWithT(t)
	queries, err := monitoring.Queries()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(queries)).To(BeNumerically(">", 40))
	selectors, err := monitoring.Selectors(t.Context(), queries)
	g.Expect(err).NotTo(HaveOccurred())
	_, known, err := monitoring.CustomResources()
	g.Expect(err).NotTo(HaveOccurred())
	maps.Copy(known, own(t))
	maps.Copy(known, ofNotifications)
	maps.Copy(known, ofMeasurements)
	for i, query := range queries {
		g.Expect(selectors[i]).NotTo(BeEmpty(), query.Of)
		for _, s := range selectors[i] {
			if !strings.HasPrefix(s.Metric, "rollout_") && !strings.HasPrefix(s.Metric, "gotk_") {
				continue // the end-to-end tests check that metrics of others exist
			}
			g.Expect(known).To(HaveKey(s.Metric), query.Of)
			for _, label := range s.Labels {
				g.Expect(known[s.Metric]).To(ContainElement(label), "%s selects %s by it", query.Of, s.Metric)
			}
		}
	}
}

func TestParserFindsMistakes(t *testing.T) {
	g := NewWithT(t)
	_, err := monitoring.Selectors(t.Context(), []monitoring.Query{{Of: "a good one", Expr: "up"}, {Of: "a bad one", Expr: "sum by (up"}})
	g.Expect(err).To(MatchError(And(ContainSubstring("a bad one"), Not(ContainSubstring("a good one")))))
}

func TestBothFormsOfTheRulesAreTheSame(t *testing.T) {
	g := NewWithT(t)
	var plain, operators map[string]any
	read(t, "rules.yaml", &plain)
	read(t, "prometheusrule.yaml", &operators)
	g.Expect(operators["spec"]).To(Equal(map[string]any{"groups": plain["groups"]}))
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	g := NewWithT(t)
	alerts, err := monitoring.Alerts()
	g.Expect(err).NotTo(HaveOccurred())
	guide, err := os.ReadFile("../../docs/guides/monitoring.md")
	g.Expect(err).NotTo(HaveOccurred())
	const page = "https://github.com/fluxrollouts/rollout-controller/blob/main/docs/guides/monitoring.md#"
	for _, alert := range alerts {
		g.Expect(alert.Annotations).To(And(HaveKey("summary"), HaveKey("description")), alert.Alert)
		g.Expect(alert.Annotations["runbook_url"]).To(Equal(page+strings.ToLower(alert.Alert)), alert.Alert)
		_, runbook, _ := strings.Cut(string(guide), "\n### "+alert.Alert+"\n\n")
		g.Expect(inWords).To(HaveKey(alert.For), alert.Alert)
		severity := alert.Labels["severity"]
		g.Expect(runbook).To(HavePrefix(strings.ToUpper(severity[:1])+severity[1:]+", "+inWords[alert.For]), alert.Alert)
		g.Expect([]string{"info", "warning", "critical"}).To(ContainElement(alert.Labels["severity"]), alert.Alert)
	}
}

func TestGuideExplainsEveryMetric(t *testing.T) {
	g := NewWithT(t)
	guide, err := os.ReadFile("../../docs/guides/monitoring.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, known, err := monitoring.CustomResources()
	g.Expect(err).NotTo(HaveOccurred())
	maps.Copy(known, ofNotifications)
	maps.Copy(known, ofMeasurements)
	for name, names := range own(t) {
		if !strings.HasSuffix(name, "_bucket") {
			known[name] = names
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		g.Expect(string(guide)).To(MatchRegexp("(?m)^\\| `%s` \\|", name))
		for _, label := range known[name] {
			if label != "" && !strings.HasPrefix(label, "customresource_") {
				g.Expect(string(guide)).To(ContainSubstring("`"+label+"`"), "of %s", name)
			}
		}
	}
}

func TestPrometheusOperatorFindsTheController(t *testing.T) {
	g := NewWithT(t)
	rendered, err := manifests.Kustomize(t.Context(), "config/monitoring")
	g.Expect(err).NotTo(HaveOccurred())
	monitor := pick(t, rendered, "ServiceMonitor")
	matches, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	g.Expect(err).NotTo(HaveOccurred())
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	g.Expect(err).NotTo(HaveOccurred())

	installed, err := manifests.Kustomize(t.Context(), manifests.Default)
	g.Expect(err).NotTo(HaveOccurred())
	services, err := manifests.As[corev1.Service](installed, "Service")
	g.Expect(err).NotTo(HaveOccurred())
	services = slices.DeleteFunc(services, func(s corev1.Service) bool {
		return !labels.SelectorFromSet(matches).Matches(labels.Set(s.Labels))
	})
	g.Expect(services).To(HaveLen(1))
	g.Expect(services[0].Spec.Ports).To(ContainElement(HaveField("Name", endpoints[0].(map[string]any)["port"])))
}

// shipped returns the objects of all manifests that contain a ServiceMonitor, by the
// folder that ships them.
func shipped(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	monitoring, err := manifests.Kustomize(t.Context(), "config/monitoring")
	g.Expect(err).NotTo(HaveOccurred())
	installed, err := manifests.Kustomize(t.Context(), manifests.Default)
	g.Expect(err).NotTo(HaveOccurred())
	chart, err := manifests.Template(t.Context(), "--set=monitoring.serviceMonitor.create=true,monitoring.namespace=elsewhere")
	g.Expect(err).NotTo(HaveOccurred())
	coordinator, err := manifests.Coordinator(t.Context(), manifests.Namespace, "--set=enableServiceMonitor=true")
	g.Expect(err).NotTo(HaveOccurred())
	return map[string][]*unstructured.Unstructured{
		"config": append(installed, monitoring...), "charts/rollout-controller": chart, "charts/kube-deployment-coordinator": coordinator,
	}
}

// Each endpoint that a ServiceMonitor selects receives the token. So the token must not
// be that of Prometheus, and no endpoint in a tenant's namespace may receive it.
func TestServiceMonitorsShowNobodyATokenOfValue(t *testing.T) {
	for name, objects := range shipped(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			monitor := pick(t, objects, "ServiceMonitor")
			g.Expect(monitor.GetNamespace()).To(Equal(manifests.Namespace))
			text, err := yaml.Marshal(monitor.Object)
			g.Expect(err).NotTo(HaveOccurred())
			for _, word := range []string{"any:", "bearerTokenFile", "bearerTokenSecret", "insecureSkipVerify"} {
				g.Expect(string(text)).NotTo(ContainSubstring(word))
			}
			names, chosen, err := unstructured.NestedStringSlice(monitor.Object, "spec", "namespaceSelector", "matchNames")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(!chosen || slices.Equal(names, []string{manifests.Namespace})).To(BeTrue(), "it looks into %v", names)
		})
	}
}

func TestTokenOfTheScraperReadsMetricsAndNothingElse(t *testing.T) {
	for name, objects := range shipped(t) {
		endpoints, _, err := unstructured.NestedSlice(pick(t, objects, "ServiceMonitor").Object, "spec", "endpoints")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		credentials, secured, err := unstructured.NestedStringMap(endpoints[0].(map[string]any), "authorization", "credentials")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if !secured {
			NewWithT(t).Expect(endpoints[0]).To(HaveKeyWithValue("scheme", "http"), name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secrets, err := manifests.As[corev1.Secret](objects, "Secret")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(secrets).To(ContainElement(And(HaveField("Name", credentials["name"]), HaveField("Namespace", manifests.Namespace),
				HaveField("Type", corev1.SecretTypeServiceAccountToken))))
			g.Expect(credentials["key"]).To(Equal(corev1.ServiceAccountTokenKey))
			at := slices.IndexFunc(secrets, func(s corev1.Secret) bool { return s.Name == credentials["name"] })
			account := rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: manifests.Namespace, Name: secrets[at].Annotations[corev1.ServiceAccountNameKey],
			}
			bindings, err := manifests.As[rbacv1.ClusterRoleBinding](objects, "ClusterRoleBinding", "RoleBinding")
			g.Expect(err).NotTo(HaveOccurred())
			bindings = slices.DeleteFunc(bindings, func(b rbacv1.ClusterRoleBinding) bool { return !slices.Contains(b.Subjects, account) })
			g.Expect(bindings).To(HaveLen(1))
			roles, err := manifests.As[rbacv1.ClusterRole](objects, "ClusterRole")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(roles).To(ContainElement(And(HaveField("Name", bindings[0].RoleRef.Name),
				HaveField("Rules", Equal([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}})))))
		})
	}
}

// Prometheus shows the token only to an endpoint that has the key of the certificate.
func TestPrometheusTrustsTheCertificateThatTheControllerKeeps(t *testing.T) {
	for _, name := range []string{"config", "charts/rollout-controller"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects := shipped(t)[name]
			endpoints, _, err := unstructured.NestedSlice(pick(t, objects, "ServiceMonitor").Object, "spec", "endpoints")
			g.Expect(err).NotTo(HaveOccurred())
			secret, _, err := unstructured.NestedStringMap(endpoints[0].(map[string]any), "tlsConfig", "ca", "secret")
			g.Expect(err).NotTo(HaveOccurred())
			host, _, err := unstructured.NestedString(endpoints[0].(map[string]any), "tlsConfig", "serverName")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(secret).To(HaveKeyWithValue("key", certificates.AuthoritiesKey))
			g.Expect(host).To(Equal(secret["name"] + "." + manifests.Namespace + ".svc"))

			deployments, err := manifests.As[appsv1.Deployment](objects, "Deployment")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(deployments[0].Spec.Template.Spec.Containers[0].Args).To(ContainElement("--metrics-cert-secret=" + secret["name"]))
			secrets, err := manifests.As[corev1.Secret](objects, "Secret")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(secrets).To(ContainElement(And(HaveField("Name", secret["name"]), HaveField("Data", BeEmpty()),
				HaveField("Type", corev1.SecretTypeOpaque))), "whoever applies it would own what the controller writes")
			roles, err := manifests.As[rbacv1.Role](objects, "Role")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(roles).To(ContainElement(HaveField("Rules", Equal([]rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret["name"]}, Verbs: []string{"get", "list", "watch", "update"},
			}}))))
		})
	}
}

func TestChartsFindTheirConfigurationAndDashboard(t *testing.T) {
	g := NewWithT(t)
	rendered, err := manifests.Kustomize(t.Context(), "config/monitoring")
	g.Expect(err).NotTo(HaveOccurred())
	maps, err := manifests.As[corev1.ConfigMap](rendered, "ConfigMap")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(maps).To(ConsistOf(
		And(HaveField("Name", "rollout-controller-kube-state-metrics-config"), HaveField("Data", HaveKey("values.yaml"))),
		And(HaveField("Name", "rollout-controller-grafana-dashboards"), HaveField("Data", HaveKey("rollouts.json")),
			HaveField("Labels", HaveKeyWithValue("grafana_dashboard", "1"))),
	))
	pick(t, rendered, "PrometheusRule")
}

func pick(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
