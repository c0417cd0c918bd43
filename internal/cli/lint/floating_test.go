// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFloatingTagOfAPolicy(t *testing.T) {
	const rollout = `
apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata: {name: shop, namespace: %s}
spec: {releasesImagePolicy: {name: shop}, deployTimeout: 15m, healthCheckSelector: {selector: {matchLabels: {app: shop}}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: shop, namespace: shop}
spec: {imageRepositoryRef: {name: shop}, %s}
`
	const latest = `policy: {alphabetical: {}}, filterTags: {pattern: "^latest$"}`
	digests := func(name string) string {
		return "}\n---\n{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: shop, namespace: shop, annotations: " +
			"{rollout.kuberik.com/rollout: " + name + ", digest.rollout.kuberik.com/ref: " + name + "}}, spec: {url: 'oci://shop', interval: 10m}"
	}
	for name, tt := range map[string]struct {
		namespace, policy string
		found             bool
	}{
		"alphabetical":               {"shop", `policy: {alphabetical: {}}, filterTags: {pattern: "^latest$"}`, true},
		"semver of a constant":       {"shop", `policy: {semver: {range: "*"}}, filterTags: {pattern: "^main$", extract: "1.0.0"}`, true},
		"semver, which admits none":  {"shop", `policy: {semver: {range: "*"}}, filterTags: {pattern: "^main$"}`, false},
		"several tags":               {"shop", `policy: {alphabetical: {}}, filterTags: {pattern: "^main-.*$"}`, false},
		"a pattern that is invalid":  {"shop", `policy: {alphabetical: {}}, filterTags: {pattern: "("}`, false},
		"a pattern that is unknown":  {"shop", `policy: {alphabetical: {}}, filterTags: {pattern: "^${TAG}$"}`, false},
		"of a Rollout of no concern": {"other", `policy: {alphabetical: {}}, filterTags: {pattern: "^latest$"}`, false},
		"whose digests are written":  {"shop", latest + digests("shop"), false},
		"of another Rollout":         {"shop", latest + digests("cart"), true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range described(lintText(fmt.Sprintf(rollout, tt.namespace, tt.policy))) {
				if finding[:4] == "R215" {
					got = append(got, finding)
				}
			}
			var want []string
			if tt.found {
				want = []string{"R215 ImagePolicy shop/shop"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
