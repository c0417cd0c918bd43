// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

func TestRolloutThatNeverReportsIsFound(t *testing.T) {
	const never = "R310 Rollout shop/shop"
	idle := change(t, kustomization, "wait: true", "wait: false")
	healthCheck := change(t, check, "namespace: tests", "namespace: shop")
	for name, tt := range map[string]struct {
		spec, others string
		want         []string
	}{
		"a HealthCheck":                {spec: "healthCheckSelector: {selector: {matchLabels: {app: shop}}}, quarantine: {}", others: join(repository, idle, healthCheck)},
		"a Kustomization that waits":   {spec: "deployTimeout: 15m, quarantine: {}", others: join(repository, kustomization)},
		"a deadline alone":             {spec: "deployTimeout: 15m, quarantine: {holdFor: 2h}", others: join(repository, idle), want: []string{never}},
		"it only obeys":                {spec: "quarantine: {report: None}", others: join(repository, idle)},
		"no block":                     {spec: "suspend: false", others: join(repository, idle)},
		"targets that are not known":   {spec: "deployTimeout: 15m, quarantine: {}", want: []string{"R310? Rollout shop/shop", "R207 Rollout shop/shop"}},
		"a setting that is not known":  {spec: `quarantine: {report: "${REPORT}"}`, others: join(repository, idle), want: []string{"R101? Rollout shop/shop", "R310? Rollout shop/shop"}},
		"a setting that is not served": {spec: "quarantine: {holdFor: 1m}", others: join(repository, idle), want: []string{"R101 Rollout shop/shop", never}},
	} {
		t.Run(name, func(t *testing.T) {
			files := []lint.File{{Name: "all.yaml", Content: []byte(join(policy, rollingBack(t, tt.spec), tt.others))}}
			NewWithT(t).Expect(described(lint.Files(files, lint.Options{Now: noon}))).To(ConsistOf(tt.want))
		})
	}
}

func TestQuarantineThatHoldsNothingIsFound(t *testing.T) {
	const useless = "R311 ReleaseQuarantine shop/bad"
	for spec, want := range map[string][]string{
		`{digest: "sha256:00000000000000000000000000000000", image: "oci://it/does/not:matter"}`:            nil,
		`{image: registry.example.com/shop, tags: [1.2.0]}`:                                                 nil,
		`{image: "registry.example.com:5000/shop", tags: [1.2.0]}`:                                          nil,
		`{image: "registry.example.com/shop:1.2.0", tags: [1.2.0]}`:                                         {useless},
		`{image: "registry.example.com/shop@sha256:00", tags: [1.2.0]}`:                                     {useless},
		`{image: "oci://registry.example.com/shop", tags: [1.2.0]}`:                                         {useless},
		`{image: "${IMAGE}", tags: [1.2.0]}`:                                                                {"R101? ReleaseQuarantine shop/bad"},
		`{image: registry.example.com/shop, tags: [1.2.0], until: "2026-11-25T12:00:00Z"}`:                  {useless},
		`{image: registry.example.com/shop, tags: [1.2.0], until: "2026-11-25T12:00:01Z"}`:                  nil,
		`{image: registry.example.com/shop, tags: [1.2.0], until: "2026-11-25T12:00:00Z", lifted: true}`:    nil,
		`{image: registry.example.com/shop}`:                                                                {"R101 ReleaseQuarantine shop/bad"},
		`{digest: sha256, image: registry.example.com/shop, tags: [1.2.0], namespaceSelector: {}, when: 1}`: {"R101 ReleaseQuarantine shop/bad", "R101 ReleaseQuarantine shop/bad", "R101 ReleaseQuarantine shop/bad"},
	} {
		t.Run(spec, func(t *testing.T) {
			content := "apiVersion: kuberik.com/v1alpha1\nkind: ReleaseQuarantine\nmetadata: {name: bad, namespace: shop}\nspec: " + spec + "\n"
			NewWithT(t).Expect(described(lint.Files([]lint.File{{Name: "all.yaml", Content: []byte(content)}}, lint.Options{Now: noon}))).To(ConsistOf(want))
		})
	}
}

func TestSelectorOfARecallThatCannotBeUsedIsFound(t *testing.T) {
	content := `apiVersion: kuberik.com/v1alpha1
kind: ClusterReleaseQuarantine
metadata: {name: recall}
spec: {image: registry.example.com/shop, tags: [1.2.0], namespaceSelector: {matchLabels: {"stage:": prod}}}
`
	NewWithT(t).Expect(described(lint.Files([]lint.File{{Name: "all.yaml", Content: []byte(content)}}, lint.Options{Now: noon}))).
		To(ConsistOf("R401 ClusterReleaseQuarantine recall"))
}
