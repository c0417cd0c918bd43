// SPDX-License-Identifier: Apache-2.0

// Package config_test checks that the manifests of this folder match the types of the API
// and the names that existing installations rely on.
package config_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// workloadLabel on a ClusterRole lets HealthChecks read the resources that the role
// lists.
const workloadLabel = "rollout-controller.kuberik.com/aggregate-to-health"

func TestInstallationKeepsTheNamesThatOthersRelyOn(t *testing.T) {
	g := NewWithT(t)
	g.Expect(installed(t).names()).To(ContainElements(
		"Namespace/kuberik-system",
		"ServiceAccount/kuberik-system/rollout-controller-controller-manager",
		"Deployment/kuberik-system/rollout-controller-controller-manager",
		"ClusterRole/rollout-controller-manager-role",
		"ClusterRole/rollout-controller-rollout-admin-role",
		"ClusterRole/rollout-controller-rollout-editor-role",
		"ClusterRole/rollout-controller-rollout-viewer-role",
		"ClusterRole/rollout-controller-rolloutgate-editor-role",
		"ClusterRole/rollout-controller-rolloutgate-viewer-role",
		"ClusterRole/rollout-controller-healthcheck-editor-role",
		"ClusterRole/rollout-controller-healthcheck-viewer-role",
		"ClusterRole/rollout-controller-metrics-reader",
		"ClusterRole/rollout-controller-metrics-auth-role",
		"Role/kuberik-system/rollout-controller-leader-election-role",
		"CustomResourceDefinition/rollouts.kuberik.com",
		"CustomResourceDefinition/rolloutgates.kuberik.com",
		"CustomResourceDefinition/healthchecks.kuberik.com",
		"CustomResourceDefinition/rolloutschedules.kuberik.com",
		"CustomResourceDefinition/clusterrolloutschedules.kuberik.com",
		"CustomResourceDefinition/environments.environments.kuberik.com",
		"CustomResourceDefinition/releasequarantines.kuberik.com",
		"CustomResourceDefinition/clusterreleasequarantines.kuberik.com",
		"CustomResourceDefinition/rolloutapprovals.kuberik.com",
		"CustomResourceDefinition/clusterrolloutgates.kuberik.com",
	))
}

func TestNoRoleHasAWildcard(t *testing.T) {
	g := NewWithT(t)
	for _, role := range installed(t).roles(t) {
		for _, rule := range role.Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
				g.Expect(strings.Join(list, " ")).NotTo(ContainSubstring("*"), role.Name)
			}
		}
	}
}

func TestManagerRoleAllowsWhatTheDashboardWritesThroughIt(t *testing.T) {
	rules := installed(t).role(t, "rollout-controller-manager-role").Rules
	for resource, verbs := range map[string][]string{
		"kuberik.com/rollouts":                       {"get", "list", "watch", "patch", "update"},
		"kuberik.com/rollouts/status":                {"get", "patch", "update"},
		"kuberik.com/healthchecks":                   {"get", "list", "watch", "patch", "update"},
		"kuberik.com/healthchecks/status":            {"get", "patch", "update"},
		"kuberik.com/rolloutgates":                   {"get", "list", "watch"},
		"source.toolkit.fluxcd.io/ocirepositories":   {"get", "list", "watch", "patch", "update"},
		"kustomize.toolkit.fluxcd.io/kustomizations": {"get", "list", "watch", "patch", "update"},
		"image.toolkit.fluxcd.io/imagepolicies":      {"get", "list", "watch"},
		"image.toolkit.fluxcd.io/imagerepositories":  {"get", "list", "watch"},
		"kuberik.com/rolloutschedules":               {"get", "list", "watch"},
		"kuberik.com/clusterrolloutschedules":        {"get", "list", "watch"},
		"environments.kuberik.com/environments":      {"get", "list", "watch"},
		"/namespaces":                                {"get", "list", "watch"},
		"/events":                                    {"create", "patch"},
	} {
		t.Run(resource, func(t *testing.T) {
			NewWithT(t).Expect(allowedVerbs(rules, resource)).To(ContainElements(verbs))
		})
	}
}

func TestManagerRolePatchesLateKindsAndReadsItsCRDs(t *testing.T) {
	g := NewWithT(t)
	rules := installed(t).role(t, "rollout-controller-manager-role").Rules
	g.Expect(allowedVerbs(rules, "helm.toolkit.fluxcd.io/helmreleases")).To(ConsistOf("get", "list", "watch", "patch"))
	g.Expect(allowedVerbs(rules, "source.toolkit.fluxcd.io/gitrepositories")).To(ConsistOf("get", "list", "watch", "patch"))
	const definitions = "customresourcedefinitions"
	g.Expect(allowedVerbs(rules, "apiextensions.k8s.io/"+definitions)).To(ConsistOf("list", "watch"))
	for _, rule := range rules {
		if slices.Contains(rule.Resources, definitions) {
			g.Expect(rule.ResourceNames).To(ConsistOf(
				"helmreleases.helm.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io", "environments.environments.kuberik.com", "releasequarantines.kuberik.com",
				"externalartifacts.source.toolkit.fluxcd.io", "artifactgenerators.source.extensions.fluxcd.io", "clusterrolloutgates.kuberik.com"))
		}
	}
}

// Environments of type github belong to another controller, and their spec to users.
func TestManagerRoleWritesOnlyTheStatusOfEnvironments(t *testing.T) {
	g := NewWithT(t)
	rules := installed(t).role(t, "rollout-controller-manager-role").Rules
	g.Expect(allowedVerbs(rules, "environments.kuberik.com/environments")).To(ConsistOf("get", "list", "watch"))
	g.Expect(allowedVerbs(rules, "environments.kuberik.com/environments/status")).To(ConsistOf("get", "patch"))
}

// The spec of a quarantine belongs to users once it exists, and recalls are only theirs.
func TestManagerRoleChangesNoSpecOfAQuarantine(t *testing.T) {
	rules := installed(t).role(t, "rollout-controller-manager-role").Rules
	for resource, verbs := range map[string][]string{
		"kuberik.com/releasequarantines":               {"get", "list", "watch", "create", "delete"},
		"kuberik.com/releasequarantines/status":        {"patch"},
		"kuberik.com/clusterreleasequarantines":        {"list", "watch"},
		"kuberik.com/clusterreleasequarantines/status": {"patch"},
	} {
		t.Run(resource, func(t *testing.T) {
			NewWithT(t).Expect(allowedVerbs(rules, resource)).To(ConsistOf(verbs))
		})
	}
}

func TestManagerRoleReadsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	rules := install.role(t, "rollout-controller-manager-role").Rules
	for _, resource := range []string{"/secrets", "/serviceaccounts"} {
		g.Expect(allowedVerbs(rules, resource)).To(BeEmpty(), resource)
		credentials := install.role(t, "rollout-controller-registry-credentials-role").Rules
		g.Expect(allowedVerbs(credentials, resource)).To(ConsistOf("get"), resource)
	}
}

// HealthChecks ask others, so what they may use is bound namespace by namespace. Only
// where the API server is must always be known.
func TestHealthChecksSendSecretsAndRunJobsOnlyWhereSomebodyBindsTheRole(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	g.Expect(install.role(t, "rollout-controller-health-credentials-role").Rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}))
	g.Expect(install.role(t, "rollout-controller-health-jobs-role").Rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "create", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}))
	g.Expect(install.role(t, "rollout-controller-health-services-role").Rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}}))
	g.Expect(install.role(t, "rollout-controller-health-destinations-role").Rules).To(ConsistOf(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"kubernetes"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}}))
	var bound []string
	for _, binding := range decode[rbacv1.ClusterRoleBinding](t, install, "ClusterRoleBinding", "RoleBinding") {
		bound = append(bound, binding.RoleRef.Name)
	}
	g.Expect(bound).To(ContainElement("rollout-controller-health-destinations-role"))
	g.Expect(bound).NotTo(ContainElement(BeElementOf("rollout-controller-health-credentials-role",
		"rollout-controller-health-services-role", "rollout-controller-health-jobs-role")))
}

func TestPeopleGetTheRolesThatTheirOwnAggregate(t *testing.T) {
	g := NewWithT(t)
	part := map[string][]string{}
	for _, role := range installed(t).roles(t) {
		for label := range role.Labels {
			if into, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				part[into] = append(part[into], strings.TrimPrefix(role.Name, "rollout-controller-"))
			}
		}
	}
	for _, names := range part {
		slices.Sort(names)
	}
	g.Expect(part).To(Equal(map[string][]string{
		"view": {"clusterreleasequarantine-viewer-role", "clusterrolloutgate-viewer-role", "clusterrolloutschedule-viewer-role", "environment-viewer-role",
			"healthcheck-viewer-role", "releasequarantine-viewer-role", "rollout-viewer-role", "rolloutapproval-viewer-role", "rolloutgate-viewer-role",
			"rolloutschedule-viewer-role"},
		"edit": {"environment-editor-role", "healthcheck-editor-role", "releasequarantine-editor-role", "rollout-editor-role",
			"rolloutgate-editor-role", "rolloutschedule-editor-role"},
		"admin": {"rollout-admin-role", "rollout-approver-role"},
	}))
}

func TestNobodyGetsToFreezeTheClusterOrToSayWhatIsProvenUnasked(t *testing.T) {
	g := NewWithT(t)
	for _, role := range installed(t).roles(t) {
		for label := range role.Labels {
			if !strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
				continue
			}
			for _, verb := range allowedVerbs(role.Rules, "kuberik.com/rollouts") {
				g.Expect(verb).NotTo(BeElementOf("approve", "override", "attribute"), role.Name)
			}
			for _, kind := range []string{"clusterrolloutgates", "clusterrolloutschedules", "clusterreleasequarantines", "rolloutapprovals"} {
				g.Expect(allowedVerbs(role.Rules, "kuberik.com/"+kind)).To(Or(BeEmpty(), ConsistOf("get", "list", "watch")), role.Name+" "+kind)
			}
			for _, kind := range []string{"rollouts", "healthchecks", "rolloutschedules", "clusterrolloutschedules", "releasequarantines", "clusterreleasequarantines"} {
				g.Expect(allowedVerbs(role.Rules, "kuberik.com/"+kind+"/status")).To(Or(BeEmpty(), ConsistOf("get")), role.Name+" "+kind)
			}
			g.Expect(allowedVerbs(role.Rules, "environments.kuberik.com/environments/status")).To(Or(BeEmpty(), ConsistOf("get")), role.Name)
		}
	}
}

func TestEveryBindingIsForTheControllerAndARoleThatExists(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	for _, binding := range decode[rbacv1.RoleBinding](t, install, "RoleBinding", "ClusterRoleBinding") {
		g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{
			Kind: "ServiceAccount", Name: "rollout-controller-controller-manager", Namespace: "kuberik-system",
		}), binding.Name)
		g.Expect(install.role(t, binding.RoleRef.Name).Kind).To(Equal(binding.RoleRef.Kind), binding.Name)
	}
}

func TestHealthReaderIsTheSumOfLabelledRoles(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	reader := install.role(t, "rollout-controller-health-reader-role")
	g.Expect(reader.AggregationRule.ClusterRoleSelectors).To(ConsistOf(
		metav1.LabelSelector{MatchLabels: map[string]string{workloadLabel: "true"}}))

	// Kubernetes may write the aggregated role again if a part of it is deleted just
	// after it.
	for _, role := range install.roles(t) {
		g.Expect(role.Labels).NotTo(HaveKey(workloadLabel), role.Name)
	}
	workloads := install.role(t, "rollout-controller-health-workloads-role")
	for _, rule := range workloads.Rules {
		g.Expect(rule.Verbs).To(ConsistOf("get", "list", "watch"))
	}
}

func TestDeploymentRunsTheContractedProcessWithoutPrivileges(t *testing.T) {
	g := NewWithT(t)
	deployments := decode[appsv1.Deployment](t, installed(t), "Deployment")
	g.Expect(deployments).To(HaveLen(1))
	pod := deployments[0].Spec.Template.Spec
	g.Expect(pod.ServiceAccountName).To(Equal("rollout-controller-controller-manager"))
	g.Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
	g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))

	g.Expect(pod.Containers).To(HaveLen(1))
	container := pod.Containers[0]
	g.Expect(container.Args).To(Equal([]string{
		"--metrics-bind-address=:8443", "--metrics-cert-secret=rollout-controller-metrics-certificate", "--leader-elect", "--health-probe-bind-address=:8081",
		"--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
	}))
	g.Expect(container.Env).To(ContainElement(corev1.EnvVar{
		Name:      "RUNTIME_NAMESPACE",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
	}))
	g.Expect(*container.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
	g.Expect(*container.SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
	g.Expect(container.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/healthz"))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
}

// installation contains the objects that `kubectl apply -k config/default` installs.
type installation []*unstructured.Unstructured

// render runs once for all tests.
var render = sync.OnceValues(func() (installation, error) {
	return manifests.Kustomize(context.Background(), manifests.Default)
})

func installed(t *testing.T) installation {
	t.Helper()
	install, err := render()
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// names returns the names of all objects as Kind/name or Kind/namespace/name.
func (i installation) names() []string {
	var names []string
	for _, o := range i {
		parts := slices.DeleteFunc([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, func(s string) bool { return s == "" })
		names = append(names, strings.Join(parts, "/"))
	}
	return names
}

// roles returns the Roles and ClusterRoles. A ClusterRole has all fields of a Role.
func (i installation) roles(t *testing.T) []rbacv1.ClusterRole {
	t.Helper()
	return decode[rbacv1.ClusterRole](t, i, "Role", "ClusterRole")
}

func (i installation) role(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	roles := i.roles(t)
	at := slices.IndexFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == name })
	if at < 0 {
		t.Fatalf("there is no role %s", name)
	}
	return roles[at]
}

// decode returns the objects of some kinds.
func decode[T any](t *testing.T, install installation, kinds ...string) []T {
	t.Helper()
	objects, err := manifests.As[T](install, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// allowedVerbs returns the verbs that rules allow on a resource, which is written as
// group/resource.
func allowedVerbs(rules []rbacv1.PolicyRule, resource string) []string {
	group, name, _ := strings.Cut(resource, "/")
	var verbs []string
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, name) {
			verbs = append(verbs, rule.Verbs...)
		}
	}
	return verbs
}
