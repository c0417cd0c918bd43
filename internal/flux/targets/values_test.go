// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// helmRelease returns a target with the values that name the Rollout shop.
func helmRelease(b *fixture.HelmReleaseBuilder) targets.Target {
	h := b.Obj()
	return targets.Target{HelmRelease: h, Paths: targets.PathsOf(h, "shop"), Digests: targets.DigestsOf(h, "shop")}
}

func web() *fixture.HelmReleaseBuilder { return fixture.MakeHelmRelease("web").FromChart("web") }

func TestAnnotationsNameValues(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations map[string]string
		paths       []string // of the Rollout shop
		rollouts    []string
	}{
		"none": {},
		"one": {
			annotations: map[string]string{"rollout.kuberik.com/values.image.tag.from": "shop"},
			paths:       []string{"image.tag"},
			rollouts:    []string{"shop"},
		},
		"several of several Rollouts, sorted": {
			annotations: map[string]string{
				"rollout.kuberik.com/values.web.image.tag.from": "shop",
				"rollout.kuberik.com/values.api_2.from":         "shop",
				"rollout.kuberik.com/values.cart.from":          "cart",
			},
			paths:    []string{"api_2", "web.image.tag"},
			rollouts: []string{"cart", "shop"},
		},
		"a key may be any word of the annotation": {
			annotations: map[string]string{"rollout.kuberik.com/values.from.values.from": "shop"},
			paths:       []string{"from.values"},
			rollouts:    []string{"shop"},
		},
		"what is no path is still somebody's order": {
			annotations: map[string]string{
				"rollout.kuberik.com/values.a..b.from": "shop",
				"rollout.kuberik.com/values..from":     "shop",
			},
			paths:    []string{"", "a..b"},
			rollouts: []string{"shop"},
		},
		"an empty name is nobody's": {
			annotations: map[string]string{"rollout.kuberik.com/values.image.tag.from": ""},
		},
		"other keys": {
			annotations: map[string]string{
				"rollout.kuberik.com/values.from":             "shop",
				"rollout.kuberik.com/values.image.tag":        "shop",
				"rollout.kuberik.com/values.image.tag.for":    "shop",
				"rollout.kuberik.com/valuesimage.from":        "shop",
				"rollout.kuberik.com/rollout":                 "shop",
				"rollout.kuberik.com/substitute.VERSION.from": "shop",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := web().Obj()
			h.Annotations = tt.annotations
			g.Expect(targets.PathsOf(h, "shop")).To(Equal(tt.paths))
			g.Expect(targets.RolloutsOf(h)).To(Equal(tt.rollouts))
		})
	}
}

func TestValuesOfAKustomizationAreNobodysOrder(t *testing.T) {
	k := fixture.MakeKustomization("web").Obj()
	k.Annotations = map[string]string{"rollout.kuberik.com/values.image.tag.from": "shop"}
	NewWithT(t).Expect(targets.RolloutsOf(k)).To(BeEmpty())
}

func TestHelmReleaseCarriesVersions(t *testing.T) {
	tagged := func(values string) targets.Target {
		return helmRelease(web().DrivenBy("shop", "image.tag").Values(values))
	}
	for name, tt := range map[string]struct {
		target   targets.Target
		carries  bool
		writable bool
		versions []string
		unset    bool
	}{
		"the version":                       {target: tagged(`{"image":{"tag":"1.1.0"}}`), carries: true, versions: []string{"1.1.0"}},
		"another version":                   {target: tagged(`{"image":{"tag":"1.0.0"}}`), writable: true, versions: []string{"1.0.0"}},
		"no values":                         {target: helmRelease(web().DrivenBy("shop", "image.tag")), writable: true, unset: true},
		"values that are null":              {target: tagged(`null`), writable: true, unset: true},
		"no parent":                         {target: tagged(`{"replicas":3}`), writable: true, unset: true},
		"a parent that is null":             {target: tagged(`{"image":null}`), writable: true, unset: true},
		"no value":                          {target: tagged(`{"image":{}}`), writable: true, unset: true},
		"a value that is null":              {target: tagged(`{"image":{"tag":null}}`), writable: true, unset: true},
		"an empty value":                    {target: tagged(`{"image":{"tag":""}}`), writable: true, unset: true},
		"a number, which is no version":     {target: tagged(`{"image":{"tag":1.1}}`), writable: true, unset: true},
		"a boolean, which is no version":    {target: tagged(`{"image":{"tag":true}}`), writable: true, unset: true},
		"a value at the top":                {target: helmRelease(web().DrivenBy("shop", "tag").Values(`{"tag":"1.1.0"}`)), carries: true, versions: []string{"1.1.0"}},
		"a value that a Rollout only names": {target: helmRelease(web().DrivenBy("cart", "image.tag").Values(`{"image":{"tag":"1.0.0"}}`)), carries: true},
		"one of two": {
			target:   helmRelease(web().DrivenBy("shop", "a").DrivenBy("shop", "b").Values(`{"a":"1.1.0","b":"1.0.0"}`)),
			writable: true, versions: []string{"1.1.0", "1.0.0"},
		},
		"both": {
			target:  helmRelease(web().DrivenBy("shop", "a").DrivenBy("shop", "b").Values(`{"a":"1.1.0","b":"1.1.0"}`)),
			carries: true, versions: []string{"1.1.0", "1.1.0"},
		},
		"a path that is none": {target: helmRelease(web().DrivenBy("shop", "a..b")), carries: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tt.target.Carries(byTag("1.1.0"))).To(Equal(tt.carries), "carries")
			g.Expect(tt.target.Writable(byTag("1.1.0"))).To(Equal(tt.writable), "writable")
			g.Expect(tt.target.Versions()).To(Equal(tt.versions), "versions")
			g.Expect(tt.target.Unset()).To(Equal(tt.unset), "unset")
		})
	}
}

// A write must not replace values of the user.
func TestAnnotationsThatCannotBeFollowedAreAConflict(t *testing.T) {
	const tag = "rename the annotation rollout.kuberik.com/values.image.tag.from"
	image := func(values string) *fixture.HelmReleaseBuilder {
		return web().DrivenBy("shop", "image.tag").Values(values)
	}
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		reason  v1alpha1.TargetReason
		message string
		writes  bool // the rest of it
	}{
		"the parent is a string": {
			release: image(`{"image":"web:1.0.0"}`), reason: v1alpha1.TargetInvalidField, message: "spec.values.image is a string, and a write would replace it with a map: make it a map, or " + tag,
		},
		"the parent is a list": {
			release: image(`{"image":[{"tag":"1.0.0"}]}`), reason: v1alpha1.TargetInvalidField, message: "spec.values.image is a list, and a write would replace it with a map: make it a map, or " + tag,
		},
		"the parent is a number": {
			release: image(`{"image":7}`), reason: v1alpha1.TargetInvalidField, message: "spec.values.image is a number, and a write would replace it with a map: make it a map, or " + tag,
		},
		"the parent is a boolean": {
			release: image(`{"image":false}`), reason: v1alpha1.TargetInvalidField, message: "spec.values.image is a boolean, and a write would replace it with a map: make it a map, or " + tag,
		},
		"the values are no map": {
			release: image(`["image"]`), reason: v1alpha1.TargetInvalidField, message: "spec.values is a list, and a write would replace it with a map: make it a map, or " + tag,
		},
		"the field is a map": {
			release: image(`{"image":{"tag":{"web":"1.0.0"}}}`),
			reason:  v1alpha1.TargetInvalidField, message: "spec.values.image.tag is a map, and a write would replace all of it: " + tag + ", so that it names a single value",
		},
		"the field is a list": {
			release: image(`{"image":{"tag":[]}}`),
			reason:  v1alpha1.TargetInvalidField, message: "spec.values.image.tag is a list, and a write would replace all of it: " + tag + ", so that it names a single value",
		},
		"another value of the Rollout could be written": {
			release: image(`{"image":"web:1.0.0"}`).DrivenBy("shop", "version"),
			reason:  v1alpha1.TargetInvalidField, message: "spec.values.image is a string, and a write would replace it with a map: make it a map, or " + tag,
		},
		"one path contains the other": {
			release: web().DrivenBy("shop", "image").DrivenBy("shop", "image.tag"),
			reason:  v1alpha1.TargetInvalidField, message: "the annotations rollout.kuberik.com/values.image.from and rollout.kuberik.com/values.image.tag.from cannot both be followed, " +
				"because one of the values contains the other: remove one of them",
		},
		"a path of another Rollout contains it": {
			release: web().DrivenBy("cart", "image").DrivenBy("shop", "image.web.tag"),
			reason:  v1alpha1.TargetInvalidField, message: "the annotations rollout.kuberik.com/values.image.from and rollout.kuberik.com/values.image.web.tag.from cannot both be followed, " +
				"because one of the values contains the other: remove one of them",
		},
		"it contains a path of another Rollout": {
			release: web().DrivenBy("shop", "image").DrivenBy("cart", "image.web.tag").DrivenBy("shop", "image-pull"),
			reason:  v1alpha1.TargetInvalidField, message: "the annotations rollout.kuberik.com/values.image.from and rollout.kuberik.com/values.image.web.tag.from cannot both be followed, " +
				"because one of the values contains the other: remove one of them",
		},
		"a reference has the same path": {
			release: image(`{}`).ValuesFrom("all", "").ValuesFrom("one", "image.tag"),
			reason:  v1alpha1.TargetOutranked, message: "spec.valuesFrom with targetPath image.tag outranks spec.values.image.tag in Flux: remove it",
		},
		"a reference has the map around it": {
			release: image(`{}`).ValuesFrom("one", "image"),
			reason:  v1alpha1.TargetOutranked, message: "spec.valuesFrom with targetPath image outranks spec.values.image.tag in Flux: remove it",
		},
		"a reference has a value in it": {
			release: image(`{}`).ValuesFrom("one", "image.tag.name"),
			reason:  v1alpha1.TargetOutranked, message: "spec.valuesFrom with targetPath image.tag.name outranks spec.values.image.tag in Flux: remove it",
		},
		"a reference has an item of a list there": {
			release: image(`{}`).ValuesFrom("one", "image.tag[0]"),
			reason:  v1alpha1.TargetOutranked, message: "spec.valuesFrom with targetPath image.tag[0] outranks spec.values.image.tag in Flux: remove it",
		},
		"an empty key": {
			release: web().DrivenBy("shop", "image..tag"),
			reason:  v1alpha1.TargetInvalidField, message: `"image..tag" is not the path of a value, which has keys with a dot between each two: rename the annotation rollout.kuberik.com/values.image..tag.from`,
		},
		"an empty path, and a value that can be written": {
			release: image(`{}`).DrivenBy("shop", ""), writes: true,
			reason: v1alpha1.TargetInvalidField, message: `"" is not the path of a value, which has keys with a dot between each two: rename the annotation rollout.kuberik.com/values..from`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := helmRelease(tt.release)
			seen := target.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			g.Expect(seen.State).To(Equal(v1alpha1.TargetConflict))
			g.Expect(seen.Reason).To(Equal(tt.reason))
			g.Expect(seen.Message).To(Equal(tt.message))
			g.Expect(target.Writable(byTag("1.1.0"))).To(Equal(tt.writes))
		})
	}
}

func TestObstaclesOfOtherRolloutsAreTheirs(t *testing.T) {
	for name, release := range map[string]*fixture.HelmReleaseBuilder{
		"no map":           web().DrivenBy("cart", "cart.tag").Values(`{"cart":"2.0.0"}`),
		"no path":          web().DrivenBy("cart", "cart..tag"),
		"two in each":      web().DrivenBy("cart", "cart").DrivenBy("cart", "cart.tag"),
		"an empty name":    web().DrivenBy("", "image"),
		"a similar name":   web().DrivenBy("cart", "image.ta").DrivenBy("cart", "image.tags").DrivenBy("cart", "imag"),
		"another in a map": web().DrivenBy("cart", "image.name"),
		"references": web().ValuesFrom("all", "").ValuesFrom("a", "image.ta").ValuesFrom("b", "image.tags").ValuesFrom("c", `image\.tag`).
			ValuesFrom("d", "images").ValuesFrom("e", "tag").ValuesFrom("f", "image.name.tag"),
		"one of another": web().DrivenBy("cart", "cart").ValuesFrom("a", "cart"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := helmRelease(release.DrivenBy("shop", "image.tag"))
			g.Expect(target.Writable(byTag("1.1.0"))).To(BeTrue())
			seen := target.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			g.Expect(seen.State).To(Equal(v1alpha1.TargetPending))
			g.Expect(seen.Message).To(BeEmpty())
		})
	}
}

func TestRolloutsOfAHelmReleaseAreLimitedToTheFirst(t *testing.T) {
	g := NewWithT(t)
	b := web()
	for i := range 60 {
		b.DrivenBy(fmt.Sprintf("shop-%02d", i), fmt.Sprintf("v%d", i))
	}
	g.Expect(targets.RolloutsOf(b.Obj())).To(HaveLen(50))
	seen := targets.Target{HelmRelease: b.Obj(), Paths: []string{"v0"}}.Observe(fixture.MakeRollout("shop-00").Obj(), byTag("1.0.0"))
	g.Expect(seen.State).To(Equal(v1alpha1.TargetConflict))
	g.Expect(seen.Reason).To(Equal(v1alpha1.TargetTooManyRollouts))
	g.Expect(seen.Message).To(Equal("its annotations name 60 Rollouts, and at most 50 may write into one HelmRelease: divide it into several"))
}

const (
	ownsImageTag = `{"f:spec":{"f:values":{"f:image":{"f:tag":{}}}}}`
	ownsWhole    = `{"f:metadata":{"f:annotations":{".":{},"f:reconcile.fluxcd.io/requestedAt":{}}},` +
		`"f:spec":{"f:values":{".":{},"f:cart":{".":{},"f:tag":{}},"f:image":{".":{},"f:tag":{}}}}}`
)

func TestSurplusOwnershipOfValues(t *testing.T) {
	shared := func() *fixture.HelmReleaseBuilder {
		return web().DrivenBy("shop", "image.tag").DrivenBy("cart", "cart.tag")
	}
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		fields  []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nothing":                       {release: shared()},
		"not the values of any Rollout": {release: shared(), fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsWhole)}},
		"a value whose annotation is removed": {
			release: web().DrivenBy("shop", "image.tag"), fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsWhole)}, want: true,
		},
		"the last value, and the request": {
			release: web(), fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsWhole)}, want: true,
		},
		"a value whose annotation names nobody": {
			release: web().DrivenBy("", "image.tag"), fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsImageTag)}, want: true,
		},
		"all values at once": {
			release: shared(), fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, `{"f:spec":{"f:values":{}}}`)},
		},
		"not what others own": {
			release: web(), fields: []metav1.ManagedFieldsEntry{updated("kustomize-controller", ownsWhole)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := helmRelease(tt.release)
			target.Object().SetManagedFields(tt.fields)
			NewWithT(t).Expect(target.OwnsTooMuch()).To(Equal(tt.want))
		})
	}
}

func TestOwnedValues(t *testing.T) {
	g := NewWithT(t)
	target := helmRelease(web().DrivenBy("shop", "image.tag").DrivenBy("shop", "version").DrivenBy("cart", "cart.tag").
		Values(`{"image":{"tag":"1.0.0"},"version":"0.9.0","cart":{"tag":"2.0.0"}}`))
	target.Object().SetManagedFields([]metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsWhole)})
	g.Expect(target.Owned()).To(Equal([]string{"1.0.0"}))
}

func TestManagerThatTookAValue(t *testing.T) {
	g := NewWithT(t)
	target := helmRelease(web().DrivenBy("shop", "image.tag").DrivenBy("shop", "version").Values(`{"image":{"tag":"0.9.0"},"version":"1.1.0"}`))
	target.Object().SetManagedFields([]metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsImageTag)})
	g.Expect(target.Taken(byTag("1.1.0"))).To(Equal(targets.Taking{
		Fields: []string{"spec.values.image.tag"}, Managers: []string{"kustomize-controller"}, Applied: true,
	}))
}

func TestOnlyWrittenValuesAreKept(t *testing.T) {
	long := strings.Repeat("x", 5_000)
	for name, tt := range map[string]struct{ values, want string }{
		"none":                   {"", ""},
		"none that is written":   {`{"replicas":3}`, ""},
		"the written ones":       {`{"image":{"tag":"1.0.0","name":"web"},"version":"0.9.0","secret":"s"}`, `{"image":{"tag":"1.0.0"},"version":"0.9.0"}`},
		"scalars":                {`{"image":{"tag":1.1},"version":true}`, `{"image":{"tag":1.1},"version":true}`},
		"not null":               {`{"image":null,"version":null}`, ""},
		"that there is a map":    {`{"image":{"tag":{"a":"b"}}}`, `{"image":{"tag":{}}}`},
		"that there is a list":   {`{"image":["a","b"]}`, `{"image":[]}`},
		"what is in the way":     {`{"image":"web"}`, `{"image":"web"}`},
		"values that are a list": {`["a"]`, `[]`},
		"no more than a version": {`{"image":{"tag":"` + long + `"}}`, `{"image":{"tag":"` + long[:129] + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := web().DrivenBy("shop", "image.tag").DrivenBy("cart", "version").DrivenBy("shop", "a..b").DrivenBy("", "secret")
			if tt.values != "" {
				b.Values(tt.values)
			}
			h := b.Obj()
			for range 2 { // an object may be trimmed more than once
				targets.KeepWrittenValues(h)
				if tt.want == "" {
					g.Expect(h.Spec.Values).To(BeNil())
					continue
				}
				g.Expect(string(h.Spec.Values.Raw)).To(Equal(tt.want))
			}
		})
	}
}

func TestHelmReleaseWithValuesIsObserved(t *testing.T) {
	const chart, old = "7.0.0", "sha256:1"
	carries := `{"image":{"tag":"1.1.0"}}`
	made := func() *fixture.HelmReleaseBuilder {
		return web().Generation(2).DrivenBy("shop", "image.tag").Values(carries)
	}
	deployed := func() *fixture.HelmReleaseBuilder {
		return made().Snapshot(chart, "", "superseded").AttemptedAs(chart, "").AttemptedAt(2).AttemptedWith(fixture.ConfigDigest).
			Snapshot(chart, "", "deployed").Requested("now", "now").Ready()
	}
	failed := func(reason string) *fixture.HelmReleaseBuilder {
		return made().Snapshot(chart, "", "deployed").AttemptedAs(chart, "").AttemptedAt(2).AttemptedWith(fixture.ConfigDigest).
			Snapshot(chart, "", "failed").Requested("now", "now").Condition(meta.ReadyCondition, no, 2, upgradeFailed).Because(reason)
	}
	now := fixture.Revision("1.1.0")
	source := func(rollout string) *fixture.RepositoryBuilder {
		return fixture.MakeRepository("web").DrivenBy(rollout).Tag("1.1.0").Pulled(now)
	}
	charted := func() *fixture.HelmReleaseBuilder {
		return fixture.MakeHelmRelease("web").Generation(2).DrivenBy("shop", "image.tag").Values(carries).
			Attempted(now).AttemptedWith(fixture.ConfigDigest).Installed(now, "deployed").Ready()
	}
	fromChart := func(r *v1alpha1.Rollout) {
		r.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": fixture.Namespace}
	}
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		source  *fixture.RepositoryBuilder // none by default
		rollout func(*v1alpha1.Rollout)
		state   v1alpha1.TargetState
		reason  v1alpha1.TargetReason
		message string
	}{
		"applied once Helm has deployed these values": {release: deployed(), state: v1alpha1.TargetApplied},
		"applied with a chart from an OCIRepository of nobody": {
			release: charted(), source: fixture.MakeRepository("web").Tag("7.0.0").Pulled(now), state: v1alpha1.TargetApplied,
		},
		"applied with a chart that another Rollout writes, whichever it is": {
			release: charted(), source: source("charts").Pulled(fixture.Revision("7.0.0")), state: v1alpha1.TargetApplied,
		},
		"applied with a chart of the same release": {release: charted(), source: source("shop"), state: v1alpha1.TargetApplied},
		"applied although nobody asked for it":     {release: charted().Requested("later", "now"), source: source("shop"), state: v1alpha1.TargetApplied},
		"pending while its chart has another tag": {
			release: charted(), source: source("shop").Pulled(fixture.Revision("1.0.0")), state: v1alpha1.TargetPending,
		},
		"pending while Helm has tried the chart before": {
			release: charted().Attempted(fixture.Revision("1.0.0")).Installed(fixture.Revision("1.0.0"), "deployed"), source: source("shop"),
			state: v1alpha1.TargetPending,
		},
		"pending while the value is another one": {release: deployed().Values(`{"image":{"tag":"1.0.0"}}`), state: v1alpha1.TargetPending},
		"pending while there is no value":        {release: deployed().Values(`{}`), state: v1alpha1.TargetPending},
		"pending before Helm has tried anything": {release: made(), state: v1alpha1.TargetPending},
		"pending if Helm tried an older generation": {
			release: deployed().AttemptedAt(1), state: v1alpha1.TargetPending,
		},
		"pending while its generation is not observed": {release: deployed().Observed(1), state: v1alpha1.TargetPending},
		"pending while Ready is about the generation before": {
			release: deployed().Condition(meta.ReadyCondition, yes, 1, "Helm upgrade succeeded"), state: v1alpha1.TargetPending,
		},
		"pending while Helm works": {
			release: deployed().Condition(meta.ReconcilingCondition, yes, 2, "Running 'upgrade' action"), state: v1alpha1.TargetPending,
		},
		"pending while Ready comes before the history": {
			release: made().AttemptedAs(chart, "").AttemptedAt(2).AttemptedWith(old).Snapshot(chart, "", "deployed").Ready(),
			state:   v1alpha1.TargetPending,
		},
		"pending while another chart is deployed with these values": {
			release: deployed().Snapshot("6.0.0", "", "deployed"), state: v1alpha1.TargetPending,
		},
		"pending while the newest version is not deployed": {
			release: deployed().Snapshot(chart, "", "pending-upgrade"), state: v1alpha1.TargetPending,
		},
		"pending while suspended": {release: deployed().Suspended(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSuspended, message: "is suspended: resume it"},
		"pending while its source does not exist": {
			release: charted(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSourceMissing, message: "its OCIRepository web does not exist",
		},
		"failed if the upgrade failed": {release: failed(helmv2.UpgradeFailedReason), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: upgradeFailed},
		"failed if Helm went back":     {release: failed(helmv2.RollbackSucceededReason), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetUnhealthy, message: upgradeFailed},
		"pending if Helm could not try": {
			release: failed("ValuesError"), state: v1alpha1.TargetPending, reason: v1alpha1.TargetArtifactFailed, message: upgradeFailed,
		},
		"pending if it failed at a generation before": {
			release: failed(helmv2.UpgradeFailedReason).AttemptedAt(1), state: v1alpha1.TargetPending,
		},
		"pending if it said so of a generation before": {
			release: failed("").Condition(meta.ReadyCondition, no, 1, upgradeFailed).Because(helmv2.UpgradeFailedReason), state: v1alpha1.TargetPending,
		},
		"pending if it said so before it has handled the write": {
			release: failed(helmv2.UpgradeFailedReason).Requested("now", "before"), state: v1alpha1.TargetPending,
		},
		"pending if it failed with values that are not the release's": {
			release: failed(helmv2.UpgradeFailedReason).Values(`{"image":{"tag":"1.0.0"}}`), state: v1alpha1.TargetPending,
		},
		"pending if another chart was refused, of which nobody asked": {
			release: deployed().Condition(meta.ReadyCondition, no, 2, "artifact revision 1.1.0 does not match chart version 1.0.9").
				Because("ChartMutateError"), state: v1alpha1.TargetPending,
		},
		"failed if its chart is refused, which has the release": {
			release: charted().Condition(meta.ReadyCondition, no, 2, "artifact revision 1.1.0 does not match chart version 1.0.9").
				Because("ChartMutateError"), source: source("shop"),
			state: v1alpha1.TargetFailed, reason: v1alpha1.TargetNotApplied, message: "artifact revision 1.1.0 does not match chart version 1.0.9",
		},
		"in conflict if its chart has the Rollout and it waits for all": {
			release: deployed(), rollout: fromChart, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetDependencyCycle, message: helmCycle,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rollout, observed := fixture.MakeRollout("shop").Obj(), helmRelease(tt.release)
			if tt.rollout != nil {
				tt.rollout(rollout)
			}
			if tt.source != nil {
				observed.Source = tt.source.Obj()
			}
			seen := observed.Observe(rollout, byTag("1.1.0"))
			seen.Waits = 0 // TestHowLongFluxWaits
			NewWithT(t).Expect(seen).To(Equal(content.Target{
				Kind: "HelmRelease", Namespace: fixture.Namespace, Name: "web", State: tt.state, Reason: tt.reason, Message: tt.message,
				Unhealthy: tt.reason == v1alpha1.TargetUnhealthy,
			}))
		})
	}
}
