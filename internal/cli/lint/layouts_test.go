// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

// layout returns the files of a repository.
func layout(t *testing.T, name string) []lint.File {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "layouts", name))
	if err != nil {
		t.Fatal(err)
	}
	var files []lint.File
	for _, file := range archive.Files {
		files = append(files, lint.File{Name: file.Name, Content: file.Data})
	}
	return files
}

// below returns the manifests below a folder of this repository.
func below(t *testing.T, folder string) []lint.File {
	t.Helper()
	var files []lint.File
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(name)
		files = append(files, lint.File{Name: strings.TrimPrefix(name, root+"/"), Content: content})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wrongAnnotation is what a typo makes of the name of a Rollout.
const wrongAnnotation = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: wrong, namespace: flux-system, annotations: {rollout.kuberik.com/rollout: typo}}
spec: {ref: {tag: none-yet}}
`

// A repository is linted as a whole, and what is right has no finding.
func TestRepositoriesAsTheyAreUsual(t *testing.T) {
	running := "config/samples/running/"
	for name, tt := range map[string]struct {
		files []lint.File
		// typo is what is put into a file, and what for.
		typo [2]string
		in   string
		// wrong are the findings about what is wrong on purpose.
		wrong map[string]string
	}{
		"clusters, bases and overlays": {
			files: layout(t, "monorepo.txtar"), in: "apps/base/podinfo/repository.yaml", typo: [2]string{"rollout.kuberik.com/rollout: podinfo", "rollout.kuberik.com/rollout: podinfoo"},
		},
		"objects of one cluster": {
			files: layout(t, "monorepo.txtar"), in: "clusters/production/web/web.yaml", typo: [2]string{"rollout.kuberik.com/rollout: web", "rollout.kuberik.com/rollout: wed"},
		},
		"a repository for each team": {
			files: layout(t, "tenants.txtar"), in: "dev-team/base/podinfo.yaml", typo: [2]string{"tag.from: podinfo", "tag.from: podinfoo"},
		},
		"charts":  {files: below(t, "charts")},
		"samples": {files: below(t, "config/samples"), wrong: map[string]string{running + "shop-payments.yaml R203": "it is a step of a migration"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, lint.Files(tt.files, lint.Options{Now: noon}), tt.wrong)
			files := slices.Clone(tt.files)
			at := slices.IndexFunc(files, func(f lint.File) bool { return f.Name == tt.in })
			if at < 0 {
				files = append(files, lint.File{Name: filepath.Dir(files[0].Name) + "/wrong.yaml", Content: []byte(wrongAnnotation)})
			} else {
				files[at].Content = []byte(strings.ReplaceAll(string(files[at].Content), tt.typo[0], tt.typo[1]))
			}
			if !slices.ContainsFunc(lint.Files(files, lint.Options{Now: noon}).Findings, func(f lint.Finding) bool { return f.Rule == "R202" }) {
				t.Error("a wrong annotation is not found")
			}
		})
	}
}

// Two definitions are a mistake only where something applies both.
func TestDefinitionsAreComparedWhereSomethingAppliesBoth(t *testing.T) {
	file := func(name, content string) lint.File { return lint.File{Name: name, Content: []byte(content)} }
	one, two := policy+"---"+rollout, policy+"---"+change(t, rollout, "15m", "10m")
	overlay := func(resources string) string {
		return "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + resources + "]\n"
	}
	flux := `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
`
	const found, notChecked = "R404 Rollout shop/shop", "R404? Rollout shop/shop"
	for name, tt := range map[string]struct {
		files []lint.File
		want  string
	}{
		"in two clusters":                     {[]lint.File{file("clusters/a/x.yaml", one), file("clusters/b/x.yaml", two)}, notChecked},
		"in one folder":                       {[]lint.File{file("clusters/a/x.yaml", one), file("clusters/a/y.yaml", two)}, found},
		"named by one kustomization.yaml":     {[]lint.File{file("a/x.yaml", one), file("b/x.yaml", two), file("kustomization.yaml", overlay("a/x.yaml, b/x.yaml"))}, found},
		"by folders of a kustomization.yaml":  {[]lint.File{file("all/kustomization.yaml", overlay("../a, ../b")), file("a/kustomization.yaml", overlay("x.yaml")), file("b/kustomization.yaml", overlay("x.yaml")), file("a/x.yaml", one), file("b/x.yaml", two)}, found},
		"by different ones":                   {[]lint.File{file("a/kustomization.yaml", overlay("x.yaml")), file("b/kustomization.yaml", overlay("x.yaml")), file("a/x.yaml", one), file("b/x.yaml", two)}, notChecked},
		"below one path of Flux":              {[]lint.File{file("apps/a/x.yaml", one), file("apps/b/x.yaml", two), file("clusters/c.yaml", flux)}, found},
		"one of them below a path of Flux":    {[]lint.File{file("apps/a/x.yaml", one), file("b/x.yaml", two), file("clusters/c.yaml", flux)}, notChecked},
		"below a path that names one of them": {[]lint.File{file("apps/kustomization.yaml", overlay("a/x.yaml")), file("apps/a/x.yaml", one), file("apps/b/x.yaml", two), file("clusters/c.yaml", flux)}, notChecked},
		"by two paths, from one folder on":    {[]lint.File{file("apps/x.yaml", one), file("infra/x.yaml", two), file("clusters/c.yaml", flux+"---"+change(t, change(t, flux, "name: shop", "name: infra"), "./apps", "./infra"))}, found},
		"by two paths, from two folders on":   {[]lint.File{file("apps/x.yaml", one), file("infra/x.yaml", two), file("clusters/c/c.yaml", flux), file("clusters/d/d.yaml", change(t, change(t, flux, "name: shop", "name: infra"), "./apps", "./infra"))}, notChecked},
		"below that path in different trees":  {[]lint.File{file("x/apps/a/x.yaml", one), file("y/apps/b/x.yaml", two), file("clusters/c.yaml", flux)}, notChecked},
	} {
		t.Run(name, func(t *testing.T) {
			result := lint.Files(tt.files, lint.Options{Now: noon, Disable: []string{"R207"}})
			if got := described(result); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What is for another cluster says nothing about an object. As long as nothing is defined
// for several clusters, all files are for one.
func TestRelationsEndWithTheCluster(t *testing.T) {
	file := func(name, content string) lint.File { return lint.File{Name: name, Content: []byte(content)} }
	never := `
apiVersion: kuberik.com/v1alpha1
kind: RolloutSchedule
metadata: {name: never, namespace: shop}
spec: {rolloutSelector: {}, action: Deny, rules: [{daysOfWeek: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday]}]}
`
	closed := func(files ...lint.File) (in []string) {
		for _, f := range lint.Files(files, lint.Options{Now: noon}).Findings {
			if f.Rule == "R403" {
				in = append(in, f.File)
			}
		}
		return in
	}
	if got := closed(file("shop/x.yaml", policy+"---"+rollout), file("schedules/x.yaml", never)); !slices.Equal(got, []string{"shop/x.yaml"}) {
		t.Errorf("in one cluster: %q", got)
	}
	shorter := change(t, rollout, "15m", "10m")
	if got := closed(file("a/x.yaml", policy+"---"+rollout), file("b/x.yaml", policy+"---"+shorter+"---"+never)); !slices.Equal(got, []string{"b/x.yaml"}) {
		t.Errorf("in two clusters: %q", got)
	}
}

func TestTemplatesAreNotChecked(t *testing.T) {
	chart := lint.File{Name: "charts/shop/Chart.yaml", Content: []byte("apiVersion: v2\nname: shop\n")}
	template := []byte("{{- if .Values.on }}\nkind: Rollout\nspec: {{ .Values.spec }}\n{{- end }}\n")
	for name, files := range map[string][]lint.File{
		"of a chart": {chart, {Name: "charts/shop/templates/a.yaml", Content: template}, {Name: "charts/shop/templates/tests/b.yaml", Content: template}},
		"of others":  {{Name: "apps/a.yaml", Content: template}},
	} {
		t.Run(name, func(t *testing.T) {
			result := lint.Files(files, lint.Options{Now: noon})
			if len(result.Findings) > 0 || len(result.NotChecked) != 1 {
				t.Errorf("got %+v", result)
			}
		})
	}
	broken := lint.Files([]lint.File{{Name: "a.yaml", Content: []byte("a: [\n")}}, lint.Options{Now: noon})
	if len(broken.Findings) != 1 || strings.Contains(broken.Findings[0].Message, "yaml: ") {
		t.Errorf("got %+v", broken.Findings)
	}
}

func TestObjectWithoutANameIsNamedByItsKind(t *testing.T) {
	result := lintText("apiVersion: image.toolkit.fluxcd.io/v1beta2\nkind: ImageUpdateAutomation\nspec: {}\n")
	if len(result.Findings) == 0 || strings.Contains(result.Findings[0].Message, "  ") || result.Findings[0].Object != "ImageUpdateAutomation" {
		t.Errorf("got %+v", result.Findings)
	}
}
