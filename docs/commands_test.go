// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func TestEveryAnnotationIsOneOfTheAPI(t *testing.T) {
	known := append(annotationKeys(t), v1alpha1.QuarantineDigestLabel)
	key := regexp.MustCompile(`(?:[a-z-]+\.)*kuberik\.com/[A-Za-z0-9._<>-]+`)
	mentions := 0
	for file, text := range documents(t) {
		for _, found := range key.FindAllString(text, -1) {
			found = strings.TrimRight(found, ".")
			if isOtherKey(found) {
				continue
			}
			mentions++
			isSubstitute := strings.HasPrefix(found, v1alpha1.SubstituteAnnotationPrefix) &&
				strings.HasSuffix(found, v1alpha1.SubstituteAnnotationSuffix)
			isValue := strings.HasPrefix(found, v1alpha1.ValuesAnnotationPrefix) && strings.HasSuffix(found, v1alpha1.ValuesAnnotationSuffix)
			isDigest := strings.HasPrefix(found, v1alpha1.DigestSubstituteAnnotationPrefix) || strings.HasPrefix(found, v1alpha1.DigestValuesAnnotationPrefix)
			isReset := strings.HasPrefix(found, v1alpha1.ResetAnnotationPrefix)
			isPromotion := strings.HasPrefix(found, v1alpha1.PromotionAnnotationPrefix)
			if !isSubstitute && !isValue && !isDigest && !isReset && !isPromotion && !slices.Contains(known, found) {
				t.Errorf("%s mentions %s, which is no constant of api/v1alpha1/annotations.go", file, found)
			}
		}
	}
	if len(known) < 15 || mentions < 60 {
		t.Errorf("found only %d keys, and %d places that mention one", len(known), mentions)
	}
}

// isOtherKey reports whether a key is an API version, or the label of roles, and not an
// annotation.
func isOtherKey(key string) bool {
	return strings.HasPrefix(key, "kuberik.com/") || strings.HasPrefix(key, "environments.kuberik.com/") ||
		strings.HasPrefix(key, "rollout-controller.kuberik.com/")
}

// annotationKeys returns the values of all constants in annotations.go.
func annotationKeys(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(root, "api", "v1alpha1", "annotations.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if key, err := strconv.Unquote(literal.Value); err == nil {
				keys = append(keys, key)
			}
		}
		return true
	})
	return keys
}

// kinds contains the kinds in commands, by the names that kubectl knows.
var kinds = map[string]func() any{
	"rollout":                  func() any { return &v1alpha1.Rollout{} },
	"rolloutgate":              func() any { return &v1alpha1.RolloutGate{} },
	"rolloutschedule":          func() any { return &v1alpha1.RolloutSchedule{} },
	"clusterrolloutschedule":   func() any { return &v1alpha1.ClusterRolloutSchedule{} },
	"healthcheck":              func() any { return &v1alpha1.HealthCheck{} },
	"releasequarantine":        func() any { return &v1alpha1.ReleaseQuarantine{} },
	"clusterreleasequarantine": func() any { return &v1alpha1.ClusterReleaseQuarantine{} },
	"environment":              func() any { return &environmentsv1.Environment{} },
	"ocirepository":            func() any { return &sourcev1.OCIRepository{} },
	"ocirepositories":          func() any { return &sourcev1.OCIRepository{} },
	"kustomization":            func() any { return &kustomizev1.Kustomization{} },
	"helmrelease":              func() any { return &helmv2.HelmRelease{} },
}

var (
	commandKind = regexp.MustCompile(`\b(?:get|wait|patch|annotate) (?:--?[\w=-]+ )*([a-z]+)[ /]`)
	commandPath = regexp.MustCompile(`jsonpath='([^']+)'`)
	commandData = regexp.MustCompile(`-p '([^']+)'`)
)

func TestEveryCommandNamesFieldsThatExist(t *testing.T) {
	paths, patches := 0, 0
	for file, text := range documents(t) {
		for _, command := range commandsIn(text) {
			kind, ours := kindOf(command)
			if !ours {
				continue
			}
			for _, path := range commandPath.FindAllStringSubmatch(command, -1) {
				paths++
				if err := evaluate(path[1], kind, strings.Contains(command, " -A ")); err != nil {
					t.Errorf("%s: %v in\n%s", file, err, command)
				}
			}
			for _, data := range commandData.FindAllStringSubmatch(command, -1) {
				patches++
				if err := yaml.UnmarshalStrict([]byte(data[1]), kind()); err != nil {
					t.Errorf("%s: %v in\n%s", file, err, command)
				}
			}
		}
	}
	if paths < 15 || patches < 10 {
		t.Errorf("found only %d paths and %d patches", paths, patches)
	}
}

// Flux overwrites fields that kubectl sets under its own name on objects that come from
// Git. TestPinByHandOutlivesTheParentUnlessKubectlSignsIt shows this.
func TestEveryChangeByHandIsSignedSoThatFluxKeepsIt(t *testing.T) {
	change := regexp.MustCompile(`^ *kubectl (?:-n [a-z-]+ )?(?:patch|annotate|label|edit) `)
	changes := 0
	for file, text := range documents(t) {
		for _, command := range commandsIn(text) {
			if !change.MatchString(command) || !strings.Contains(command, " rollout") ||
				strings.Contains(command, v1alpha1.ReconcileRequestAnnotation) { // the controller answers it at once
				continue
			}
			changes++
			if !strings.Contains(command, " --field-manager=") {
				t.Errorf("%s: Flux would undo this, add --field-manager=on-call:\n%s", file, command)
			}
		}
	}
	if changes < 15 {
		t.Errorf("found only %d commands that change a Rollout or a gate", changes)
	}
}

// commandsIn returns the commands in shell blocks and between backticks.
func commandsIn(text string) []string {
	var commands []string
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		if block[2] == "sh" {
			joined := regexp.MustCompile(`\\\n *`).ReplaceAllString(block[3], "")
			commands = append(commands, strings.Split(joined, "\n")...)
		}
	}
	for _, quoted := range quotesIn(text) {
		if strings.HasPrefix(quoted, "kubectl ") {
			commands = append(commands, quoted)
		}
	}
	return commands
}

// kindOf returns a function that creates an object of the kind in the command. It also
// reports whether that is a kind of this project or of one of its targets.
func kindOf(command string) (kind func() any, ours bool) {
	match := commandKind.FindStringSubmatch(command)
	if match == nil {
		return nil, false
	}
	if kind = kinds[match[1]]; kind == nil {
		kind = kinds[strings.TrimSuffix(match[1], "s")]
	}
	return kind, kind != nil
}

// evaluate evaluates a JSON path, as kubectl does, in an object with all fields that its
// kind can have. It returns an error if a field does not exist.
func evaluate(path string, kind func() any, list bool) error {
	object := kind()
	fill(reflect.ValueOf(object).Elem(), 0)
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var complete map[string]any
	if err := json.Unmarshal(raw, &complete); err != nil {
		return err
	}
	if list {
		complete = map[string]any{"items": []any{complete}}
	}
	template := jsonpath.New("command")
	if err := template.Parse(path); err != nil {
		return err
	}
	return template.Execute(io.Discard, complete)
}

// deepest is the depth at which filling ends, because kinds that contain themselves have
// no last field.
const deepest = 12

// fill gives every field a value.
func fill(v reflect.Value, depth int) {
	if depth > deepest || !v.CanSet() {
		return
	}
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(0, 0)))
		return
	case metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Second}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default:
	}
}
