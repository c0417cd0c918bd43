// SPDX-License-Identifier: Apache-2.0

// Command schemas writes a JSON schema for each kind that the command line prints with -o,
// from the Go types and their comments.
//
//	go -C hack/tools run ./schemas ../.. FOLDER
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

const module = "github.com/fluxrollouts/rollout-controller/"

// verbs is where the packages of the verbs are.
const verbs = "internal/cli/verbs/"

// kinds are the packages and types of what is printed, by kind.
var kinds = map[string][2]string{
	"Approvals":        {verbs + "inspect", "Approvals"},
	"AwaitedApprovals": {verbs + "inspect", "AwaitedApprovals"},
	"Comparison":       {verbs + "simulate", "Comparison"},
	"Events":           {"internal/cli/tree", "EventList"},
	"Explanation":      {"internal/cli/explain", "Explanation"},
	"Findings":         {verbs + "check", "Findings"},
	"FreezeList":       {verbs + "inspect", "freezeAnswers"},
	"History":          {verbs + "inspect", "History"},
	"PipelineList":     {verbs + "inspect", "PipelineList"},
	"QuarantineList":   {verbs + "inspect", "quarantineAnswers"},
	"Simulation":       {verbs + "simulate", "Simulation"},
	"SimulationList":   {verbs + "simulate", "SimulationList"},
	"Trace":            {"internal/cli/tree", "Origin"},
	"Tree":             {"internal/cli/tree", "Tree"},
	"Version":          {verbs + "check", "Version"},
}

// answers is the API version of all of them.
const answers = "cli.kuberik.com/v1alpha1"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: schemas ROOT FOLDER")
		os.Exit(1)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "write schemas:", err)
		os.Exit(1)
	}
}

func run(root, folder string) error {
	parser, loaded, err := parse(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for kind, where := range kinds {
		schema := (&document{parser: parser, definitions: apiextensionsv1.JSONSchemaDefinitions{}}).of(kind, crd.TypeIdent{Package: loaded[module+where[0]], Name: where[1]})
		if loader.PrintErrors(slices.Collect(maps.Values(loaded)), packages.TypeError) {
			return fmt.Errorf("the types of %s have errors", kind)
		}
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, strings.ToLower(kind)+".json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// parse loads the packages, and returns them by their path.
func parse(root string) (*crd.Parser, map[string]*loader.Package, error) {
	var paths []string
	for _, where := range kinds {
		paths = append(paths, module+where[0])
	}
	slices.Sort(paths)
	all, err := loader.LoadRootsWithConfig(&packages.Config{Dir: root}, slices.Compact(paths)...)
	if err != nil {
		return nil, nil, err
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return nil, nil, err
	}
	parser := &crd.Parser{Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}, AllowDangerousTypes: true}
	crd.AddKnownTypes(parser)
	loaded := map[string]*loader.Package{}
	for _, one := range all {
		parser.NeedPackage(one)
		loaded[one.PkgPath] = one
	}
	return parser, loaded, nil
}

// document is the schema of one kind, with the schemas of the types below it.
type document struct {
	parser      *crd.Parser
	definitions apiextensionsv1.JSONSchemaDefinitions
}

func (d *document) of(kind string, ident crd.TypeIdent) apiextensionsv1.JSONSchemaProps {
	schema := d.schema(ident)
	schema.Schema, schema.Title, schema.Definitions = "http://json-schema.org/draft-07/schema#", kind, d.definitions
	for name, value := range map[string]string{"apiVersion": answers, "kind": kind} {
		property := schema.Properties[name]
		property.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"` + value + `"`)}}
		schema.Properties[name] = property
		schema.Required = append(schema.Required, name)
	}
	slices.Sort(schema.Required)
	return schema
}

// schema returns the schema of a type. Types that it refers to become definitions.
func (d *document) schema(ident crd.TypeIdent) apiextensionsv1.JSONSchemaProps {
	d.parser.NeedSchemaFor(ident)
	parsed := d.parser.Schemata[ident]
	schema := *parsed.DeepCopy()
	crd.EditSchema(&schema, references{document: d, from: ident.Package})
	return schema
}

// references makes the references of a schema those of a document.
type references struct {
	*document
	from *loader.Package
}

func (r references) Visit(schema *apiextensionsv1.JSONSchemaProps) crd.SchemaVisitor {
	if schema == nil {
		return r
	}
	schema.XListType, schema.XListMapKeys, schema.XMapType, schema.XValidations = nil, nil, nil, nil // about writes
	inlined := schema.AllOf
	schema.AllOf = nil
	for _, one := range inlined {
		r.inline(schema, one)
	}
	if schema.Ref != nil && !isDefined(*schema.Ref) {
		schema.Ref = new("#/definitions/" + r.define(*schema.Ref))
	}
	return r
}

// isDefined reports whether a reference is one of a document: an embedded type has been
// visited before. The parser's own have no dot, or a package that is escaped.
func isDefined(reference string) bool {
	return strings.Contains(reference, ".") && !strings.Contains(reference, "~")
}

// inline adds the fields of an embedded type, or what a marker says of a field.
func (r references) inline(schema *apiextensionsv1.JSONSchemaProps, embedded apiextensionsv1.JSONSchemaProps) {
	if embedded.Ref == nil {
		schema.AllOf = append(schema.AllOf, embedded)
		return
	}
	if schema.Type != "object" {
		schema.Ref = embedded.Ref // the other part only describes it
		return
	}
	of := r.schema(r.ident(*embedded.Ref))
	if schema.Properties == nil {
		schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	maps.Copy(schema.Properties, of.Properties)
	schema.Required = append(schema.Required, of.Required...)
	slices.Sort(schema.Required)
}

// define returns the name of a definition, and adds it if it is not there. A type may
// refer to itself.
func (r references) define(reference string) string {
	ident := r.ident(reference)
	name := path.Base(ident.Package.PkgPath) + "." + ident.Name
	if strings.HasPrefix(ident.Package.PkgPath, module+verbs) {
		name = "cli." + ident.Name // whichever package has the verb
	}
	if _, known := r.definitions[name]; !known {
		r.definitions[name] = apiextensionsv1.JSONSchemaProps{}
		r.definitions[name] = r.schema(ident)
	}
	return name
}

func (r references) ident(reference string) crd.TypeIdent {
	name, pkg, err := crd.RefParts(reference)
	if err != nil {
		panic(err) // the parser wrote it
	}
	if pkg == "" || pkg == r.from.PkgPath {
		return crd.TypeIdent{Package: r.from, Name: name}
	}
	return crd.TypeIdent{Package: r.from.Imports()[pkg], Name: name}
}
