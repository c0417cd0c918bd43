// SPDX-License-Identifier: Apache-2.0

// Package definitions says how the CustomResourceDefinitions of a cluster differ from those
// that this program knows, which are in it. It is pure: the caller reads the objects.
package definitions

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	coordinationcrd "github.com/fluxrollouts/rollout-controller/config/coordination/crd"
	"github.com/fluxrollouts/rollout-controller/config/crd"
)

// Definition is the CustomResourceDefinition of a kind.
type Definition = apiextensionsv1.CustomResourceDefinition

// Known returns the CustomResourceDefinitions that this program knows, by name.
var Known = sync.OnceValue(func() map[string]*Definition {
	all := map[string]*Definition{}
	for _, files := range []fs.FS{crd.Bases, coordinationcrd.Bases} {
		names, err := fs.Glob(files, "bases/*.yaml")
		mustBeValid(err)
		for _, name := range names {
			content, err := fs.ReadFile(files, name)
			mustBeValid(err)
			definition := &Definition{}
			mustBeValid(yaml.Unmarshal(content, definition))
			all[definition.Name] = definition
		}
	}
	return all
})

// mustBeValid panics if our own definitions, which are in the program, are wrong.
func mustBeValid(err error) {
	if err != nil {
		panic(fmt.Errorf("the CustomResourceDefinitions of this program: %w", err))
	}
}

// Difference is how an installed definition differs from the one that this program knows.
type Difference struct {
	// Name is the one of the definition, and Kind that of its objects.
	Name, Kind string
	// Lacks are the fields that only this program knows, and Adds those that only the
	// cluster knows. A field stands for those below it. Both are sorted.
	Lacks, Adds []string
}

// None reports whether there is no difference.
func (d Difference) None() bool { return len(d.Lacks)+len(d.Adds) == 0 }

// Compare returns how the fields of an installed definition differ from those that this
// program knows. It compares the versions that both have, and no descriptions, limits and
// rules.
func Compare(installed *Definition) Difference {
	known, ok := Known()[installed.Name]
	if !ok {
		return Difference{Name: installed.Name, Kind: installed.Spec.Names.Kind}
	}
	d := Difference{Name: known.Name, Kind: known.Spec.Names.Kind}
	for _, version := range known.Spec.Versions {
		other := schemaOf(installed, version.Name)
		if own := schemaOf(known, version.Name); own != nil && other != nil {
			d.Lacks = append(d.Lacks, missing(own, other, "")...)
			d.Adds = append(d.Adds, missing(other, own, "")...)
		}
	}
	slices.Sort(d.Lacks)
	slices.Sort(d.Adds)
	d.Lacks, d.Adds = slices.Compact(d.Lacks), slices.Compact(d.Adds)
	return d
}

func schemaOf(d *Definition, version string) *apiextensionsv1.JSONSchemaProps {
	for i := range d.Spec.Versions {
		if v := &d.Spec.Versions[i]; v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// missing returns the fields of a schema that another one does not have. Where the other
// one allows any field, none is missing.
func missing(in, from *apiextensionsv1.JSONSchemaProps, path string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(in.Properties)) {
		field := in.Properties[name]
		below := join(path, name)
		other, ok := from.Properties[name]
		switch {
		case ok:
			all = append(all, missing(&field, &other, below)...)
		case !isOpen(from):
			all = append(all, below)
		}
	}
	if in.Items != nil && from.Items != nil && in.Items.Schema != nil && from.Items.Schema != nil {
		all = append(all, missing(in.Items.Schema, from.Items.Schema, path+"[]")...)
	}
	if values, others := valuesOf(in), valuesOf(from); values != nil && others != nil {
		all = append(all, missing(values, others, path+".*")...)
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// isOpen reports whether a schema keeps fields that it does not name.
func isOpen(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil
}

// valuesOf returns the schema of the values of a map; nil if it is none.
func valuesOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}
