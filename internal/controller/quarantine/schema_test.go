// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

// kinds are those of quarantines.
var kinds = []string{v1alpha1.ReleaseQuarantineKind, v1alpha1.ClusterReleaseQuarantineKind}

// apply makes a server-side apply of a quarantine whose spec is YAML. It refuses unknown
// fields.
func apply(e *env.Env, kind, spec string) error {
	namespace := ""
	if kind == v1alpha1.ReleaseQuarantineKind {
		namespace = ", namespace: " + e.Namespace
	}
	text := "apiVersion: kuberik.com/v1alpha1\nkind: " + kind + "\nmetadata: {name: bad-" + e.Namespace + namespace + "}\nspec: " + spec
	object := map[string]any{}
	e.Expect(yaml.Unmarshal([]byte(text), &object)).To(Succeed(), text)
	return e.Apply(e.Ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object}),
		client.FieldOwner("somebody"), client.ForceOwnership)
}

// openKind returns an env without a quarantine.
func openKind(t *testing.T, kind string) *env.Env {
	t.Helper()
	t.Parallel()
	e := env.Open(t, testClient, &v1alpha1.ReleaseQuarantine{})
	if kind == v1alpha1.ClusterReleaseQuarantineKind {
		t.Cleanup(func() {
			q := cluster(bad())
			q.Name = "bad-" + e.Namespace
			_ = testClient.Delete(t.Context(), q)
		})
	}
	return e
}

// some returns a list of n values that differ.
func some(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"1.0.%d"`, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func long(n int) string { return strings.Repeat("x", n) }

func TestAPIServerTakesAQuarantineOrSaysWhatIsWrong(t *testing.T) {
	const which = "give digest, or image and tags"
	for name, tt := range map[string]struct {
		spec      string
		rejection string // empty if it is accepted
	}{
		"a digest":           {"{digest: " + digest + "}", ""},
		"an image with tags": {"{image: ghcr.io/acme/shop, tags: [1.2.0]}", ""},
		"everything": {"{digest: " + digest + ", image: ghcr.io/acme/shop, tags: [1.2.0, 1.2.1], reason: it crashes, enforce: Always, " +
			`until: "2026-12-01T00:00:00Z", lifted: true}`, ""},
		"nothing":                  {"{}", which},
		"an image alone":           {"{image: ghcr.io/acme/shop}", which},
		"tags alone":               {"{tags: [1.2.0]}", which},
		"a digest that is none":    {"{digest: 1.2.0}", "spec.digest"},
		"a digest in capitals":     {"{digest: " + strings.ToUpper(digest) + "}", "spec.digest"},
		"a digest that is short":   {"{digest: 'sha256:3f2a'}", "spec.digest"},
		"a digest that is long":    {"{digest: '" + long(200) + "'}", "spec.digest"},
		"an empty image":           {"{image: '', tags: [1.2.0]}", "spec.image"},
		"the longest image":        {"{image: " + long(512) + ", tags: [1.2.0]}", ""},
		"a longer image":           {"{image: " + long(513) + ", tags: [1.2.0]}", "spec.image"},
		"no tags":                  {"{image: shop, tags: []}", "spec.tags"},
		"20 tags":                  {"{image: shop, tags: " + some(20) + "}", ""},
		"21 tags":                  {"{image: shop, tags: " + some(21) + "}", "spec.tags"},
		"an empty tag":             {"{image: shop, tags: ['']}", "spec.tags"},
		"the longest tag":          {"{image: shop, tags: [" + long(128) + "]}", ""},
		"a longer tag":             {"{image: shop, tags: [" + long(129) + "]}", "spec.tags"},
		"a tag twice":              {"{image: shop, tags: [a, a]}", "uplicate"},
		"the longest reason":       {"{digest: " + digest + ", reason: " + long(1024) + "}", ""},
		"a longer reason":          {"{digest: " + digest + ", reason: " + long(1025) + "}", "spec.reason"},
		"an enforcement like none": {"{digest: " + digest + ", enforce: Sometimes}", "spec.enforce"},
		"a time that is none":      {"{digest: " + digest + ", until: tomorrow}", "spec.until"},
		"a field that is none":     {"{digest: " + digest + ", liftet: true}", "spec.liftet"},
	} {
		for _, kind := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				e := openKind(t, kind)
				err := apply(e, kind, tt.spec)
				if tt.rejection == "" {
					e.Expect(err).NotTo(HaveOccurred())
					return
				}
				e.Expect(err).To(MatchError(ContainSubstring(tt.rejection)))
			})
		}
	}
}

func TestOnlyAClusterReleaseQuarantineSelectsNamespaces(t *testing.T) {
	const spec = "{digest: " + digest + ", namespaceSelector: {matchLabels: {stage: prod}}}"
	e := openKind(t, v1alpha1.ClusterReleaseQuarantineKind)
	e.Expect(apply(e, v1alpha1.ClusterReleaseQuarantineKind, spec)).To(Succeed())
	e.Expect(apply(e, v1alpha1.ReleaseQuarantineKind, spec)).To(MatchError(ContainSubstring("spec.namespaceSelector")))
}

func TestReleaseOfAQuarantineCannotBeChanged(t *testing.T) {
	const other = "sha256:" + "00000000000000000000000000000000"
	for name, tt := range map[string]struct {
		before, after string
		rejection     string
	}{
		"the digest":              {"{digest: " + digest + "}", "{digest: '" + other + "'}", "digest cannot be changed: create another quarantine"},
		"without the digest":      {"{digest: " + digest + ", image: shop, tags: [a]}", "{image: shop, tags: [a]}", "digest cannot be changed"},
		"a digest added":          {"{image: shop, tags: [a]}", "{image: shop, tags: [a], digest: " + digest + "}", "digest cannot be changed"},
		"the image":               {"{image: shop, tags: [a]}", "{image: cart, tags: [a]}", "image cannot be changed: create another quarantine"},
		"an image added":          {"{digest: " + digest + "}", "{digest: " + digest + ", image: shop}", "image cannot be changed"},
		"the tags":                {"{image: shop, tags: [a]}", "{image: shop, tags: [b]}", "tags cannot be changed: create another quarantine"},
		"a tag more":              {"{image: shop, tags: [a]}", "{image: shop, tags: [a, b]}", "tags cannot be changed"},
		"tags added":              {"{digest: " + digest + "}", "{digest: " + digest + ", tags: [a]}", "tags cannot be changed"},
		"everything else, freely": {"{digest: " + digest + "}", "{digest: " + digest + `, reason: why, enforce: Always, lifted: true, until: "2026-12-01T00:00:00Z"}`, ""},
	} {
		for _, kind := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				e := openKind(t, kind)
				e.Expect(apply(e, kind, tt.before)).To(Succeed())
				err := apply(e, kind, tt.after)
				if tt.rejection == "" {
					e.Expect(err).NotTo(HaveOccurred())
					return
				}
				e.Expect(err).To(MatchError(ContainSubstring(tt.rejection)))
			})
		}
	}
}

func TestPhaseOfAStatusIsOneOfTwo(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			q := client.Object(bad())
			if kind == v1alpha1.ClusterReleaseQuarantineKind {
				q = cluster(bad())
			}
			s := open(t, q)
			s.Expect(s.patchStatus(`{"status":{"phase":"Guilty"}}`)).To(MatchError(ContainSubstring("status.phase")))
			s.Expect(s.patchStatus(`{"status":{"phase":"Ended"}}`)).To(Succeed())
		})
	}
}
