// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

const (
	helmConsumer = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec: {chartRef: {kind: OCIRepository, name: shop}}
`
	generator = `
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: shop, namespace: shop}
spec: {sources: [{alias: app, kind: OCIRepository, name: shop}], artifacts: [{name: shop, revision: "@app", copy: [{from: "@app/**", to: "@artifact/"}]}]}
`
)

func TestConsumersOfWhatARolloutWrites(t *testing.T) {
	const none, unknown, ignored = "R212 OCIRepository shop/shop", "R212? OCIRepository shop/shop", "R213 OCIRepository shop/shop"
	other := change(t, kustomization, "name: shop}", "name: shpo}")
	far := change(t, change(t, kustomization, "namespace: shop", "namespace: b"), "name: shop}", "name: shop, namespace: shop}")
	farChart := change(t, change(t, helmConsumer, "namespace: shop", "namespace: b"), "name: shop}", "name: shop, namespace: shop}")
	for name, tt := range map[string]struct {
		consumers []string
		external  string
		want      []string
	}{
		"a Kustomization":                              {consumers: []string{kustomization}},
		"a HelmRelease":                                {consumers: []string{helmConsumer}},
		"a source with a typing error":                 {consumers: []string{other}, want: []string{none}},
		"a source of another kind":                     {consumers: []string{change(t, kustomization, "OCIRepository", "GitRepository")}, want: []string{none}},
		"files without any that could":                 {want: []string{unknown}},
		"one that is elsewhere":                        {consumers: []string{other}, external: "Kustomization/shop/shop", want: []string{unknown}},
		"a HelmRelease that is elsewhere":              {consumers: []string{other}, external: "HelmRelease/shop/shop", want: []string{unknown}},
		"one of another namespace that is elsewhere":   {consumers: []string{other}, external: "Kustomization/b/shop", want: []string{none}},
		"a source whose name is a variable":            {consumers: []string{change(t, kustomization, "name: shop}", "name: \"${APP}\"}")}, want: []string{unknown}},
		"one without a namespace":                      {consumers: []string{change(t, kustomization, ", namespace: shop", "")}},
		"a Kustomization of another namespace":         {consumers: []string{far}, want: []string{ignored}},
		"a HelmRelease of another namespace":           {consumers: []string{farChart}, want: []string{ignored}},
		"one of its namespace and one of another":      {consumers: []string{kustomization, farChart}, want: []string{ignored}},
		"one of another namespace with its own source": {consumers: []string{kustomization, change(t, kustomization, "namespace: shop", "namespace: b")}},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(join(append(tt.consumers, policy, rollout, repository)...), func(o *lint.Options) {
				o.Disable = nil
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

func TestMessagesAboutConsumers(t *testing.T) {
	other := change(t, kustomization, "name: shop}", "name: shpo}")
	far := change(t, change(t, kustomization, "namespace: shop", "namespace: b"), "name: shop}", "name: shop, namespace: shop}")
	for text, want := range map[string]lint.Finding{
		join(other, policy, rollout, repository): {
			Rule: "R212", Severity: lint.SeverityWarning, File: "a.yaml", Line: 21, Object: "OCIRepository shop/shop",
			Message: "no Kustomization or HelmRelease in namespace shop applies OCIRepository shop/shop, so its releases count as applied once Flux has pulled them",
			Remedy:  "correct the sourceRef or chartRef of what should apply it; if that is elsewhere, add --external Kustomization/shop/NAME",
		},
		join(kustomization, far, policy, rollout, repository): {
			Rule: "R213", Severity: lint.SeverityWarning, File: "a.yaml", Line: 26, Object: "OCIRepository shop/shop",
			Message: "Kustomization b/shop takes OCIRepository shop/shop, and Rollout shop/shop does not wait for it",
			Remedy:  "put the Rollout, the OCIRepository and a Kustomization or HelmRelease that applies it into one namespace; if it need not be waited for, disable this rule",
		},
	} {
		if diff := cmp.Diff([]lint.Finding{want}, lintText(text, func(o *lint.Options) { o.Disable = nil }).Findings); diff != "" {
			t.Error(diff)
		}
	}
}

// A Rollout follows what takes an artifact that has files of its OCIRepository.
func TestConsumersOfArtifacts(t *testing.T) {
	const none, unknown, ignored, wrong, other = "R212 OCIRepository shop/shop", "R212? OCIRepository shop/shop", "R213 OCIRepository shop/shop",
		"R219 ArtifactGenerator shop/shop", "R220 ArtifactGenerator shop/shop"
	takes := change(t, kustomization, "OCIRepository", "ExternalArtifact")
	far := change(t, change(t, takes, "namespace: shop", "namespace: b"), "name: shop}", "name: shop, namespace: shop}")
	chart := change(t, helmConsumer, "OCIRepository", "ExternalArtifact")
	two := change(t, change(t, generator, "sources: [", "sources: [{alias: config, kind: GitRepository, name: config}, "), "copy: [", "copy: [{from: \"@config/**\", to: \"@artifact/\"}, ")
	again := change(t, change(t, change(t, generator, "metadata: {name: shop", "metadata: {name: again"), "kind: OCIRepository", "kind: ExternalArtifact"), "artifacts: [{name: shop", "artifacts: [{name: again")
	patterned := change(t, generator, "spec: {", "spec: {pathPattern: \"@app/apps/*\", ")
	for name, tt := range map[string]struct {
		objects []string
		want    []string
	}{
		"a Kustomization":                     {objects: []string{generator, takes}},
		"a HelmRelease":                       {objects: []string{generator, chart}},
		"one of another namespace":            {objects: []string{generator, far, takes}, want: []string{ignored}},
		"nothing takes it":                    {objects: []string{generator, change(t, takes, "name: shop}", "name: shpo}")}, want: []string{none}},
		"it has files of another source":      {objects: []string{change(t, two, "from: \"@app/**\"", "from: \"@config/b/**\""), takes}, want: []string{none}},
		"it is made of another artifact":      {objects: []string{generator, again, change(t, takes, "name: shop}", "name: again}")}},
		"its name is that of a folder":        {objects: []string{patterned, takes}, want: []string{unknown}},
		"that name is known in a cluster":     {objects: []string{patterned + "status: {inventory: [{name: shop}]}\n", takes}},
		"it shows another source":             {objects: []string{change(t, two, "revision: \"@app\"", "revision: \"@config\""), takes}, want: []string{wrong}},
		"it does not show its other source":   {objects: []string{two, takes}, want: []string{other}},
		"it shows all sources by its content": {objects: []string{change(t, two, "revision: \"@app\", ", ""), takes}},
		"it is made of another repository":    {objects: []string{change(t, generator, "name: shop}]", "name: cart}]"), takes}, want: []string{none}},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(join(append(tt.objects, policy, rollout, repository)...), func(o *lint.Options) { o.Disable = nil })
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}

// In a cluster, Flux and the controller have recorded what files do not say.
func TestConsumersInACluster(t *testing.T) {
	generated := change(t, helmConsumer, "{chartRef: {kind: OCIRepository, name: shop}}", "{chart: {spec: {chart: shop}}}\nstatus: {helmChart: OCIRepository/shop/shop}")
	named := rollout + "status: {targets: [{kind: OCIRepository, namespace: shop, name: shop, reason: ConsumerElsewhere, message: Kustomization b/shop applies it from another namespace}]}\n"
	for name, tt := range map[string]struct {
		documents []string
		want      []string
	}{
		"none":                                   {[]string{policy, rollout, repository}, []string{"R212 OCIRepository shop/shop"}},
		"a chart that Flux has made":             {[]string{policy, rollout, repository, generated}, nil},
		"one of another namespace, that is read": {[]string{policy, named, repository}, []string{"R213 OCIRepository shop/shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, document := range tt.documents {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, object)
			}
			if diff := cmp.Diff(tt.want, described(lint.Cluster(objects, lint.Options{Now: noon}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
