// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

const gitTarget = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: shop
  namespace: shop
  annotations: {rollout.kuberik.com/rollout: shop, kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}
spec: {url: https://git.example.com/shop, interval: 10m, ref: {tag: none-yet}}
`

func TestGitRepositoryIsATarget(t *testing.T) {
	const chart = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec: {chart: {spec: {chart: ./chart, reconcileStrategy: Revision, sourceRef: {kind: GitRepository, name: shop}}}}
`
	fromGit := change(t, kustomization, "OCIRepository", "GitRepository")
	far := change(t, change(t, fromGit, "namespace: shop", "namespace: b"), "name: shop}", "name: shop, namespace: shop}")
	for name, tt := range map[string]struct {
		target    string
		consumers []string
		want      []string
	}{
		"with a Kustomization":            {target: gitTarget, consumers: []string{fromGit}},
		"with the chart of a HelmRelease": {target: gitTarget, consumers: []string{chart}},
		"with a chart that is packaged by its version": {
			target: gitTarget, consumers: []string{change(t, chart, "reconcileStrategy: Revision, ", "")}, want: []string{"R218 HelmRelease shop/shop"},
		},
		"with a Kustomization of an OCIRepository":  {target: gitTarget, consumers: []string{kustomization}, want: []string{"R212 GitRepository shop/shop"}},
		"with one of another namespace":             {target: gitTarget, consumers: []string{far}, want: []string{"R213 GitRepository shop/shop"}},
		"with a commit":                             {target: change(t, gitTarget, "tag: none-yet", "tag: none-yet, commit: abc"), consumers: []string{fromGit}, want: []string{"R204 GitRepository shop/shop"}},
		"with a name":                               {target: change(t, gitTarget, "tag: none-yet", "tag: none-yet, name: refs/heads/main"), consumers: []string{fromGit}, want: []string{"R204 GitRepository shop/shop"}},
		"beside a branch":                           {target: change(t, gitTarget, "tag: none-yet", "tag: none-yet, branch: main"), consumers: []string{fromGit}},
		"without a tag":                             {target: change(t, gitTarget, "tag: none-yet", "branch: main"), consumers: []string{fromGit}, want: []string{"R217 GitRepository shop/shop"}},
		"whose tag Git sets again at each interval": {target: change(t, gitTarget, ", kustomize.toolkit.fluxcd.io/ssa: IfNotPresent", ""), consumers: []string{fromGit}, want: []string{"R203 GitRepository shop/shop"}},
		"with the annotation for a digest": {
			target: change(t, gitTarget, "rollout: shop,", "rollout: shop, digest.rollout.kuberik.com/ref: shop,"), consumers: []string{fromGit}, want: []string{"R210 GitRepository shop/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(join(append(tt.consumers, policy, rollout, tt.target)...), func(o *lint.Options) { o.Disable = nil })
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}
