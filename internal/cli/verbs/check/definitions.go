// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/config"
)

// definition is the CustomResourceDefinition of a kind.
type definition = apiextensionsv1.CustomResourceDefinition

// knownDefinitions returns the CustomResourceDefinitions that are in this program, by name.
var knownDefinitions = sync.OnceValue(func() map[string]*definition {
	all := map[string]*definition{}
	for _, content := range config.Definitions() {
		known := &definition{}
		mustBeValid(yaml.Unmarshal(content, known))
		all[known.Name] = known
	}
	return all
})

// mustBeValid panics if our own definitions, which are in the program, are wrong.
func mustBeValid(err error) {
	if err != nil {
		panic(fmt.Errorf("the CustomResourceDefinitions of this program: %w", err))
	}
}

// difference is how an installed definition differs from the one that this program knows.
type difference struct {
	// name is the one of the definition.
	name string
	// lacks are the fields that only this program knows, and adds those that only the
	// cluster knows. A field stands for those below it. Both are sorted.
	lacks, adds []string
}

// none reports whether there is no difference.
func (d difference) none() bool { return len(d.lacks)+len(d.adds) == 0 }

// compare returns how the fields of an installed definition differ from those that this
// program knows. It compares the versions that both have, and no descriptions, limits and
// rules.
func compare(known, installed *definition) difference {
	d := difference{name: known.Name}
	for _, version := range known.Spec.Versions {
		other := schemaOf(installed, version.Name)
		if own := schemaOf(known, version.Name); own != nil && other != nil {
			d.lacks = append(d.lacks, missing(own, other, "")...)
			d.adds = append(d.adds, missing(other, own, "")...)
		}
	}
	slices.Sort(d.lacks)
	slices.Sort(d.adds)
	d.lacks, d.adds = slices.Compact(d.lacks), slices.Compact(d.adds)
	return d
}

func schemaOf(d *definition, version string) *apiextensionsv1.JSONSchemaProps {
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
