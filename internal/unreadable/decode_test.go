// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func lenientDecoder(t *testing.T) (decoder, *runtime.Scheme) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, environmentsv1.AddToScheme, sourcev1.AddToScheme, kustomizev1.AddToScheme, imagev1.AddToScheme, helmv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	return lenient{NegotiatedSerializer: codecs, scheme: scheme}.ofJSON(schema.GroupVersions{}), scheme
}

// wire returns an object as the API server sends it.
func wire(t *testing.T, scheme *runtime.Scheme, object client.Object) map[string]any {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	object.SetUID("1234")
	object.SetResourceVersion("42")
	object.SetLabels(map[string]string{"team": "shop"})
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]any{}
	if err := json.Unmarshal(data, &sent); err != nil {
		t.Fatal(err)
	}
	return sent
}

// oddValues are values that a schema may or may not allow. No test depends on which.
var oddValues = []any{
	nil, true, -1, 1e30, json.Number("9223372036854775808"), json.Number("1e400"), "", "2026-03-02t12:00:00z", "9999-12-31T23:59:59-23:00",
	"1e1000000", "5 minutes", "\u0000\uffff", strings.Repeat("x", 1<<16), []any{}, []any{nil, 1}, map[string]any{}, map[string]any{"": nil},
}

// fields calls change for each field of a document, with a function that sets it.
func fields(path string, document any, change func(path string, is any, set func(any))) {
	switch of := document.(type) {
	case map[string]any:
		for key, value := range of {
			change(path+"."+key, value, func(v any) { of[key] = v })
			fields(path+"."+key, value, change)
		}
	case []any:
		for i, value := range of {
			change(fmt.Sprintf("%s[%d]", path, i), value, func(v any) { of[i] = v })
			fields(fmt.Sprintf("%s[%d]", path, i), value, change)
		}
	}
}

// examples returns objects with values in many fields.
func examples() []client.Object {
	return []client.Object{
		fixture.MakeRollout("odd").SelectAllChecks().BakeTime(1).DeployTimeout(1).
			History(fixture.MakeEntry("1.0.0").Failed().Retried(fixture.Noon).BakeStart(fixture.Noon).BakeEnd(fixture.Noon)).Ledger("1.0.0").Obj(),
		fixture.MakeHealthCheck("odd").Healthy().ErrorAt(fixture.Noon).Obj(),
		fixture.MakeGate("odd", "shop").Closed().Obj(),
		fixture.MakeSchedule("odd").Selecting(map[string]string{"team": "shop"}).Obj(),
		fixture.MakePolicy("odd").Latest("1.0.0").Obj(),
		fixture.MakeScan("odd").Found("1.0.0").Obj(),
		fixture.MakeRepository("odd").DrivenBy("shop").Tag("1.0.0").Obj(),
		fixture.MakeKustomization("odd").DrivenBy("shop", "VERSION").Substitute("TIER", "gold").Obj(),
		fixture.MakeHelmRelease("odd").Obj(),
		fixture.MakeEnvironment("odd").After("staging", fixture.Soak(1)).Obj(),
	}
}

// TestNothingInAnObjectKeepsOthersFromBeingRead checks that for any value in any field,
// the object is decoded or marked, and so are its neighbours in a list.
func TestNothingInAnObjectKeepsOthersFromBeingRead(t *testing.T) {
	decoder, scheme := lenientDecoder(t)
	for _, example := range examples() {
		sent := wire(t, scheme, example)
		t.Run(kindOf(example), func(t *testing.T) {
			marked := 0
			fields("", sent, func(path string, is any, set func(any)) {
				if !strings.HasPrefix(path, ".spec") && !strings.HasPrefix(path, ".status") {
					return // the API server has decoded it itself
				}
				defer set(is)
				for _, odd := range oddValues {
					set(odd)
					marked += decodes(t, decoder, sent, path)
				}
			})
			if marked == 0 {
				t.Error("all of it can be read: nothing was tried")
			}
		})
	}
}

// TestLongListIsDecodedObjectByObject: a page may have some hundred objects of a
// megabyte, and each is made small before the next is decoded.
func TestLongListIsDecodedObjectByObject(t *testing.T) {
	codec, scheme := lenientDecoder(t)
	kind := v1alpha1.GroupVersion.WithKind("HealthCheckList")
	for name, size := range map[string]int{"short": 1 << 10, "long": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			const objects = 10
			var items []string
			for i := range objects {
				check := fixture.MakeHealthCheck(fmt.Sprint("check-", i)).Message(strings.Repeat("x", size)).Obj()
				data, err := json.Marshal(check)
				if err != nil {
					t.Fatal(err)
				}
				items = append(items, string(data))
			}
			odd := strings.Replace(items[3], `"message"`, `"lastErrorTime":"2026-03-02t12:00:00z","message"`, 1)
			list := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"7","continue":"more"},"items":[%s,%s]}`,
				kind.GroupVersion(), kind.Kind, strings.Join(items, ","), odd)
			transformed := 0
			r := resource{scheme: scheme, list: kind, decoder: codec, transform: func(o any) (any, error) {
				transformed++
				o.(*v1alpha1.HealthCheck).Status.Message = nil
				return o, nil
			}}
			got, err := r.read(strings.NewReader(list))
			if err != nil {
				t.Fatal(err)
			}
			checks := got.(*v1alpha1.HealthCheckList)
			if len(checks.Items) != objects+1 || checks.ResourceVersion != "7" || checks.Continue != "more" {
				t.Errorf("%d objects, of version %s, which go on with %q", len(checks.Items), checks.ResourceVersion, checks.Continue)
			}
			if last := &checks.Items[objects]; Of(last) == nil || Of(&checks.Items[0]) != nil || last.Name != "check-3" {
				t.Errorf("%s is marked: %v", last.Name, Of(last))
			}
			if wanted := map[string]int{"long": objects + 1}[name]; transformed != wanted {
				t.Errorf("%d objects were made small at once, want %d", transformed, wanted)
			}
		})
	}
}

// decodes reads an object alone and in a list, and returns how often it was marked.
func decodes(t *testing.T, decoder runtime.Decoder, sent map[string]any, path string) int {
	t.Helper()
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	one := found.(client.Object)
	if one.GetName() != "odd" {
		t.Errorf("%s: its name is %q", path, one.GetName())
	}
	list := fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"7","continue":"more"},"items":[%s,%s]}`,
		sent["apiVersion"], sent["kind"], data, data)
	all, _, err := decoder.Decode([]byte(list), nil, nil)
	if err != nil {
		t.Fatalf("%s, in a list: %v", path, err)
	}
	objects := all.(client.ObjectList)
	if objects.GetResourceVersion() != "7" || objects.GetContinue() != "more" {
		t.Errorf("%s: the list says it goes on with %q at %q", path, objects.GetContinue(), objects.GetResourceVersion())
	}
	if Of(one) == nil {
		return 0
	}
	return 1
}
