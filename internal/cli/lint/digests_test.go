// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDigestsAreChecked(t *testing.T) {
	repository := func(annotations, ref string) string {
		return "\n{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: shop, namespace: shop, annotations: {" + annotations +
			"}}, spec: {url: oci://registry.example.com/shop, interval: 10m, ref: {" + ref + "}}}\n"
	}
	const both = "rollout.kuberik.com/rollout: shop, digest.rollout.kuberik.com/ref: shop"
	const once = ", kustomize.toolkit.fluxcd.io/ssa: IfNotPresent"
	for name, tt := range map[string]struct {
		repository string
		want       []string
	}{
		"both":                   {repository(both+once, "tag: none-yet"), nil},
		"only the digest":        {repository("digest.rollout.kuberik.com/ref: shop"+once, "tag: none-yet"), []string{"R216 OCIRepository shop/shop"}},
		"of another Rollout":     {repository("rollout.kuberik.com/rollout: shop, digest.rollout.kuberik.com/ref: cart"+once, "tag: none-yet"), []string{"R202 OCIRepository shop/shop", "R216 OCIRepository shop/shop"}},
		"a digest that Git sets": {repository(both, "tag: none-yet, digest: 'sha256:1234'"), []string{"R203 OCIRepository shop/shop", "R203 OCIRepository shop/shop"}},
		"a digest of others":     {repository("rollout.kuberik.com/rollout: shop"+once, "tag: none-yet, digest: 'sha256:1234'"), []string{"R204 OCIRepository shop/shop"}},
		"on another kind of key": {repository(both+", digest.rollout.kuberik.com/substitute.TAG: shop"+once, "tag: none-yet"), []string{"R210 OCIRepository shop/shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := described(lintText(join(policy, rollout, tt.repository, kustomization)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
