// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

// env returns an Environment of a Rollout, with more fields of its spec.
func env(namespace, name, rollout, more string) string {
	return fmt.Sprintf(`
apiVersion: environments.kuberik.com/v1alpha1
kind: Environment
metadata: {name: %s, namespace: %s}
spec: {rolloutRef: {name: %s}, name: shop, environment: %s%s}
`, name, namespace, rollout, name, more)
}

func TestRulesAboutEnvironmentsDoNotGuess(t *testing.T) {
	const revision = ", matchBy: Revision"
	after := func(upstream string) string { return revision + ", upstreams: [{" + upstream + "}]" }
	elsewhere := func(repository string) string {
		return after(fmt.Sprintf("environment: staging, namespace: far, cluster: eu, repository: %q", repository)) + ", backend: {type: oci}"
	}
	image := func(name string) string {
		return fmt.Sprintf("\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: shop, namespace: shop}\nspec: {image: %s}\n", name)
	}
	all := join(policy, rollout, repository)
	open := ", accessFrom: {namespaceSelectors: [{matchLabels: {env: production}}]}"
	far := join(env("far", "staging", "shop", open), change(t, all, "namespace: shop", "namespace: far"))
	prod := env("shop", "prod", "shop", after("environment: staging, namespace: far"))
	for name, tt := range map[string]struct {
		text     string
		external string
		want     []string
	}{
		"alone":                       {text: join(all, env("shop", "prod", "shop", ""))},
		"without a namespace":         {text: join(all, change(t, env("shop", "prod", "shop", ""), ", namespace: shop", "")), want: []string{"R601? Environment prod"}},
		"a Rollout that is elsewhere": {text: env("shop", "prod", "shop", ""), external: "Rollout/shop/shop"},
		"no such Rollout":             {text: env("shop", "prod", "shop", ""), want: []string{"R601 Environment shop/prod"}},
		"a field that is unknown":     {text: join(all, env("shop", "prod", "shop", after("environment: staging, mistaken: true"))), want: []string{"R101 Environment shop/prod"}},
		"no upstream":                 {text: join(all, prod), want: []string{"R603 Environment shop/prod"}},
		"an upstream that is elsewhere": {
			text: join(all, prod), external: "Environment/far/staging", want: []string{"R603? Environment shop/prod"},
		},
		"an upstream of another Rollout": {
			text: join(all, prod, change(t, far, "name: shop}, name", "name: web}, name")),
			want: []string{"R601 Environment far/staging", "R603 Environment shop/prod"},
		},
		"an upstream with a variable": {
			text: join(all, prod, change(t, far, "environment: staging", `environment: "${ENV}"`)),
			want: []string{"R101? Environment far/staging", "R603? Environment shop/prod"},
		},
		"an upstream whose namespace is given elsewhere": {
			text: join(all, prod, change(t, env("far", "staging", "shop", open), ", namespace: far", "")),
			want: []string{"R601? Environment staging", "R603? Environment shop/prod", "R604? Environment shop/prod"},
		},
		"labels of the namespace that are not known": {text: join(all, prod, far), want: []string{"R604? Environment shop/prod"}},
		"a namespace that is let in":                 {text: join(all, prod, far, namespace)},
		"a namespace that is not let in": {
			text: join(all, prod, far, change(t, namespace, "env: production", "env: test")), want: []string{"R604 Environment shop/prod"},
		},
		"a namespace that is let in by its name": {
			text: join(all, prod, change(t, far, "{env: production}", "{kubernetes.io/metadata.name: shop}")),
		},
		"every namespace is let in": {text: join(all, prod, change(t, far, "{matchLabels: {env: production}}", "{}"))},
		"after itself": {
			text: join(all, env("shop", "prod", "shop", after("environment: prod"))), want: []string{"R605 Environment shop/prod"},
		},
		"parallel to itself":       {text: join(all, env("shop", "prod", "shop", after("environment: prod, type: Parallel")))},
		"the same in two overlays": {text: join(all, env("shop", "prod", "shop", ""), env("shop", "prod", "shop", ""))},
		"type github": {
			text: join(all, env("shop", "prod", "shop", ", relationship: {environment: staging, type: After}, backend: {type: github, project: a/b}")),
		},
		"digests of both": {
			text: join(all, change(t, prod, revision, ""), change(t, far, "{env: production}", "{}")),
			want: []string{"R608 ImagePolicy far/shop", "R608 ImagePolicy shop/shop"},
		},
		"an upstream in another cluster": {text: join(all, env("shop", "prod", "shop", elsewhere("registry.example.com/reports")))},
		"an upstream of the same names in another cluster": {
			text: join(all, far, change(t, namespace, "env: production", "env: test"), env("shop", "prod", "shop", elsewhere("registry.example.com/reports"))),
		},
		"after an environment of its own names in another cluster": {
			text: join(all, change(t, env("shop", "prod", "shop", elsewhere("registry.example.com/reports")), "environment: staging", "environment: prod")),
		},
		"a repository with a variable":  {text: join(all, env("shop", "prod", "shop", elsewhere("${REGISTRY}/reports"))), want: []string{"R101? Environment shop/prod"}},
		"a repository with a port":      {text: join(all, env("shop", "prod", "shop", elsewhere("localhost:5000/reports")))},
		"a repository with a tag":       {text: join(all, env("shop", "prod", "shop", elsewhere("localhost:5000/reports:v1"))), want: []string{"R609 Environment shop/prod"}},
		"a repository with a digest":    {text: join(all, env("shop", "prod", "shop", elsewhere("localhost:5000/reports@sha256:ab"))), want: []string{"R609 Environment shop/prod"}},
		"a repository without registry": {text: join(all, env("shop", "prod", "shop", elsewhere("reports"))), want: []string{"R609 Environment shop/prod"}},
		"a project of type github":      {text: join(all, env("shop", "prod", "shop", ", backend: {type: github, project: https://github.com/a/b}"))},
		"reports among releases, by another name": {
			text: join(all, image("docker.io/library/shop"), env("shop", "prod", "shop", ", backend: {type: oci, project: index.docker.io/library/shop}")),
			want: []string{"R610 Environment shop/prod"},
		},
		"a Rollout with its Environment": {
			text: join(policy, change(t, rollout, "deployTimeout", "environmentRef: {name: prod}, deployTimeout"), repository, env("shop", "prod", "shop", "")),
		},
		"a Rollout with the Environment of another one": {
			text:     join(policy, change(t, rollout, "deployTimeout", "environmentRef: {name: prod}, deployTimeout"), repository, env("shop", "prod", "web", "")),
			external: "Rollout/shop/web", want: []string{"R602 Rollout shop/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(tt.text, func(o *lint.Options) {
				if tt.external != "" {
					external, err := lint.ParseExternal(tt.external)
					if err != nil {
						t.Fatal(err)
					}
					o.External = []lint.External{external}
				}
			})
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}

// In a cluster, a namespace that was not read may have anything.
func TestUpstreamInANamespaceThatWasNotRead(t *testing.T) {
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(env("shop", "prod", "shop", ", matchBy: Revision, upstreams: [{environment: staging, namespace: far}]")), &object); err != nil {
		t.Fatal(err)
	}
	result := lint.Cluster([]map[string]any{object}, lint.Options{Now: noon})
	if diff := cmp.Diff([]string{"R601 Environment shop/prod", "R603? Environment shop/prod"}, described(result)); diff != "" {
		t.Error(diff)
	}
}
