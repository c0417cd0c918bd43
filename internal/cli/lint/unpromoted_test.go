// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

func TestUnpromotedVersions(t *testing.T) {
	const r204, r208, r217 = "R204 OCIRepository shop/shop", "R208? Kustomization shop/shop", "R217 OCIRepository shop/shop"
	once := func(text string) string {
		return change(t, text, "annotations: {", "annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, ")
	}
	adopting := change(t, rollout, "deployTimeout: 15m", "deployTimeout: 15m, firstRelease: Applied")
	latest := once(untagged) + "spec: {ref: {tag: latest}}\n"
	substituting := func(variables string) string {
		return once(change(t, change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {rollout.kuberik.com/substitute.TAG.from: shop}"),
			"wait: true", "wait: true, postBuild: {substitute: "+variables+"}"))
	}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no tag":                          {join(rollout, policy, untagged), []string{r217}},
		"no tag that would be adopted":    {join(adopting, policy, untagged), []string{r217}},
		"a Rollout that is elsewhere":     {untagged, []string{"R202 OCIRepository shop/shop", r217}},
		"a name and no tag":               {join(rollout, policy, untagged+"spec: {ref: {}}\n"), []string{r217}},
		"a tag that does not exist":       {join(rollout, policy, repository), nil},
		"a version":                       {join(rollout, policy, once(untagged)+"spec: {ref: {tag: 1.0.0}}\n"), nil},
		"a range":                         {join(rollout, policy, untagged+"spec: {ref: {semver: 1.x}}\n"), []string{r204}},
		"no Rollout":                      {change(t, untagged, "rollout: shop", `rollout: ""`), []string{"R202 OCIRepository shop/shop"}},
		"latest":                          {join(rollout, policy, latest), []string{r217}},
		"latest that is adopted":          {join(adopting, policy, latest), nil},
		"latest as a value":               {join(rollout, policy, release("kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, "+imageTag, "image: {tag: latest}")), []string{"R217 HelmRelease shop/shop"}},
		"a default of a chart":            {join(rollout, policy, release(imageTag)), nil},
		"latest as a variable":            {join(rollout, policy, substituting("{TAG: latest}")), []string{r208, "R217 Kustomization shop/shop"}},
		"a default that cannot be looked": {join(rollout, policy, substituting("{REGION: eu}")), []string{r208}},
	} {
		t.Run(name, func(t *testing.T) {
			result := lint.Files([]lint.File{{Name: "a.yaml", Content: []byte(tt.text)}}, lint.Options{Now: noon, Disable: []string{"R207", "R212"}})
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Error(diff, result.Findings)
			}
		})
	}
}

func TestUnpromotedDefaultsOfVariables(t *testing.T) {
	k := change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {rollout.kuberik.com/substitute.TAG.from: shop}")
	k = change(t, k, "sourceRef: {kind: OCIRepository, name: shop}",
		"path: ./apps/shop, postBuild: {substitute: {REGION: eu}}, sourceRef: {kind: GitRepository, name: flux-system}")
	for text, want := range map[string][]string{
		"${TAG:=latest}": {"R217 ConfigMap version"},
		"${TAG:-latest}": {"R217 ConfigMap version"},
		"${TAG:=1.0.0}":  nil,
	} {
		result := lint.Files([]lint.File{
			{Name: "clusters/shop.yaml", Content: []byte(join(rollout, policy, k))},
			{Name: "apps/shop/version.yaml", Content: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: version}\ndata: {version: \"" + text + "\"}\n")},
		}, lint.Options{Now: noon})
		if diff := cmp.Diff(want, described(result)); diff != "" {
			t.Error(text, diff)
		}
	}
}

// In a cluster, the Rollout has written the tag of each target once it has promoted
// something.
func TestUnpromotedTargetsInACluster(t *testing.T) {
	for name, tt := range map[string]struct {
		status string
		want   []string
	}{
		"nothing was promoted":   {"", []string{"R217 OCIRepository shop/shop"}},
		"something was promoted": {"status: {history: [{version: {tag: latest}, timestamp: \"2026-11-25T12:00:00Z\"}]}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, document := range strings.Split(join(rollout+tt.status, policy, untagged), "---") {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, object)
			}
			if diff := cmp.Diff(tt.want, described(lint.Cluster(objects, lint.Options{Now: noon, Disable: []string{"R212"}}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
