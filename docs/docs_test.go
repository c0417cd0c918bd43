// SPDX-License-Identifier: Apache-2.0

// Package docs_test checks the documents against the code: manifests must decode, links
// must have a target, and every reason must be explained.
package docs_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	alertv1 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// root is the root of the repository, relative to this folder.
const root = ".."

// rulesOfLint is the page whose examples internal/cli/lint tests.
const rulesOfLint = "docs/cli/lint.md"

func TestEveryManifestHasOnlyFieldsOfItsKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), environmentsv1.AddToScheme(scheme),
		imagev1.AddToScheme(scheme), sourcev1.AddToScheme(scheme), generatorv1.AddToScheme(scheme), kustomizev1.AddToScheme(scheme), helmv2.AddToScheme(scheme),
		notificationv1.AddToScheme(scheme), alertv1.AddToScheme(scheme),
	); err != nil {
		t.Fatal(err)
	}
	ours, shown := []schema.GroupVersion{v1alpha1.GroupVersion, coordinationv1.GroupVersion, environmentsv1.GroupVersion}, map[string]bool{}
	for file, text := range documents(t) {
		if file == rulesOfLint {
			continue // it shows what is wrong, and its own test knows how
		}
		for _, manifest := range manifestsIn(text) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(manifest), &kind); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, manifest)
				continue
			}
			object, err := scheme.New(kind.GroupVersionKind())
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
				t.Errorf("%s: %s: %v", file, kind.Kind, err)
			}
			if slices.Contains(ours, kind.GroupVersionKind().GroupVersion()) {
				shown[kind.Kind] = true
			}
		}
	}
	want := []string{
		"ClusterReleaseQuarantine", "ClusterRolloutGate", "ClusterRolloutSchedule", "DeploymentCoordination", "Environment", "HealthCheck", "ReleaseQuarantine",
		"Rollout", "RolloutApproval", "RolloutGate", "RolloutSchedule",
	}
	if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, want) {
		t.Errorf("the documents show manifests of %v, want each of %v", got, want)
	}
}

func TestEveryReasonAndConditionIsExplained(t *testing.T) {
	for api, least := range map[string]int{"v1alpha1": 40, "coordination/v1": 30, "environments/v1alpha1": 15} {
		var pages strings.Builder
		for file, text := range documents(t) {
			if strings.HasPrefix(file, "docs/spec/"+api+"/") {
				pages.WriteString(text)
			}
		}
		constants := reasonsAndConditions(t, api)
		if len(constants) < least {
			t.Fatalf("found only %d constants of %s", len(constants), api)
		}
		for name, value := range constants {
			if !strings.Contains(pages.String(), "`"+value+"`") {
				t.Errorf("no page in docs/spec/%s mentions `%s` (%s)", api, value, name)
			}
		}
	}
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	all := documents(t)
	for file, text := range all {
		for _, link := range linksIn(text) {
			path, anchor, _ := strings.Cut(link, "#")
			target := file
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(file), path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, link)
			}
			if anchor != "" && !slices.Contains(anchorsIn(all[target]), anchor) {
				t.Errorf("%s links to %s, which has no such heading", file, link)
			}
		}
	}
}

func TestIndexHasEveryPageForUsers(t *testing.T) {
	all := documents(t)
	index := linksIn(all["docs/README.md"])
	for _, verb := range linksIn(all["docs/cli/reference/README.md"]) {
		index = append(index, "cli/reference/"+verb) // it is generated, and has its own index
	}
	pages := 0
	for file := range all {
		page, ok := strings.CutPrefix(file, "docs/")
		if !ok || page == "README.md" || page == "index.md" || strings.HasPrefix(page, "contributing/") {
			continue
		}
		pages++
		if !slices.Contains(index, page) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
	if pages < 12 {
		t.Errorf("found only %d pages", pages)
	}
}

// documents returns README.md and every page below docs, by their paths relative to the
// root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(name)] = string(content)
	}
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages at the root: %v, %v", pages, err)
	}
	for _, page := range append(pages, filepath.Join(root, "test", "README.md")) {
		add(page)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			add(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fence matches a fenced block: its indentation, language and content.
var fence = regexp.MustCompile("(?ms)^([ ]*)```([a-z]*)\n(.*?)^[ ]*```$")

// piped matches a manifest that is the input of a command.
var piped = regexp.MustCompile(`(?ms)^kubectl [^\n]*<<'?END'?\n(.*?)^END$`)

// manifestsIn returns the documents of all YAML blocks, and those that shell blocks pass
// to kubectl. It removes the indentation that a block in a list has.
func manifestsIn(text string) []string {
	var manifests []string
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		content := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[3], "")
		switch block[2] {
		case "yaml":
			manifests = append(manifests, strings.Split(content, "\n---\n")...)
		case "sh":
			for _, given := range piped.FindAllStringSubmatch(content, -1) {
				manifests = append(manifests, strings.Split(given[1], "\n---\n")...)
			}
		}
	}
	return manifests
}

// prose returns the text without its fenced blocks.
func prose(text string) string { return fence.ReplaceAllString(text, "") }

// code is what is between backticks: a pattern may look like a link.
var code = regexp.MustCompile("`[^`\n]*`")

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// linksIn returns the targets of links that stay in the repository.
func linksIn(text string) []string {
	var targets []string
	for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(prose(text), ""), -1) {
		if !strings.Contains(match[1], "://") && !strings.HasPrefix(match[1], "mailto:") {
			targets = append(targets, match[1])
		}
	}
	return targets
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsIn returns the anchors that GitHub creates for the headings.
func anchorsIn(text string) []string {
	var anchors []string
	for _, match := range heading.FindAllStringSubmatch(prose(text), -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		anchors = append(anchors, strings.ReplaceAll(plain, " ", "-"))
	}
	return anchors
}

// explained matches the names of constants whose values a page must mention, or the names
// of their types.
var explained = regexp.MustCompile("(Reason|Condition|Event)$")

// reasonsAndConditions returns the constants of an API whose names, or those of their
// types, end in Reason, Condition or Event, with their values.
func reasonsAndConditions(t *testing.T, api string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "api", filepath.FromSlash(api), "*_types.go"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		collectExplained(file, values)
	}
	return values
}

// collectExplained adds the constants of a file that a page must mention.
func collectExplained(file *ast.File, values map[string]string) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !explained.MatchString(name.Name) && !isOfExplained(spec) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				continue
			}
			if value, err := strconv.Unquote(literal.Value); err == nil {
				values[name.Name] = value
			}
		}
		return true
	})
}

// isOfExplained reports whether constants have a type whose name ends like that.
func isOfExplained(spec *ast.ValueSpec) bool {
	name, ok := spec.Type.(*ast.Ident)
	return ok && explained.MatchString(name.Name)
}
