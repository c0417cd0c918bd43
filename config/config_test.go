// SPDX-License-Identifier: Apache-2.0

// Package config_test holds the manifests of this folder to the types of the
// API and to the names that existing installations rely on.
package config_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// workloadLabel on a ClusterRole lets HealthChecks read what that role lists.
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
	))
}

func TestNoRoleHasAWildcard(t *testing.T) {
	g := NewWithT(t)
	for _, role := range installed(t).roles() {
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
		"/namespaces":                                {"get", "list", "watch"},
		"/events":                                    {"create", "patch"},
	} {
		t.Run(resource, func(t *testing.T) {
			NewWithT(t).Expect(allowedVerbs(rules, resource)).To(ContainElements(verbs))
		})
	}
}

func TestEveryBindingIsForTheControllerAndARoleThatExists(t *testing.T) {
	g := NewWithT(t)
	install := installed(t)
	for _, binding := range decode[rbacv1.RoleBinding](install, "RoleBinding", "ClusterRoleBinding") {
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

	workloads := install.role(t, "rollout-controller-health-workloads-role")
	g.Expect(workloads.Labels).To(HaveKeyWithValue(workloadLabel, "true"))
	for _, rule := range workloads.Rules {
		g.Expect(rule.Verbs).To(ConsistOf("get", "list", "watch"))
	}
}

func TestDeploymentRunsTheContractedProcessWithoutPrivileges(t *testing.T) {
	g := NewWithT(t)
	deployments := decode[appsv1.Deployment](installed(t), "Deployment")
	g.Expect(deployments).To(HaveLen(1))
	pod := deployments[0].Spec.Template.Spec
	g.Expect(pod.ServiceAccountName).To(Equal("rollout-controller-controller-manager"))
	g.Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
	g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))

	g.Expect(pod.Containers).To(HaveLen(1))
	container := pod.Containers[0]
	g.Expect(container.Args).To(Equal([]string{
		"--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:8081",
	}))
	g.Expect(*container.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
	g.Expect(*container.SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
	g.Expect(container.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/healthz"))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
}

// manifest is one object of the installation.
type manifest struct {
	metav1.PartialObjectMetadata
	content []byte
}

// installation is what `kubectl apply -k config/default` installs.
type installation []manifest

// render runs kustomize in the version that hack/tools pins.
var render = sync.OnceValues(func() ([]byte, error) {
	command := exec.Command("go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", "config/default")
	command.Dir = ".."
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it
	output, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, errors.New(string(exit.Stderr))
	}
	return output, err
})

func installed(t *testing.T) installation {
	t.Helper()
	stream, err := render()
	if err != nil {
		t.Fatal(err)
	}
	var install installation
	for _, content := range documents(t, stream) {
		m := manifest{content: content}
		if err := yaml.Unmarshal(content, &m.PartialObjectMetadata); err != nil {
			t.Fatal(err)
		}
		install = append(install, m)
	}
	return install
}

// names are those of all objects: Kind/name or Kind/namespace/name.
func (i installation) names() []string {
	var names []string
	for _, m := range i {
		parts := slices.DeleteFunc([]string{m.Kind, m.Namespace, m.Name}, func(s string) bool { return s == "" })
		names = append(names, strings.Join(parts, "/"))
	}
	return names
}

// roles are the Roles and ClusterRoles; a ClusterRole has all that a Role has.
func (i installation) roles() []rbacv1.ClusterRole {
	return decode[rbacv1.ClusterRole](i, "Role", "ClusterRole")
}

func (i installation) role(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	roles := i.roles()
	at := slices.IndexFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == name })
	if at < 0 {
		t.Fatalf("there is no role %s", name)
	}
	return roles[at]
}

// decode returns the objects of some kinds. It panics on what kustomize has
// rendered and the API would refuse.
func decode[T any](install installation, kinds ...string) []T {
	var objects []T
	for _, m := range install {
		if !slices.Contains(kinds, m.Kind) {
			continue
		}
		var object T
		if err := yaml.UnmarshalStrict(m.content, &object); err != nil {
			panic(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// allowedVerbs are the verbs that rules allow on a resource, written
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
