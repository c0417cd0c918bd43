// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// schemaFolder has the published schemas: `make generate` writes them.
const schemaFolder = "../../../docs/cli/schemas"

// deepest is how often a type may be inside of others: more than in any answer here.
const deepest = 12

// publishedSchema returns the validator of a kind. An answer may have no field that the
// schema does not name.
func publishedSchema(t *testing.T, kind string) *validate.SchemaValidator {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(schemaFolder, strings.ToLower(kind)+".json"))
	if err != nil {
		t.Fatalf("the kind %s has no published schema: %v", kind, err)
	}
	document := map[string]any{}
	mustSucceed(t, json.Unmarshal(content, &document))
	definitions, _ := document["definitions"].(map[string]any)
	delete(document, "definitions")
	strict, err := json.Marshal(strictly(document, definitions, deepest))
	mustSucceed(t, err)
	schema := &spec.Schema{}
	mustSucceed(t, json.Unmarshal(strict, schema))
	return validate.NewSchemaValidator(schema, nil, "", strfmt.Default)
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// strictly puts definitions in the place of references to them, which the validator does
// not follow, and allows no fields that are not named.
func strictly(schema any, definitions map[string]any, levels int) any {
	switch schema := schema.(type) {
	case []any:
		all := make([]any, len(schema))
		for i, one := range schema {
			all[i] = strictly(one, definitions, levels)
		}
		return all
	case map[string]any:
		if reference, is := schema["$ref"].(string); is && levels > 0 {
			return strictly(definitions[strings.TrimPrefix(reference, "#/definitions/")], definitions, levels-1)
		}
		all := map[string]any{}
		for name, value := range schema {
			all[name] = strictly(value, definitions, levels)
		}
		if _, isObject := schema["properties"].(map[string]any); isObject && schema["type"] == "object" {
			all["additionalProperties"] = false
		}
		return all
	}
	return schema
}

// answered runs a verb in the cluster of a script, and returns what it prints.
func answered(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/script/" + script)
	mustSucceed(t, err)
	folder := t.TempDir()
	for _, file := range archive.Files {
		name := filepath.Join(folder, file.Name)
		mustSucceed(t, os.MkdirAll(filepath.Dir(name), 0o700))
		mustSucceed(t, os.WriteFile(name, file.Data, 0o600))
	}
	out := &strings.Builder{}
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	p.Now, p.Zone = func() time.Time { return noon }, time.FixedZone("CET", 3600)
	p.Connect = func(context.Context) (program.Cluster, error) {
		c, _, err := openRecording(filepath.Join(folder, "cluster.yaml"), filepath.Join(folder, "patch"))
		return c, err
	}
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "FOLDER", folder)
	}
	code := run(context.Background(), p, args)
	if code != 0 && code != program.No {
		t.Fatalf("%q: exit code %d: %s", args, code, out)
	}
	return []byte(strings.ReplaceAll(out.String(), folder, "FOLDER"))
}

// jsonAnswers are the verbs that print an answer, by its kind.
var jsonAnswers = map[string][]struct {
	script string
	args   []string
}{
	"Approvals":        {{"approvals.txtar", []string{"approvals", "-n", "shop"}}, {"approvals.txtar", []string{"approvals", "-A", "--past"}}},
	"AwaitedApprovals": {{"approvals.txtar", []string{"get", "-A", "--awaiting-approval"}}},
	"Comparison":       {{"get.txtar", []string{"diff", "-f", "FOLDER/open.yaml"}}},
	"Events":           {{"change.txtar", []string{"events", "shop"}}},
	"Explanation":      {{"change.txtar", []string{"explain", "shop"}}, {"failed.txtar", []string{"explain", "shop"}}, {"change.txtar", []string{"explain", "web"}}, {"measured.txtar", []string{"explain", "shop"}}, {"quarantine.txtar", []string{"explain", "shop"}}},
	"Findings":         {{"lint.txtar", []string{"lint", "FOLDER/bad"}}},
	"FreezeList":       {{"change.txtar", []string{"freeze"}}},
	"History":          {{"change.txtar", []string{"history", "shop"}}, {"failed.txtar", []string{"history", "shop"}}, {"quarantine.txtar", []string{"history", "web"}}},
	"PipelineList":     {{"pipeline.txtar", []string{"pipeline"}}, {"pipeline.txtar", []string{"pipeline", "-A"}}, {"elsewhere.txtar", []string{"pipeline"}}},
	"QuarantineList":   {{"quarantine.txtar", []string{"quarantine"}}},
	"Simulation":       {{"change.txtar", []string{"simulate", "shop", "--gate", "qa=open@+2h"}}, {"change.txtar", []string{"simulate", "shop"}}},
	"SimulationList":   {{"change.txtar", []string{"simulate"}}},
	"Trace":            {{"change.txtar", []string{"trace", "rollout/shop"}}},
	"Tree":             {{"change.txtar", []string{"status", "shop"}}, {"change.txtar", []string{"status", "shop", "--all"}}, {"bugreport.txtar", []string{"status", "shop", "--all"}}, {"measured.txtar", []string{"status", "shop"}}, {"quarantine.txtar", []string{"status", "shop"}}},
	"Version":          {{"doctor.txtar", []string{"version"}}, {"doctor.txtar", []string{"version", "--client"}}},
}

func TestEachAnswerInJSONMatchesItsPublishedSchema(t *testing.T) {
	for kind, verbs := range jsonAnswers {
		for _, verb := range verbs {
			t.Run(kind+" "+strings.Join(verb.args, " "), func(t *testing.T) {
				ask := func() []byte {
					return answered(t, verb.script, append(slices.Clone(verb.args), "-n", "shop", "-o", "json")...)
				}
				text := ask()
				var answer map[string]any
				if err := json.Unmarshal(text, &answer); err != nil || answer["kind"] != kind {
					t.Fatalf("it is no %s: %v: %s", kind, err, text)
				}
				if result := publishedSchema(t, kind).Validate(answer); !result.IsValid() {
					t.Errorf("%v\n%s", result.AsError(), text)
				}
				if again := ask(); string(again) != string(text) {
					t.Errorf("asked again, it answers\n%s\nand before it was\n%s", again, text)
				}
			})
		}
	}
}

// To add a kind, add a verb above that prints it.
func TestEachPublishedSchemaIsCompared(t *testing.T) {
	files, err := filepath.Glob(schemaFolder + "/*.json")
	mustSucceed(t, err)
	var published, compared []string
	for _, file := range files {
		published = append(published, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	for kind := range maps.Keys(jsonAnswers) {
		compared = append(compared, strings.ToLower(kind))
	}
	slices.Sort(compared)
	if !slices.Equal(published, compared) {
		t.Errorf("published are %q, and compared %q", published, compared)
	}
}

func TestSchemaRejectsWhatItDoesNotName(t *testing.T) {
	var answer map[string]any
	mustSucceed(t, json.Unmarshal(answered(t, "change.txtar", "explain", "shop", "-n", "shop", "-o", "json"), &answer))
	for what, change := range map[string]func(map[string]any){
		"a field more":     func(a map[string]any) { a["more"] = 1 },
		"a field less":     func(a map[string]any) { delete(a, "now") },
		"another type":     func(a map[string]any) { a["name"] = 1 },
		"another kind":     func(a map[string]any) { a["kind"] = "Tree" },
		"no time":          func(a map[string]any) { a["at"] = "tomorrow" },
		"more in a member": func(a map[string]any) { a["now"].(map[string]any)["more"] = 1 },
	} {
		changed := map[string]any{}
		copied, err := json.Marshal(answer)
		mustSucceed(t, err)
		mustSucceed(t, json.Unmarshal(copied, &changed))
		change(changed)
		if publishedSchema(t, "Explanation").Validate(changed).IsValid() {
			t.Errorf("it accepts %s", what)
		}
	}
}
