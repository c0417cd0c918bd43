// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

const rollouts = "rollouts.kuberik.com"

// fieldsOf returns the schema of a part of the version that Rollouts have.
func fieldsOf(d *definition, path ...string) *apiextensionsv1.JSONSchemaProps {
	s := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		below := s.Properties[name]
		s = &below
	}
	return s
}

func TestDefinitionsDoNotDifferFromThemselves(t *testing.T) {
	all := knownDefinitions()
	if len(all) != 11 || all[rollouts] == nil {
		t.Fatalf("there are %d definitions, want 11 and %s among them", len(all), rollouts)
	}
	for name, known := range all {
		if d := compare(known, known); !d.none() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDefinitionsDiffer(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*definition)
		want   difference
	}{
		"fields are missing": {
			func(d *definition) {
				delete(fieldsOf(d, "spec").Properties, "suspend")
				delete(fieldsOf(d, "spec", "releasesImagePolicy").Properties, "name")
				delete(fieldsOf(d, "status", "history").Items.Schema.Properties, "message")
			},
			difference{lacks: []string{"spec.releasesImagePolicy.name", "spec.suspend", "status.history[].message"}},
		},
		"fields are added": {
			func(d *definition) {
				fieldsOf(d, "spec").Properties["mood"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"good": {}}}
			},
			difference{adds: []string{"spec.mood"}},
		},
		"any field is kept": {
			func(d *definition) {
				s := fieldsOf(d)
				s.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
			},
			difference{},
		},
		"descriptions do not count": {
			func(d *definition) { d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other" },
			difference{},
		},
		"another version is not compared": {
			func(d *definition) { d.Spec.Versions[0].Name = "v1"; fieldsOf(d).Properties = nil },
			difference{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := knownDefinitions()[rollouts]
			changed := known.DeepCopy()
			tt.change(changed)
			tt.want.name = rollouts
			if diff := cmp.Diff(tt.want, compare(known, changed), cmp.AllowUnexported(difference{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
