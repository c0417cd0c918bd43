// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// environment returns an Environment as a user writes it, with the spec in YAML.
func (s *testEnv) environment(spec string) *unstructured.Unstructured {
	text := "apiVersion: environments.kuberik.com/v1alpha1\nkind: Environment\nmetadata: {name: shop, namespace: " + s.Namespace + "}\nspec: " + spec
	object := map[string]any{}
	s.Expect(yaml.Unmarshal([]byte(text), &object)).To(Succeed())
	return &unstructured.Unstructured{Object: object}
}

// upstreamsOf returns a list of so many upstreams.
func upstreamsOf(count int) string {
	var items []string
	for i := range count {
		items = append(items, fmt.Sprintf("{environment: env%d}", i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func TestAPIServerTakesAnEnvironmentOrSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const (
		named    = "rolloutRef: {name: shop}, name: shop"
		staging  = named + ", environment: staging"
		byGitHub = "backend: {type: github, project: shop/deployments}"

		elsewhere = "{environment: qa, namespace: shop, cluster: qa-eu, repository: registry.example.com/promotions/qa}"
	)
	for name, tt := range map[string]struct {
		spec      string
		rejection string // empty if it is accepted
	}{
		"the smallest": {spec: "{" + staging + "}"},
		"everything": {spec: "{" + staging + `, upstreams: [{environment: qa, type: After, namespace: shop-qa, rollout: store, soakTime: 2h},
			{environment: dev, type: Parallel}], availability: OneOf, matchBy: Revision, selection: Current, promotion: Manual, bypass: Deny,
			accessFrom: {namespaceSelectors: [{matchLabels: {team: shop}}]}, url: "https://shop.example.com", backend: {type: cluster}}`},
		"sixteen upstreams":   {spec: "{" + staging + ", upstreams: " + upstreamsOf(16) + "}"},
		"the longest soak":    {spec: "{" + staging + ", upstreams: [{environment: qa, soakTime: 2562047h}]}"},
		"one upstream, short": {spec: "{" + staging + ", relationship: {environment: dev, type: After}}"},

		"kuberik's, the first environment": {spec: "{" + staging + ", " + byGitHub + "}"},
		"kuberik's, with everything": {spec: "{rolloutRef: {name: shop}, name: kuberik-shop, environment: production, relationship: {environment: staging, type: After}, " +
			"backend: {type: github, project: shop/deployments, secret: github-token}, requeueInterval: 1m30s}"},
		"kuberik's, parallel":               {spec: "{" + staging + ", relationship: {environment: eu, type: Parallel}, " + byGitHub + "}"},
		"kuberik's, without an environment": {spec: "{" + named + ", " + byGitHub + "}"},
		"an interval in parts of an hour":   {spec: "{" + staging + ", requeueInterval: 0.5h, " + byGitHub + "}"},
		"an interval of milliseconds":       {spec: "{" + staging + ", requeueInterval: 1500ms, " + byGitHub + "}"},

		"in another cluster": {spec: "{" + staging + ", upstreams: [" + elsewhere + "], requeueInterval: 30s, backend: {type: oci}}"},
		"in another cluster, with everything": {spec: "{" + staging + ", upstreams: [" + elsewhere + ", {environment: dev}], " +
			"backend: {type: oci, project: registry.example.com/promotions/staging, secret: promotions, verify: {secretRef: {name: promotion-keys}}, insecure: true}}"},
		"in another cluster, without a repository": {
			spec:      "{" + staging + ", upstreams: [{environment: qa, namespace: shop, cluster: qa-eu}], backend: {type: oci}}",
			rejection: "give repository and cluster together",
		},
		"in another cluster, without its name": {
			spec:      "{" + staging + ", upstreams: [{environment: qa, namespace: shop, repository: registry.example.com/promotions/qa}], backend: {type: oci}}",
			rejection: "give repository and cluster together",
		},
		"in another cluster, without a namespace": {
			spec:      "{" + staging + ", upstreams: [{environment: qa, cluster: qa-eu, repository: registry.example.com/promotions/qa}], backend: {type: oci}}",
			rejection: "give the namespace that the upstream has in its own cluster",
		},
		"in another cluster, by type cluster": {
			spec: "{" + staging + ", upstreams: [" + elsewhere + "]}", rejection: "an upstream with a repository requires backend.type oci",
		},
		"keys for type cluster": {
			spec: "{" + staging + ", backend: {type: cluster, verify: {secretRef: {name: promotion-keys}}}}", rejection: "verify and insecure are for type oci",
		},
		"keys without a name": {
			spec: "{" + staging + ", backend: {type: oci, verify: {}}}", rejection: "spec.backend.verify.secretRef: Required value",
		},

		"both forms": {
			spec:      "{" + staging + ", relationship: {environment: dev, type: After}, upstreams: [{environment: qa}]}",
			rejection: "give either relationship or upstreams, not both",
		},
		"both forms, one empty": {
			spec:      "{" + staging + ", relationship: {environment: dev, type: After}, upstreams: []}",
			rejection: "give either relationship or upstreams, not both",
		},
		"no name":                     {spec: "{rolloutRef: {name: shop}, environment: staging}", rejection: "spec.name: Required value"},
		"no Rollout":                  {spec: "{name: shop, environment: staging}", rejection: "spec.rolloutRef: Required value"},
		"no environment":              {spec: "{" + named + "}", rejection: "spec.environment is required"},
		"an empty environment":        {spec: "{" + named + `, environment: ""}`, rejection: "spec.environment is required"},
		"github without a project":    {spec: "{" + staging + ", backend: {type: github}}", rejection: "project is required for type github"},
		"an unknown backend":          {spec: "{" + staging + ", backend: {type: git}}", rejection: `spec.backend.type: Unsupported value: "git": supported values: "cluster", "oci", "github"`},
		"a backend without a type":    {spec: "{" + staging + ", backend: {project: shop/deployments}}", rejection: "spec.backend.type: Required value"},
		"an unknown relationship":     {spec: "{" + staging + ", relationship: {environment: dev, type: Before}}", rejection: `spec.relationship.type: Unsupported value: "Before"`},
		"an interval of days":         {spec: "{" + staging + ", requeueInterval: 1d}", rejection: "spec.requeueInterval"},
		"a negative interval":         {spec: "{" + staging + ", requeueInterval: -1m}", rejection: "spec.requeueInterval"},
		"a relationship with nobody":  {spec: "{" + staging + ", relationship: {type: After}}", rejection: "spec.relationship.environment: Required value"},
		"a relationship with no type": {spec: "{" + staging + ", relationship: {environment: dev}}", rejection: "spec.relationship.type: Required value"},
		"an unknown type":             {spec: "{" + staging + ", upstreams: [{environment: dev, type: Before}]}", rejection: `Unsupported value: "Before"`},
		"an unknown availability":     {spec: "{" + staging + ", availability: Most}", rejection: `spec.availability: Unsupported value: "Most"`},
		"an unknown matchBy":          {spec: "{" + staging + ", matchBy: Tag}", rejection: `spec.matchBy: Unsupported value: "Tag"`},
		"an unknown selection":        {spec: "{" + staging + ", selection: Newest}", rejection: `spec.selection: Unsupported value: "Newest"`},
		"an unknown promotion":        {spec: "{" + staging + ", promotion: Never}", rejection: `spec.promotion: Unsupported value: "Never"`},
		"an unknown bypass":           {spec: "{" + staging + ", bypass: Ask}", rejection: `spec.bypass: Unsupported value: "Ask"`},
		"too many upstreams":          {spec: "{" + staging + ", upstreams: " + upstreamsOf(17) + "}", rejection: "spec.upstreams: Too many"},
		"one upstream twice":          {spec: "{" + staging + ", upstreams: [{environment: qa}, {environment: qa, namespace: b}]}", rejection: "duplicate"},
		"an upstream without a name":  {spec: "{" + staging + ", upstreams: [{namespace: shop-qa}]}", rejection: "environment"},
		"a soak of days":              {spec: "{" + staging + ", upstreams: [{environment: qa, soakTime: 2d}]}", rejection: "soakTime"},
		"a negative soak":             {spec: "{" + staging + ", upstreams: [{environment: qa, soakTime: -1h}]}", rejection: "soakTime"},
		"a soak that Go cannot hold":  {spec: "{" + staging + ", upstreams: [{environment: qa, soakTime: 2562048h}]}", rejection: "soakTime"},
		"a field that does not exist": {spec: "{" + staging + ", soakTime: 1h}", rejection: "soakTime"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			applied := s.environment(tt.spec)
			want := applied.DeepCopy().Object["spec"].(map[string]any)
			err := s.apply(applied)
			if tt.rejection == "" {
				s.Expect(err).NotTo(HaveOccurred())
				if want["backend"] == nil {
					want["backend"] = map[string]any{"type": "cluster"}
				}
				s.Expect(s.storedEnvironment().Object["spec"]).To(Equal(want), "it is stored unchanged")
				return
			}
			s.Expect(err).To(MatchError(ContainSubstring(tt.rejection)))
		})
	}
}

// Only the backend has a default on the wire: older clients require it.
func TestEnvironmentGetsABackendAndNothingElse(t *testing.T) {
	s := open(t)
	s.Expect(s.apply(s.environment("{rolloutRef: {name: shop}, name: shop, environment: staging, upstreams: [{environment: qa}]}"))).To(Succeed())
	s.Expect(s.storedEnvironment().Object["spec"]).To(Equal(map[string]any{
		"rolloutRef": map[string]any{"name": "shop"}, "name": "shop", "environment": "staging",
		"upstreams": []any{map[string]any{"environment": "qa"}}, "backend": map[string]any{"type": "cluster"},
	}))
}

func (s *testEnv) storedEnvironment() *unstructured.Unstructured {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(environmentsv1.GroupVersion.WithKind(environmentsv1.EnvironmentKind))
	s.Expect(s.Get(s.Ctx, s.Key("shop"), stored)).To(Succeed())
	return stored
}

// Another controller serves Environments of type github. It must find room for all that it
// writes.
func TestStatusThatAnotherControllerWritesIsStoredUnchanged(t *testing.T) {
	s := open(t)
	s.Expect(s.apply(s.environment("{rolloutRef: {name: shop}, name: shop, environment: production, " +
		"relationship: {environment: staging, type: After}, backend: {type: github, project: shop/deployments}}"))).To(Succeed())
	status := map[string]any{}
	s.Expect(yaml.Unmarshal([]byte(`
lastStatusChangeTime: "2026-03-02T12:00:00Z"
currentVersion: 9f3c2e1
rolloutGateRef: {name: ghd-shop}
conditions:
- {type: Ready, status: "True", reason: DeploymentSynced, message: synced, lastTransitionTime: "2026-03-02T12:00:00Z"}
environmentInfos:
- environment: staging
  environmentUrl: https://staging.shop.example.com
  history:
  - id: 1
    version: {tag: 1.4.0, digest: "sha256:aaaa", version: 1.4.0, revision: 9f3c2e1, created: "2026-03-02T11:00:00Z"}
    timestamp: "2026-03-02T11:30:00Z"
    bakeStatus: Failed
    bakeStatusMessage: unhealthy
    bakeStartTime: "2026-03-02T11:31:00Z"
    bakeEndTime: "2026-03-02T11:40:00Z"
    failedHealthChecks: [{name: smoke, namespace: shop, message: 3 of 9 tests failed}]
    message: the newest release
    triggeredBy: {kind: User, name: ann}
- environment: production
  relationship: {environment: staging, type: After}
  history: []
`), &status)).To(Succeed())
	written := s.storedEnvironment()
	written.Object["status"] = status
	s.Expect(s.Status().Update(s.Ctx, written.DeepCopy(), &client.SubResourceUpdateOptions{
		UpdateOptions: client.UpdateOptions{FieldValidation: metav1.FieldValidationStrict},
	})).To(Succeed())
	s.Expect(s.storedEnvironment().Object["status"]).To(BeEquivalentTo(jsonOf(s, status)))
}

// jsonOf returns an object as the API server would return it.
func jsonOf(s *testEnv, object map[string]any) map[string]any {
	text, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "Any", "apiVersion": "v1", "object": object}}).MarshalJSON()
	s.Expect(err).NotTo(HaveOccurred())
	read := &unstructured.Unstructured{}
	s.Expect(read.UnmarshalJSON(text)).To(Succeed())
	return read.Object["object"].(map[string]any)
}

func TestKubectlGetShowsAnEnvironment(t *testing.T) {
	s := open(t)
	s.Expect(s.apply(s.environment("{rolloutRef: {name: shop}, name: shop, environment: production, upstreams: [{environment: staging}, {environment: qa}]}"))).To(Succeed())
	written := s.storedEnvironment()
	written.Object["status"] = map[string]any{
		"releases": []any{map[string]any{"tag": "1.4.0"}, map[string]any{"tag": "1.3.0"}},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": environmentsv1.SucceededReason,
			"message": "takes releases that staging and qa have proven", "lastTransitionTime": "2026-03-02T12:00:00Z"}},
	}
	s.Expect(s.Status().Update(s.Ctx, written)).To(Succeed())
	row := s.tableOf(environmentsv1.GroupVersion.WithResource("environments"))
	delete(row, "Age")
	s.Expect(row).To(Equal(map[string]string{
		"Name": "shop", "Environment": "production", "Version": "1.4.0", "After": "staging", "Ready": "True",
		"Status": "takes releases that staging and qa have proven",
	}))
}

func TestSamplesOfEnvironmentsAreAccepted(t *testing.T) {
	s := open(t)
	for _, name := range []string{
		"environments/staging.yaml", "environments/production.yaml", "environments-oci/staging/shop.yaml", "environments-oci/production/shop.yaml",
	} {
		file, err := os.Open(filepath.Join(parts.Root(), "config", "samples", filepath.FromSlash(name)))
		s.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = file.Close() }()
		reader := utilyaml.NewYAMLReader(bufio.NewReader(file))
		for text, err := reader.Read(); !errors.Is(err, io.EOF); text, err = reader.Read() {
			s.Expect(err).NotTo(HaveOccurred())
			object := &unstructured.Unstructured{}
			s.Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
			if object.GetKind() == "Namespace" {
				err := s.Create(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}})
				s.Expect(client.IgnoreAlreadyExists(err)).To(Succeed()) // two of the clusters have the same
				continue
			}
			s.Expect(s.Apply(s.Ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody"), client.DryRunAll)).To(Succeed(), name)
		}
	}
}
