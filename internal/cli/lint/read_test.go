// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
)

// gate is a RolloutGate whose Rollout does not exist, which R404 finds in line 7.
const gate = `apiVersion: kuberik.com/v1alpha1
kind: RolloutGate
metadata:
  name: qa
  namespace: shop
spec:
  rolloutRef: {name: lost}
`

// places returns "file:line rule" of each finding.
func places(result lint.Result) []string {
	var all []string
	for _, f := range result.Findings {
		all = append(all, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Rule))
	}
	return all
}

// lintText lints a file. Most texts leave out what applies an OCIRepository.
func lintText(text string, options ...func(*lint.Options)) lint.Result {
	o := lint.Options{Now: noon, Disable: []string{"R212"}}
	for _, option := range options {
		option(&o)
	}
	return lint.Files([]lint.File{{Name: "a.yaml", Content: []byte(text)}}, o)
}

func TestLinesAreThoseOfTheFile(t *testing.T) {
	json := `{"apiVersion": "kuberik.com/v1alpha1", "kind": "RolloutGate",
		"metadata": {"name": "qa", "namespace": "shop"},
		"spec": {"passing": true,
			"rolloutRef": {"name": "lost"}}}`
	for name, tt := range map[string]struct {
		text    string
		want    []string
		objects int
	}{
		"one document":             {gate, []string{"a.yaml:7 R404"}, 1},
		"nothing":                  {"", nil, 0},
		"only comments":            {"# nothing\n---\n# at all\n", nil, 0},
		"after a comment":          {"# first\n\n---\n" + gate, []string{"a.yaml:10 R404"}, 1},
		"several documents":        {gate + "---\n" + strings.Replace(gate, "qa", "qb", 1), []string{"a.yaml:7 R404", "a.yaml:15 R404"}, 2},
		"a separator with a text":  {"--- # the gate\n" + gate, []string{"a.yaml:8 R404"}, 1},
		"a document that ends":     {gate + "...\n---\n" + strings.Replace(gate, "qa", "qb", 1), []string{"a.yaml:7 R404", "a.yaml:16 R404"}, 2},
		"a text after the end":     {gate + "...\n" + gate, []string{"a.yaml:7 R404", "a.yaml:8 R100"}, 1},
		"carriage returns":         {strings.ReplaceAll(gate+"---\n"+gate, "\n", "\r\n"), []string{"a.yaml:7 R404", "a.yaml:15 R404"}, 2},
		"a byte order mark":        {"\ufeff" + gate, []string{"a.yaml:7 R404"}, 1},
		"JSON":                     {json, []string{"a.yaml:4 R404"}, 1},
		"a list":                   {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(gate), "\n", "\n  "), []string{"a.yaml:10 R404"}, 1},
		"a list of gates":          {"apiVersion: kuberik.com/v1alpha1\nkind: RolloutGateList\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(gate), "\n", "\n  "), []string{"a.yaml:10 R404"}, 1},
		"a list in JSON":           {`{"apiVersion": "v1", "kind": "List", "items": [` + "\n" + json + "]}", []string{"a.yaml:5 R404"}, 1},
		"a broken document":        {"a: [\n---\n" + gate, []string{"a.yaml:1 R100", "a.yaml:9 R404"}, 1},
		"broken after a document":  {gate + "---\na:\n  b: c\n d: e\n", []string{"a.yaml:7 R404", "a.yaml:8 R100"}, 1},
		"a text":                   {"This is no manifest.\n", []string{"a.yaml:1 R100"}, 0},
		"bytes":                    {"\x00\x01\x02", []string{"a.yaml:0 R100"}, 0},
		"values of a chart":        {"replicas: 1\nimage: {tag: 1.0.0}\n", nil, 0},
		"operations of a patch":    {"- op: replace\n  path: /spec\n", nil, 0},
		"a chart":                  {"apiVersion: v2\nname: shop\n", nil, 0},
		"a field that is twice":    {gate + "  rolloutRef: {name: shop}\n", []string{"a.yaml:8 R100"}, 0},
		"no apiVersion":            {strings.SplitN(gate, "\n", 2)[1], []string{"a.yaml:1 R101"}, 1},
		"no such kind":             {strings.Replace(gate, "RolloutGate", "RolloutGates", 1), []string{"a.yaml:1 R101"}, 1},
		"no such version":          {strings.Replace(gate, "v1alpha1", "v1", 1), []string{"a.yaml:1 R101", "a.yaml:7 R404"}, 1},
		"another group's Rollout":  {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: shop}\nspec: {replicas: 1}\n", nil, 1},
		"an unknown field":         {gate + "  rolloutReff: {}\n", []string{"a.yaml:7 R404", "a.yaml:8 R101"}, 1},
		"an unknown label field":   {strings.Replace(gate, "  name: qa", "  name: qa\n  lables: {}", 1), []string{"a.yaml:5 R101", "a.yaml:8 R404"}, 1},
		"labels that are no texts": {strings.Replace(gate, "  name: qa", "  labels: {a: 1}\n  name: qa", 1), []string{"a.yaml:3 R101", "a.yaml:8 R404"}, 1},
		"a type in a list":         {gate + "  allowedVersions:\n  - 1.0.0\n  - 1.1\n", []string{"a.yaml:7 R404", "a.yaml:10 R101"}, 1},
		"no name":                  {strings.Replace(gate, "  name: qa\n", "", 1), []string{"a.yaml:3 R101", "a.yaml:6 R404"}, 1},
		"a word for true":          {gate + "  passing: yes\n", []string{"a.yaml:7 R404"}, 1},
		"an anchor": {
			strings.Replace(gate, "{name: lost}", "&ref {name: lost}", 1) + "---\nspec: {}\n", []string{"a.yaml:7 R404"}, 1,
		},
		"a merge": {
			"x: &spec\n  rolloutRef: {name: lost}\n" + strings.Replace(gate, "  rolloutRef: {name: lost}\n", "  <<: *spec\n", 1),
			[]string{"a.yaml:1 R101", "a.yaml:8 R404"}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(tt.text)
			if diff := cmp.Diff(tt.want, places(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result.Findings)
			}
			if result.Objects != tt.objects || result.Files != 1 {
				t.Errorf("read %d objects of %d files, want %d of 1", result.Objects, result.Files, tt.objects)
			}
		})
	}
}

func TestWhatIsTooLargeIsAFinding(t *testing.T) {
	bomb := "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	long := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		text string
		vars map[string]string
		want string
	}{
		"a file":             {strings.Repeat("# comment\n", lint.MostBytes/10+1), nil, "the file has 8388610 bytes, and may have 8388608"},
		"documents":          {strings.Repeat("---\na: b\n", 10_001), nil, "the file has 10001 documents, and may have 10000"},
		"aliases of values":  {bomb, nil, "the document cannot be read: with its aliases expanded the file has more than 500000 values"},
		"aliases of a text":  {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 40) + "]\n", nil, "the document cannot be read: with aliases and variables replaced the file has more than 33554432 bytes"},
		"an endless alias":   {"a: &a\n- *a\n", nil, "the document cannot be read: values are nested more than 100 deep"},
		"nesting":            {strings.Repeat("[", 101) + strings.Repeat("]", 101), nil, ""},
		"nesting of a field": {"a: " + strings.Repeat("[", 101) + strings.Repeat("]", 101), nil, "the document cannot be read: values are nested more than 100 deep"},
		"variables": {
			"a: [" + strings.Repeat("\"${X}\", ", 40) + "]", map[string]string{"X": long},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(tt.text, func(o *lint.Options) { o.Vars = tt.vars })
			var got string
			for _, finding := range result.Findings {
				got += finding.Message
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	rollout := func(bake string) string {
		return "apiVersion: kuberik.com/v1alpha1\nkind: Rollout\nmetadata: {name: shop, namespace: shop}\nspec:\n  releasesImagePolicy: {name: shop}\n  bakeTime: " + bake + "\n"
	}
	const invalid, notKnown = "a.yaml:6 R101", "a.yaml:6 it has variables whose values are not known"
	for name, tt := range map[string]struct {
		bake string
		vars map[string]string
		want []string
	}{
		"not given":              {bake: "${BAKE}", want: []string{notKnown}},
		"not given, in quotes":   {bake: `"${BAKE}m"`, want: []string{notKnown}},
		"given":                  {bake: "${BAKE}", vars: map[string]string{"BAKE": "10m"}},
		"given, and wrong":       {bake: "${BAKE}", vars: map[string]string{"BAKE": "soon"}, want: []string{invalid}},
		"given as a number":      {bake: `"${BAKE}"`, vars: map[string]string{"BAKE": "10"}, want: []string{invalid}},
		"a part":                 {bake: "${MINUTES}m", vars: map[string]string{"MINUTES": "10"}},
		"a default":              {bake: "${BAKE:=10m}"},
		"a default, and wrong":   {bake: "${BAKE:-soon}", want: []string{invalid}},
		"a default, and a value": {bake: "${BAKE:=soon}", vars: map[string]string{"BAKE": "10m"}},
		"not a variable":         {bake: "$${BAKE}", want: []string{invalid}},
		"another modifier":       {bake: "${BAKE^^}", vars: map[string]string{"BAKE": "10m"}, want: []string{notKnown}},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(rollout(tt.bake), func(o *lint.Options) { o.Vars, o.Disable = tt.vars, []string{"R201", "R207"} })
			got := places(result)
			for _, each := range result.NotChecked {
				got = append(got, fmt.Sprintf("%s:%d %s", each.File, each.Line, each.Reason))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
