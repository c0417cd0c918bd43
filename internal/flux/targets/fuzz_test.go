// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// wireKey is the pattern of the annotation's key in this API.
var wireKey = regexp.MustCompile(`(?s)^rollout\.kuberik\.com/substitute\.([^.]+)\.from$`)

// FuzzSubstituteAnnotations checks that keys are read in the form of this API, and that a
// Rollout only has the variables whose annotations name it.
func FuzzSubstituteAnnotations(f *testing.F) {
	const prefix, suffix = "rollout.kuberik.com/substitute.", ".from"
	for _, key := range []string{
		prefix + "VERSION" + suffix, prefix + suffix, prefix + "." + suffix, prefix + "a.b" + suffix, "x" + prefix + "V" + suffix,
		prefix + "V" + suffix + "\n", prefix + "\n" + suffix, prefix + "from", prefix + "\xff" + suffix, prefix + strings.Repeat("V", 300) + suffix,
	} {
		f.Add(key, "shop", "shop")
		f.Add(key, "other", "shop")
		f.Add(key, "", "")
	}
	f.Fuzz(func(t *testing.T, key, value, rollout string) {
		k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
		var variables, rollouts []string
		if match := wireKey.FindStringSubmatch(key); match != nil {
			if value == rollout {
				variables = match[1:]
			}
			if value != "" {
				rollouts = []string{value}
			}
		}
		if got := targets.VariablesOf(k, rollout); !slices.Equal(got, variables) {
			t.Errorf("%q: %q gives %s the variables %q, want %q", key, value, rollout, got, variables)
		}
		if got := targets.RolloutsOf(k); !slices.Equal(got, rollouts) {
			t.Errorf("%q: %q names %q, want %q", key, value, got, rollouts)
		}
	})
}

// wireValueKey is the pattern of the annotation's key on a HelmRelease.
var wireValueKey = regexp.MustCompile(`(?s)^rollout\.kuberik\.com/values\.(.*)\.from$`)

// FuzzValuesAnnotations checks that a write into any values changes nothing but the value
// at the path, or is not made, and that the trimmed values lead to the same result.
func FuzzValuesAnnotations(f *testing.F) {
	const prefix, suffix = "rollout.kuberik.com/values.", ".from"
	for _, path := range []string{"tag", "image.tag", "a..b", "", ".", "a.", "from", "from.values", "\xff", strings.Repeat("a.", 30) + "a"} {
		for _, values := range []string{
			`{}`, `null`, `[]`, `"image"`, `{"image":{"tag":"1.0.0","name":"web"},"tag":7}`, `{"image":"web"}`, `{"image":[]}`, `{"tag":{}}`, `{"tag":"1.1.0"}`,
		} {
			f.Add(prefix+path+suffix, "other", values, "")
			f.Add(prefix+path+suffix, "tag", values, path+"[0]")
		}
	}
	f.Add("rollout.kuberik.com/values.from", "a", `{}`, `a\.b`)
	f.Fuzz(func(t *testing.T, key, other, values, target string) {
		g := NewWithT(t)
		var before any
		if json.Unmarshal([]byte(values), &before) != nil {
			t.Skip()
		}
		h := &helmv2.HelmRelease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a", Annotations: map[string]string{key: "shop", prefix + other + suffix: "cart"}},
			Spec: helmv2.HelmReleaseSpec{
				Values: &apiextensionsv1.JSON{Raw: []byte(values)}, ValuesFrom: []helmv2.ValuesReference{{TargetPath: "images"}, {TargetPath: target}},
			},
		}
		match := wireValueKey.FindStringSubmatch(key)
		own := prefix+other+suffix != key && match != nil
		written := targets.Target{HelmRelease: h, Paths: targets.PathsOf(h, "shop")}
		if got := slices.Contains(written.Paths, orNone(match)); got != own {
			t.Fatalf("%q gives %q", key, written.Paths)
		}
		whole := written.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
		writable, versions := written.Writable(byTag("1.1.0")), written.Versions()
		targets.KeepWrittenValues(h)
		g.Expect(written.Writable(byTag("1.1.0"))).To(Equal(writable))
		g.Expect(written.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))).To(Equal(whole))
		if len(versions) > 0 && len(versions[0]) <= 128 {
			g.Expect(written.Versions()).To(Equal(versions))
		}
		if writable {
			g.Expect(without(merged(before, patchOf(t, written)), match[1])).To(Equal(without(before, match[1])))
		}
	})
}

func orNone(match []string) string {
	if match == nil {
		return "none"
	}
	return match[1]
}

// patchOf returns the values that a write of 1.1.0 sends.
func patchOf(t *testing.T, target targets.Target) any {
	t.Helper()
	var body []byte
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) (err error) {
			body, err = p.Data(o)
			return err
		},
	})
	g := NewWithT(t)
	g.Expect(target.Write(t.Context(), c, "shop", promoted(), fixture.Noon)).To(Succeed())
	sent := struct{ Spec struct{ Values any } }{}
	g.Expect(json.Unmarshal(body, &sent)).To(Succeed())
	return sent.Spec.Values
}

// merged returns the values after a merge patch, as RFC 7396 defines it.
func merged(values, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	all := map[string]any{}
	if old, ok := values.(map[string]any); ok {
		maps.Copy(all, old)
	}
	for key, change := range changes {
		if all[key] = merged(all[key], change); change == nil {
			delete(all, key)
		}
	}
	return all
}

// without returns the values as lines of paths and scalars, without the one at a path.
// Maps that are empty and values that are null count as missing.
func without(values any, path string) map[string]any {
	all := map[string]any{}
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				walk(at+"/"+key, inner)
			}
		case nil:
		default:
			all[at] = value
		}
	}
	walk("", values)
	delete(all, "/"+strings.ReplaceAll(path, ".", "/"))
	return all
}
