// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// release returns a HelmRelease that Rollout shop writes. The lines of values belong to
// spec.values.
func release(annotations string, values ...string) string {
	text := "\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: shop, annotations: {" + annotations + "}}\n" +
		"spec:\n  chart: {spec: {chart: shop, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}\n"
	if len(values) > 0 {
		text += "  values:\n    " + strings.Join(values, "\n    ") + "\n"
	}
	return text
}

const (
	imageTag   = "rollout.kuberik.com/values.image.tag.from: shop"
	imageOfTag = "rollout.kuberik.com/values.image.from: shop"
)

func TestValuesOfHelmReleases(t *testing.T) {
	const r202, r203, r204, r205, r206, r210, r211 = "R202 HelmRelease shop/shop", "R203 HelmRelease shop/shop", "R204 HelmRelease shop/shop", "R205 HelmRelease shop/shop",
		"R206 HelmRelease shop/shop", "R210 HelmRelease shop/shop", "R211 HelmRelease shop/shop"
	from := func(target string) string {
		return release(imageTag) + "  valuesFrom: [{kind: ConfigMap, name: shop, targetPath: " + target + "}]\n"
	}
	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf("rollout.kuberik.com/values.v%d.from: r%d", i, i))
	}
	for name, tt := range map[string]struct {
		release string
		vars    map[string]string
		want    []string
	}{
		"no values":                     {release: release(imageTag)},
		"other values":                  {release: release(imageTag, "image: {repository: shop}")},
		"a map that is empty":           {release: release(imageTag, "image: {}")},
		"a map that is null":            {release: release(imageTag, "image:")},
		"a Rollout that does not exist": {release: release("rollout.kuberik.com/values.image.tag.from: lost"), want: []string{r202, "R207 Rollout shop/shop"}},
		"no Rollout":                    {release: release(`rollout.kuberik.com/values.image.tag.from: ""`), want: []string{r202, "R207 Rollout shop/shop"}},

		"a value in Git":                  {release: release(imageTag, "image: {tag: 1.0.0}"), want: []string{r203}},
		"a number in Git":                 {release: release(imageTag, "image: {tag: 1.1}"), want: []string{r203}},
		"a value that is a variable":      {release: release(imageTag, `image: {tag: "${TAG}"}`), want: []string{r203}},
		"a value that is applied once":    {release: release("kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, "+imageTag, "image: {tag: 1.0.0}")},
		"a value with a marker":           {release: release(imageTag, "image:", `  tag: 1.0.0 # {"$imagepolicy": "shop:shop:tag"}`), want: []string{r203, r206}},
		"a marker at another value":       {release: release(imageTag, "other:", `  tag: 1.0.0 # {"$imagepolicy": "shop:shop:tag"}`)},
		"a value that a parent ignores":   {release: join(release(imageTag, "image: {tag: 1.0.0}"), ignoringValues("/spec/values/image/tag"))},
		"values that a parent ignores":    {release: join(release(imageTag, "image: {tag: 1.0.0}"), ignoringValues("/spec/values"))},
		"another one that it ignores":     {release: join(release(imageTag, "image: {tag: 1.0.0}"), ignoringValues("/spec/values/image/ta")), want: []string{r203}},
		"a value behind an anchor in Git": {release: release(imageTag, "other: &other {tag: 1.0.0}", "image: *other"), want: []string{r203}},

		"a path with an empty key":         {release: release("rollout.kuberik.com/values.image..tag.from: shop"), want: []string{r205}},
		"a path that begins with a dot":    {release: release("rollout.kuberik.com/values..tag.from: shop"), want: []string{r205}},
		"an item of a list":                {release: release(`"rollout.kuberik.com/values.images[0].tag.from": shop`), want: []string{r205}},
		"a path that is too long":          {release: release("rollout.kuberik.com/values." + strings.Repeat("a.", 25) + "ab.from: shop"), want: []string{r205}},
		"the longest path":                 {release: release("rollout.kuberik.com/values." + strings.Repeat("a.", 25) + "a.from: shop")},
		"without the end of the key":       {release: release("rollout.kuberik.com/values.image.tag: shop"), want: []string{r205, "R207 Rollout shop/shop"}},
		"keys with digits, - and _":        {release: release("rollout.kuberik.com/values.0.a-b.c_d.from: shop")},
		"a text where a map belongs":       {release: release(imageTag, "image: shop:1.0.0"), want: []string{r211}},
		"a list where a map belongs":       {release: release(imageTag, "image: [{tag: 1.0.0}]"), want: []string{r211}},
		"a list with a number as its key":  {release: release("rollout.kuberik.com/values.images.0.tag.from: shop", "images: [{tag: 1.0.0}]"), want: []string{r211}},
		"a map in the place of a version":  {release: release(imageOfTag, "image: {tag: 1.0.0}"), want: []string{r211}},
		"a list in the place of a version": {release: release(imageOfTag, "image: [a]"), want: []string{r211}},
		"values that are no map":           {release: release(imageTag, "- image"), want: []string{r211}},
		"a variable where a map belongs":   {release: release(imageTag, `image: "${IMAGE}"`)},
		"a variable with a text":           {release: release(imageTag, `image: "${IMAGE}"`), vars: map[string]string{"IMAGE": "shop"}, want: []string{r211}},
		"a path inside another one":        {release: release(imageTag + ", " + imageOfTag), want: []string{r211}},
		"paths with the same beginning":    {release: release(imageTag + ", rollout.kuberik.com/values.image.ta.from: shop, rollout.kuberik.com/values.imag.from: shop")},

		"a reference to the same value":    {release: from("image.tag"), want: []string{r204}},
		"a reference to the map around it": {release: from("image"), want: []string{r204}},
		"a reference to what is inside":    {release: from("image.tag.name"), want: []string{r204}},
		"a reference to an item of a list": {release: from(`"image[0]"`), want: []string{r204}},
		"a reference to a key with a dot":  {release: from(`'image\.tag'`)},
		"a reference to another value":     {release: from("image.tagged")},
		"a reference to all values":        {release: release(imageTag) + "  valuesFrom: [{kind: ConfigMap, name: shop}, 1]\n"},

		"a variable on a HelmRelease": {
			release: release("rollout.kuberik.com/substitute.TAG.from: shop"), want: []string{"R207 Rollout shop/shop", r210},
		},
		"the annotation of an OCIRepository": {release: release("rollout.kuberik.com/rollout: shop"), want: []string{"R207 Rollout shop/shop", r210}},
		"a value on a Kustomization": {
			release: join(repository, change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {"+imageTag+"}")),
			want:    []string{"R210 Kustomization shop/shop"},
		},
		"a value on an OCIRepository": {
			release: change(t, repository, "{rollout", "{"+imageTag+", rollout"), want: []string{"R210 OCIRepository shop/shop"},
		},
		"too many Rollouts": {
			release: release(strings.Join(many, ", ")), want: append(slices.Repeat([]string{r202}, 51), "R207 Rollout shop/shop", r211),
		},
		"as many as may be":           {release: release(strings.Join(many[:50], ", ")), want: append(slices.Repeat([]string{r202}, 50), "R207 Rollout shop/shop")},
		"two definitions":             {release: join(release(imageTag), release(imageTag, "a: 1")), want: []string{"R404 HelmRelease shop/shop"}},
		"two of one without Rollouts": {release: join(repository, release(""), release("", "a: 1"))},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(join(policy, rollout, tt.release), func(o *lint.Options) { o.Vars = tt.vars })
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}

// ignoringValues returns a Kustomization that leaves out a field of the HelmReleases that
// it applies.
func ignoringValues(path string) string {
	return "\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
		"spec: {sourceRef: {kind: GitRepository, name: flux-system}, ignore: [{paths: [" + path + "], target: {kind: HelmRelease}}]}\n"
}

func TestDeployTimeoutOfHelmReleases(t *testing.T) {
	without := change(t, rollout, ", deployTimeout: 15m", "")
	consumer := change(t, release(""), "chart: {spec: {chart: shop, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}", "chartRef: {kind: OCIRepository, name: shop}")
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a value that a Rollout writes": {join(without, release(imageTag)), []string{"R305 Rollout shop/shop"}},
		"a chart that it writes":        {join(without, repository, consumer), []string{"R305 Rollout shop/shop"}},
		"Helm does not wait":            {join(without, release(imageTag)+"  install: {disableWait: true}\n  upgrade: {disableWait: true}\n"), nil},
		"Helm waits for upgrades":       {join(without, release(imageTag)+"  install: {disableWait: true}\n"), []string{"R305 Rollout shop/shop"}},
		"another chart":                 {join(without, repository, change(t, consumer, "name: shop}", "name: web}")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, described(lintText(join(policy, tt.text)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMisplacedAnnotationsNameTheRightOne: what to write depends on the object.
func TestMisplacedAnnotationsNameTheRightOne(t *testing.T) {
	onKustomization := change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {"+imageTag+"}")
	for text, want := range map[string]string{
		release("rollout.kuberik.com/substitute.TAG.from: shop"): "the annotation rollout.kuberik.com/substitute.TAG.from has no effect on a HelmRelease: it is for Kustomizations; " +
			"write rollout.kuberik.com/values.PATH.from: shop, with the path of the version in spec.values, such as image.tag; or annotate the OCIRepository of its chart with rollout.kuberik.com/rollout: shop",
		onKustomization: "the annotation rollout.kuberik.com/values.image.tag.from has no effect on a Kustomization: it is for HelmReleases; " +
			"write rollout.kuberik.com/substitute.VARIABLE.from: shop",
		change(t, repository, "{rollout.kuberik.com/rollout", "{rollout.kuberik.com/substitute.TAG.from"): "the annotation rollout.kuberik.com/substitute.TAG.from has no effect on an OCIRepository: it is for Kustomizations; " +
			"write rollout.kuberik.com/rollout: shop",
	} {
		var got []string
		for _, f := range lintText(join(policy, rollout, text)).Findings {
			if f.Rule == "R210" {
				got = append(got, f.Message+"; "+f.Remedy)
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestValuesInAClusterAreChecked: what the controller has written is no finding, and what
// it cannot write is one.
func TestValuesInAClusterAreChecked(t *testing.T) {
	for text, want := range map[string][]string{
		release(imageTag, "image: {tag: 1.0.0}"): nil,
		release(imageTag, "image: shop"):         {"R211 HelmRelease shop/shop"},
	} {
		var objects []map[string]any
		for _, document := range []string{policy, rollout, text} {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object)
		}
		if diff := cmp.Diff(want, described(lint.Cluster(objects, lint.Options{Now: noon}))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestPathsAreReadAsByTheController compares what lint takes for the path of a value with
// what the controller does.
func TestPathsAreReadAsByTheController(t *testing.T) {
	const prefix = v1alpha1.ValuesAnnotationPrefix
	for _, key := range []string{prefix + "image.tag.from", prefix + "a..b.from", prefix + ".from", prefix + ".a.from", prefix + "tag", "x" + prefix + "tag.from", prefix + "from"} {
		h := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "lost"}}}
		want := len(targets.RolloutsOf(h)) > 0
		got := slices.Contains(described(lintText(join(policy, rollout, repository, release(fmt.Sprintf("%q: lost", key))))), "R202 HelmRelease shop/shop")
		if got != want {
			t.Errorf("%s: lint reads a path: %t, the controller: %t", key, got, want)
		}
	}
}

func TestAsManyRolloutsMayWriteAsInTheController(t *testing.T) {
	annotations := map[string]string{}
	for i := range 60 {
		annotations[fmt.Sprintf("rollout.kuberik.com/substitute.V%d.from", i)] = fmt.Sprintf("r%d", i)
	}
	most := len(targets.RolloutsOf(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}))
	for n, want := range map[int]bool{most: false, most + 1: true} {
		var some []string
		for i := range n {
			some = append(some, fmt.Sprintf("rollout.kuberik.com/substitute.V%d.from: r%d", i, i))
		}
		text := change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {"+strings.Join(some, ", ")+"}")
		if got := slices.Contains(described(lintText(text)), "R211 Kustomization shop/shop"); got != want {
			t.Errorf("%d Rollouts are too many: %t, want %t", n, got, want)
		}
	}
}
