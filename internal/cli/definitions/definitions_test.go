// SPDX-License-Identifier: Apache-2.0

package definitions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/cli/definitions"
)

const rollouts = "rollouts.kuberik.com"

// fieldsOf returns the schema of a part of the version that Rollouts have.
func fieldsOf(d *definitions.Definition, path ...string) *apiextensionsv1.JSONSchemaProps {
	s := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		below := s.Properties[name]
		s = &below
	}
	return s
}

func TestDefinitionsDoNotDifferFromThemselves(t *testing.T) {
	all := definitions.Known()
	if len(all) != 9 || all[rollouts] == nil {
		t.Fatalf("there are %d definitions, want 9 and %s among them", len(all), rollouts)
	}
	for name, definition := range all {
		if d := definitions.Compare(definition); !d.None() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDefinitionsDiffer(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*definitions.Definition)
		want   definitions.Difference
	}{
		"fields are missing": {
			func(d *definitions.Definition) {
				delete(fieldsOf(d, "spec").Properties, "suspend")
				delete(fieldsOf(d, "spec", "releasesImagePolicy").Properties, "name")
				delete(fieldsOf(d, "status", "history").Items.Schema.Properties, "message")
			},
			definitions.Difference{Lacks: []string{"spec.releasesImagePolicy.name", "spec.suspend", "status.history[].message"}},
		},
		"fields are added": {
			func(d *definitions.Definition) {
				fieldsOf(d, "spec").Properties["mood"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"good": {}}}
			},
			definitions.Difference{Adds: []string{"spec.mood"}},
		},
		"any field is kept": {
			func(d *definitions.Definition) {
				s := fieldsOf(d)
				s.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
			},
			definitions.Difference{},
		},
		"descriptions do not count": {
			func(d *definitions.Definition) { d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other" },
			definitions.Difference{},
		},
		"another version is not compared": {
			func(d *definitions.Definition) { d.Spec.Versions[0].Name = "v1"; fieldsOf(d).Properties = nil },
			definitions.Difference{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := definitions.Known()[rollouts].DeepCopy()
			tt.change(changed)
			tt.want.Name, tt.want.Kind = rollouts, "Rollout"
			if diff := cmp.Diff(tt.want, definitions.Compare(changed)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
