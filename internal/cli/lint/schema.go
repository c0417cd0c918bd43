// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/config"
)

// What the CEL rules of an object may cost: the limits of an API server.
const (
	costPerCall   = 1_000_000
	costPerObject = 10_000_000
)

// schemaProblem is something that a schema does not allow.
type schemaProblem struct {
	path    []string
	message string
	remedy  string
}

// kindSchema is the schema of one version of a kind.
type kindSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	// rules are the CEL rules; nil if there are none.
	rules *cel.Validator
}

// schemas returns the schemas of our kinds.
var schemas = sync.OnceValue(func() map[k8sschema.GroupVersionKind]kindSchema {
	all := map[k8sschema.GroupVersionKind]kindSchema{}
	for _, content := range config.Definitions() {
		addSchemas(all, content)
	}
	return all
})

// mustBeValid panics if our own CRDs, which are in the program, are wrong.
func mustBeValid(err error) {
	if err != nil {
		panic(err)
	}
}

func addSchemas(all map[k8sschema.GroupVersionKind]kindSchema, content []byte) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	mustBeValid(yaml.Unmarshal(content, definition))
	for _, version := range definition.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		mustBeValid(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil))
		structural, err := schema.NewStructural(internal)
		mustBeValid(err)
		validator, _, err := validation.NewSchemaValidator(internal)
		mustBeValid(err)
		all[k8sschema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = kindSchema{
			structural: structural, validator: validator, rules: cel.NewValidator(structural, true, costPerCall),
		}
	}
}

// isOurs reports whether a kind is one of ours, in whatever group.
func isOurs(kind string) bool {
	for known := range schemas() {
		if known.Kind == kind {
			return true
		}
	}
	return false
}

func isOurGroup(group string) bool {
	return group == rolloutKind.Group || group == coordinationKind.Group || group == environmentKind.Group
}

// schemaProblems returns what the schema of its kind does not allow in an object. It
// returns nothing for kinds that are not ours.
func schemaProblems(o *object) []schemaProblem {
	version, err := k8sschema.ParseGroupVersion(o.apiVersion())
	if o.apiVersion() == "" || err == nil && isOurGroup(version.Group) {
		known, ok := schemas()[version.WithKind(o.kind())]
		if !ok {
			return []schemaProblem{unknownKind(o)}
		}
		return known.problems(o)
	}
	return nil
}

func unknownKind(o *object) schemaProblem {
	var kinds []string
	for known := range schemas() {
		kinds = append(kinds, known.GroupVersion().String()+" "+known.Kind)
	}
	slices.Sort(kinds)
	if o.apiVersion() == "" {
		return schemaProblem{path: []string{"kind"}, message: "apiVersion is not set", remedy: "set it: there are " + strings.Join(kinds, ", ")}
	}
	return schemaProblem{
		path:    []string{"apiVersion"},
		message: fmt.Sprintf("there is no kind %s in %s", o.kind(), o.apiVersion()),
		remedy:  "correct apiVersion or kind: there are " + strings.Join(kinds, ", "),
	}
}

func (k kindSchema) problems(o *object) []schemaProblem {
	content := runtime.DeepCopyJSON(o.content)
	problems := append(k.unknownFields(content), metadataProblems(o, content)...)
	defaulting.Default(content, k.structural)
	errs := validation.ValidateCustomResource(nil, content, k.validator)
	if len(errs) == 0 && k.rules != nil {
		errs, _ = k.rules.Validate(context.Background(), nil, k.structural, content, nil, costPerObject)
	}
	for _, err := range errs {
		problem := schemaProblem{path: pathOf(err.Field), message: messageOf(err), remedy: "correct the value"}
		if !o.isUnknown(problem.path...) && !hasOwnRule(o, problem.path) {
			problems = append(problems, problem)
		}
	}
	return problems
}

// noField is how an error names the object itself.
const noField = "<nil>"

func messageOf(err *field.Error) string {
	if err.Field == noField || err.Field == "" {
		return err.ErrorBody()
	}
	return err.Error()
}

// hasOwnRule reports whether another rule finds what is wrong at a place, with more to say.
func hasOwnRule(o *object, path []string) bool {
	return slices.Equal(path, selectorPath) && givesBothSelectors(o) || len(path) == 0 && selectsNoDeployment(o)
}

// unknownFields removes the fields that the schema does not have.
func (k kindSchema) unknownFields(content map[string]any) []schemaProblem {
	paths := pruning.PruneWithOptions(content, k.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	_, _, ofMetadata, _ := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	for i := range ofMetadata {
		ofMetadata[i] = strings.TrimPrefix(ofMetadata[i], noField+".")
	}
	var problems []schemaProblem
	for _, path := range append(paths, ofMetadata...) {
		problems = append(problems, schemaProblem{
			path: pathOf(path), message: fmt.Sprintf("there is no field %s", path), remedy: "remove it, or correct its name or its place",
		})
	}
	return problems
}

func metadataProblems(o *object, content map[string]any) []schemaProblem {
	path := []string{"metadata"}
	switch _, _, _, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{}); {
	case o.isUnknown(path...):
		return nil
	case err != nil:
		return []schemaProblem{{path: path, message: "metadata cannot be read: " + err.Error(), remedy: "correct the value"}}
	case o.name() == "" && !o.has("metadata", "generateName"):
		return []schemaProblem{{path: path, message: "metadata.name is not set", remedy: "set it"}}
	}
	return nil
}

// pathOf returns the steps of a path such as spec.rules[0].name.
func pathOf(text string) []string {
	text = strings.TrimPrefix(text, noField)
	var path []string
	for text != "" {
		end := strings.IndexAny(text, ".[")
		switch {
		case end < 0:
			return append(path, text)
		case end > 0:
			path, text = append(path, text[:end]), text[end:]
		case text[0] == '.':
			text = text[1:]
		default:
			step, rest, _ := strings.Cut(text[1:], "]")
			path, text = append(path, step), rest
		}
	}
	return path
}

func checkSchema(r *report) {
	for _, o := range r.all {
		for _, p := range o.problems {
			r.find(at{o, p.path}, p.message, p.remedy)
		}
		if isOurGroup(o.groupKind().Group) && len(o.unknown) > 0 {
			r.skip(at{o, o.unknown[0]}, "it has variables whose values are not known")
		}
	}
}

// oldImageVersions are the versions of the image API that newer versions of Flux do not
// serve.
var oldImageVersions = []string{"image.toolkit.fluxcd.io/v1beta1", "image.toolkit.fluxcd.io/v1beta2"}

func checkImageVersion(r *report) {
	for _, o := range r.all {
		if slices.Contains(oldImageVersions, o.apiVersion()) {
			r.find(at{o, []string{"apiVersion"}}, fmt.Sprintf("%s has the version %s, which newer versions of Flux do not serve", o, o.apiVersion()),
				"write image.toolkit.fluxcd.io/v1, which Flux 2.7 and newer serve")
		}
	}
}
