// SPDX-License-Identifier: Apache-2.0

package installation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

const rollouts = "rollouts.kuberik.com"

// fieldsOf returns the schema of a part of the version that Rollouts have.
func fieldsOf(d *installation.Definition, path ...string) *apiextensionsv1.JSONSchemaProps {
	s := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		below := s.Properties[name]
		s = &below
	}
	return s
}

func TestDefinitionsDoNotDifferFromThemselves(t *testing.T) {
	all := installation.Definitions()
	if len(all) != 9 || all[rollouts] == nil {
		t.Fatalf("there are %d definitions, want 9 and %s among them", len(all), rollouts)
	}
	for name, definition := range all {
		if d := installation.Compare(definition); !d.None() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDefinitionsDiffer(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*installation.Definition)
		want   installation.Difference
	}{
		"fields are missing": {
			func(d *installation.Definition) {
				delete(fieldsOf(d, "spec").Properties, "suspend")
				delete(fieldsOf(d, "spec", "releasesImagePolicy").Properties, "name")
				delete(fieldsOf(d, "status", "history").Items.Schema.Properties, "message")
			},
			installation.Difference{Lacks: []string{"spec.releasesImagePolicy.name", "spec.suspend", "status.history[].message"}},
		},
		"fields are added": {
			func(d *installation.Definition) {
				fieldsOf(d, "spec").Properties["mood"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"good": {}}}
			},
			installation.Difference{Adds: []string{"spec.mood"}},
		},
		"any field is kept": {
			func(d *installation.Definition) {
				s := fieldsOf(d)
				s.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
			},
			installation.Difference{},
		},
		"descriptions do not count": {
			func(d *installation.Definition) { d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other" },
			installation.Difference{},
		},
		"another version is not compared": {
			func(d *installation.Definition) { d.Spec.Versions[0].Name = "v1"; fieldsOf(d).Properties = nil },
			installation.Difference{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := installation.Definitions()[rollouts].DeepCopy()
			tt.change(changed)
			tt.want.Name, tt.want.Kind = rollouts, "Rollout"
			if diff := cmp.Diff(tt.want, installation.Compare(changed)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
