// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func repository(b *fixture.RepositoryBuilder) targets.Target {
	return targets.Target{Repository: b.Obj(), Digests: targets.DigestsOf(b.Obj(), "shop")}
}

// kustomization returns a target with the variables that name the Rollout shop.
func kustomization(b *fixture.KustomizationBuilder) targets.Target {
	k := b.Obj()
	return targets.Target{Kustomization: k, Variables: targets.VariablesOf(k, "shop"), Digests: targets.DigestsOf(k, "shop")}
}

func TestAnnotationsNameVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations map[string]string
		variables   []string // of the Rollout shop
		rollouts    []string
	}{
		"none": {},
		"one": {
			annotations: map[string]string{"rollout.kuberik.com/substitute.VERSION.from": "shop"},
			variables:   []string{"VERSION"},
			rollouts:    []string{"shop"},
		},
		"several of several Rollouts, sorted": {
			annotations: map[string]string{
				"rollout.kuberik.com/substitute.WEB.from":  "shop",
				"rollout.kuberik.com/substitute.API.from":  "shop",
				"rollout.kuberik.com/substitute.CART.from": "cart",
			},
			variables: []string{"API", "WEB"},
			rollouts:  []string{"cart", "shop"},
		},
		"names that Flux does not accept are still somebody's order": {
			annotations: map[string]string{"rollout.kuberik.com/substitute.MY-VAR.from": "shop"},
			variables:   []string{"MY-VAR"},
			rollouts:    []string{"shop"},
		},
		"an empty name is nobody's": {
			annotations: map[string]string{"rollout.kuberik.com/substitute.VERSION.from": ""},
		},
		"other keys": {
			annotations: map[string]string{
				"rollout.kuberik.com/substitute.A.B.from":    "shop",
				"rollout.kuberik.com/substitute..from":       "shop",
				"rollout.kuberik.com/substitute.from":        "shop",
				"rollout.kuberik.com/substitute.VERSION":     "shop",
				"rollout.kuberik.com/rollout":                "shop",
				"rollout.kuberik.com/substitute.VERSION.for": "shop",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			k := fixture.MakeKustomization("web").Obj()
			k.Annotations = tt.annotations
			g.Expect(targets.VariablesOf(k, "shop")).To(Equal(tt.variables))
			g.Expect(targets.RolloutsOf(k)).To(Equal(tt.rollouts))
		})
	}
}

// TestRolloutsOfATargetAreLimitedToTheFirst: each change of a Kustomization wakes all
// Rollouts that it names.
func TestRolloutsOfATargetAreLimitedToTheFirst(t *testing.T) {
	g := NewWithT(t)
	b := fixture.MakeKustomization("web")
	for i := range 5_000 {
		b.DrivenBy(fmt.Sprintf("shop-%04d", i), fmt.Sprintf("V%d", i))
	}
	named := targets.RolloutsOf(b.Obj())
	g.Expect(named).To(HaveLen(50))
	g.Expect(named[0]).To(Equal("shop-0000"))
	state := targets.Target{Kustomization: b.Obj(), Variables: []string{"V0"}}.Observe(fixture.MakeRollout("shop-0000").Obj(), byTag("1.0.0"))
	g.Expect(state.State).To(Equal(v1alpha1.TargetConflict))
	g.Expect(state.Reason).To(Equal(v1alpha1.TargetTooManyRollouts))
	g.Expect(state.Message).To(Equal("its annotations name 5000 Rollouts, and at most 50 may write into one Kustomization: divide it into several"))
}

func TestRepositoryNamesItsRollout(t *testing.T) {
	g := NewWithT(t)
	g.Expect(targets.RolloutOf(fixture.MakeRepository("web").DrivenBy("shop").Obj())).To(Equal("shop"))
	g.Expect(targets.RolloutOf(fixture.MakeRepository("web").Obj())).To(BeEmpty())
}

func TestTargetCarriesAndTakesVersions(t *testing.T) {
	for name, tt := range map[string]struct {
		target   targets.Target
		carries  bool
		writable bool
	}{
		"a repository without a reference": {
			target: repository(fixture.MakeRepository("web")), writable: true,
		},
		"a repository with another tag": {
			target: repository(fixture.MakeRepository("web").Tag("1.0.0")), writable: true,
		},
		"a repository with the tag": {
			target: repository(fixture.MakeRepository("web").Tag("1.1.0")), carries: true,
		},
		"a repository whose digest outranks the tag": {
			target: repository(fixture.MakeRepository("web").Tag("1.0.0").Digest("sha256:1")),
		},
		"a repository whose range outranks the tag": {
			target: repository(fixture.MakeRepository("web").Tag("1.0.0").Semver("1.x")),
		},
		"a Kustomization that only consumes": {
			target: kustomization(fixture.MakeKustomization("web")), carries: true,
		},
		"a Kustomization without substitutes": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "VERSION")), writable: true,
		},
		"a Kustomization with one of two substitutes": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("shop", "B").
				Substitute("A", "1.1.0").Substitute("B", "1.0.0")),
			writable: true,
		},
		"a Kustomization with both substitutes": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("shop", "B").
				Substitute("A", "1.1.0").Substitute("B", "1.1.0")),
			carries: true,
		},
		"a Kustomization whose variable Flux does not accept": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "1ST")), carries: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tt.target.Carries(byTag("1.1.0"))).To(Equal(tt.carries), "carries")
			g.Expect(tt.target.Writable(byTag("1.1.0"))).To(Equal(tt.writable), "writable")
		})
	}
}

// A user who may write the status of a Rollout must not be able to write YAML into the
// objects that Flux applies.
func TestInvalidTagIsNeverWritten(t *testing.T) {
	for _, target := range []targets.Target{
		repository(fixture.MakeRepository("web").Tag("1.0.0")),
		kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "VERSION")),
		helmRelease(web().DrivenBy("shop", "image.tag")),
	} {
		g := NewWithT(t)
		const forged = "1.1.0\nprivileged: true"
		g.Expect(target.Writable(byTag(forged))).To(BeFalse())
		seen := target.Observe(fixture.MakeRollout("shop").Obj(), byTag(forged))
		g.Expect(seen.State).To(Equal(v1alpha1.TargetConflict))
		g.Expect(seen.Reason).To(Equal(v1alpha1.TargetInvalidVersion))
		g.Expect(seen.Message).To(Equal(`status.history names "1.1.0\nprivileged: true", which cannot be a tag and is not written: ` +
			"set spec.wantedVersion to the right one"))
		g.Expect(target.Observe(fixture.MakeRollout("shop").Obj(), targets.Release{}).State).To(Equal(v1alpha1.TargetPending), byTag("nothing was promoted yet"))
	}
}

func TestTargetIsNamed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(repository(fixture.MakeRepository("web")).String()).To(Equal("OCIRepository shop-prod/web"))
	g.Expect(kustomization(fixture.MakeKustomization("web")).String()).To(Equal("Kustomization shop-prod/web"))
}
