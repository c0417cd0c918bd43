// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/config"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

func TestEveryKindOfOursIsInTheTableWithItsScopeAndItsPlural(t *testing.T) {
	for _, content := range config.Definitions() {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, definition); err != nil {
			t.Fatal(err)
		}
		of := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		known, found := kinds.Of(of)
		switch {
		case !found:
			t.Errorf("%s is not in the table", of)
		case known.Global != (definition.Spec.Scope == apiextensionsv1.ClusterScoped):
			t.Errorf("%s is %s, and the table says otherwise", of, definition.Spec.Scope)
		case strings.ToLower(kinds.Plural(of.Kind)) != definition.Spec.Names.Plural:
			t.Errorf("the plural of %s is %s, want %s", of, kinds.Plural(of.Kind), definition.Spec.Names.Plural)
		}
	}
}

func TestEachKindIsFoundByItsTypesAndByItsName(t *testing.T) {
	for _, want := range kinds.All {
		for _, found := range []func() (kinds.Kind, bool){
			func() (kinds.Kind, bool) { return kinds.Of(want.GroupKind()) },
			func() (kinds.Kind, bool) { return kinds.OfObject(want.Object.DeepCopyObject()) },
			func() (kinds.Kind, bool) { return kinds.OfObject(want.List.DeepCopyObject()) },
			func() (kinds.Kind, bool) { return kinds.Named(strings.ToLower(want.Kind)) },
			func() (kinds.Kind, bool) { return kinds.Named(strings.ToLower(kinds.Plural(want.Kind))) },
		} {
			if got, ok := found(); !ok || got.GroupVersionKind != want.GroupVersionKind {
				t.Errorf("found %v for %v", got.GroupVersionKind, want.GroupVersionKind)
			}
		}
		if of := reflect.TypeOf(want.List).Elem().Name(); of != want.Kind+"List" || reflect.TypeOf(want.Object).Elem().Name() != want.Kind {
			t.Errorf("%v has the types %T and %T", want.GroupVersionKind, want.Object, want.List)
		}
	}
}
