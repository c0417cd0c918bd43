// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// byTag returns a release of which only the tag is known.
func byTag(tag string) targets.Release { return targets.Release{Tag: tag} }

// Digests of two releases.
var (
	digest10 = digestOf("1.0.0")
	digest11 = digestOf("1.1.0")
)

func digestOf(tag string) string {
	_, digest, _ := strings.Cut(fixture.Revision(tag), "@")
	return digest
}

// byDigest is a release whose digest is known.
var byDigest = targets.Release{Tag: "1.1.0", Digest: digest11}

const ownsDigest = `{"f:spec":{"f:ref":{"f:tag":{},"f:digest":{}}}}`

// pinned returns an OCIRepository that gets tag and digest of the Rollout shop.
func pinned() *fixture.RepositoryBuilder {
	return fixture.MakeRepository("web").DrivenBy("shop").PinnedBy("shop")
}

// owned returns a target whose digest the controller has written.
func owned(t targets.Target) targets.Target {
	t.Object().SetManagedFields([]metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsDigest)})
	return t
}

func TestTagAndDigestAreSentTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		target  targets.Target
		unknown bool // the digest of the release
		want    string
	}{
		"of a repository":                {target: repository(pinned().Tag("1.0.0").Digest(digest10)), want: `{"ref":{"digest":"` + digest11 + `","tag":"1.1.0"}}`},
		"of a repository without either": {target: repository(pinned()), want: `{"ref":{"digest":"` + digest11 + `","tag":"1.1.0"}}`},
		"the old digest is removed":      {target: owned(repository(pinned().Tag("1.0.0").Digest(digest10))), unknown: true, want: `{"ref":{"digest":null,"tag":"1.1.0"}}`},
		"no digest that is not there":    {target: repository(pinned().Tag("1.0.0")), unknown: true, want: `{"ref":{"tag":"1.1.0"}}`},
		"a digest whose annotation is gone": {
			target: owned(repository(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Digest(digest11))), want: `{"ref":{"digest":null,"tag":"1.1.0"}}`,
		},
		"of a Kustomization": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "TAG").PinnedBy("shop", "DIGEST").PinnedBy("cart", "CART")),
			want:   `{"postBuild":{"substitute":{"DIGEST":"` + digest11 + `","TAG":"1.1.0"}}}`,
		},
		"of a HelmRelease": {
			target: helmRelease(web().DrivenBy("shop", "image.tag").PinnedBy("shop", "image.digest").PinnedBy("cart", "cart.digest")),
			want:   `{"values":{"image":{"digest":"` + digest11 + `","tag":"1.1.0"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got string
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					body, err := p.Data(o)
					_, got, _ = strings.Cut(strings.TrimSuffix(string(body), "}"), `"spec":`)
					return err
				},
			})
			entry := promoted()
			if !tt.unknown {
				entry.Version.Digest = &digest11
			}
			g.Expect(tt.target.Writable(targets.ReleaseOf(entry))).To(BeTrue())
			g.Expect(tt.target.Write(t.Context(), c, "shop", entry, fixture.Noon)).To(Succeed())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestOnlyADigestIsWritten(t *testing.T) {
	for _, text := range []string{"", "sha256:1234", strings.ToUpper(digest11), digest11 + "0", "sha512:" + strings.Repeat("0", 128), digest11 + "\nx: y", "1.1.0"} {
		entry := promoted()
		entry.Version.Digest = &text
		NewWithT(t).Expect(targets.ReleaseOf(entry)).To(Equal(byTag("1.1.0")), text)
	}
}

func TestTargetOfADigestIsObserved(t *testing.T) {
	ready := func(b *fixture.RepositoryBuilder, revision string) targets.Target {
		return repository(b.Generation(2).Pulled(revision).Ready())
	}
	git := func() *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("web").From("GitRepository", "web")
	}
	variable := git().DrivenBy("shop", "TAG").PinnedBy("shop", "DIGEST")
	const waits = "waits for the digest of 1.1.0, which is not known: to name it, pin 1.1.0@sha256:…"
	for name, tt := range map[string]struct {
		target   targets.Target
		release  targets.Release
		state    v1alpha1.TargetState
		reason   v1alpha1.TargetReason
		message  string
		writable bool
	}{
		"applied once the revision is the digest": {
			target: ready(pinned().Tag("1.1.0").Digest(digest11), digest11), release: byDigest, state: v1alpha1.TargetApplied,
		},
		"pending while the revision is that of the tag": {
			target: ready(pinned().Tag("1.1.0").Digest(digest11), fixture.Revision("1.1.0")), release: byDigest, state: v1alpha1.TargetPending,
		},
		"pending without the digest": {
			target: ready(pinned().Tag("1.1.0"), fixture.Revision("1.1.0")), release: byDigest, state: v1alpha1.TargetPending, writable: true,
		},
		"pending with the digest of another release": {
			target: ready(pinned().Tag("1.1.0").Digest(digest10), digest10), release: byDigest, state: v1alpha1.TargetPending, writable: true,
		},
		"applied by the tag while the digest is not known": {
			target: ready(pinned().Tag("1.1.0"), fixture.Revision("1.1.0")), release: byTag("1.1.0"), state: v1alpha1.TargetApplied,
		},
		"pending with an old digest of ours": {
			target:  owned(ready(pinned().Tag("1.1.0").Digest(digest10), digest10)),
			release: byTag("1.1.0"), state: v1alpha1.TargetPending, writable: true,
		},
		"a conflict with an old digest of others": {
			target: ready(pinned().Tag("1.1.0").Digest(digest10), digest10), release: byTag("1.1.0"), state: v1alpha1.TargetConflict,
			reason: v1alpha1.TargetOutranked, message: "spec.ref.digest outranks spec.ref.tag in Flux: remove it",
		},
		"a conflict with a digest that nothing asks for": {
			target:  ready(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Digest(digest11), digest11),
			release: byDigest, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked, message: "spec.ref.digest outranks spec.ref.tag in Flux: remove it",
		},
		"pending until the digest is removed, once nothing asks for it": {
			target:  owned(ready(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Digest(digest11), digest11)),
			release: byDigest, state: v1alpha1.TargetPending, writable: true,
		},
		"a conflict with a range of versions": {
			target: ready(pinned().Tag("1.1.0").Semver("1.x"), digest11), release: byDigest, state: v1alpha1.TargetConflict,
			reason: v1alpha1.TargetOutranked, message: "spec.ref.semver outranks spec.ref.tag in Flux: remove it",
		},
		"a conflict with the digest of another image": {
			target: func() targets.Target {
				other := ready(pinned().Tag("1.0.0"), fixture.Revision("1.0.0"))
				other.Ranked = "registry.example.com/shop"
				return other
			}(),
			release: byDigest, state: v1alpha1.TargetConflict, reason: v1alpha1.TargetOtherImage,
			message: "pulls registry.example.com/web, and the ImagePolicy ranks registry.example.com/shop, so the digest of the release is not about it: " +
				"remove the annotation digest.rollout.kuberik.com/ref",
		},
		"a variable waits for the digest": {
			target: kustomization(variable.Substitute("TAG", "1.0.0").Substitute("DIGEST", digest10)), release: byTag("1.1.0"),
			state: v1alpha1.TargetPending, reason: v1alpha1.TargetDigestUnknown, message: waits,
		},
		"a value waits for the digest": {
			target: helmRelease(web().DrivenBy("shop", "tag").PinnedBy("shop", "digest").Values(`{"tag":"1.0.0"}`)), release: byTag("1.1.0"),
			state: v1alpha1.TargetPending, reason: v1alpha1.TargetDigestUnknown, message: waits,
		},
		"a digest alone waits, too": {
			target: kustomization(git().PinnedBy("shop", "DIGEST")), release: byTag("1.1.0"),
			state: v1alpha1.TargetPending, reason: v1alpha1.TargetDigestUnknown, message: waits,
		},
		"a variable for both": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "TAG").PinnedBy("shop", "TAG")), release: byDigest,
			state: v1alpha1.TargetConflict, reason: v1alpha1.TargetInvalidField, writable: true,
			message: "the annotations rollout.kuberik.com/substitute.TAG.from and digest.rollout.kuberik.com/substitute.TAG cannot both be followed, " +
				"because they name the same field: remove one of them",
		},
		"a variable that Flux does not accept": {
			target: kustomization(fixture.MakeKustomization("web").PinnedBy("shop", "MY-DIGEST")), release: byDigest,
			state: v1alpha1.TargetConflict, reason: v1alpha1.TargetInvalidField,
			message: `Flux does not accept "MY-DIGEST" as the name of a variable: rename the annotation digest.rollout.kuberik.com/substitute.MY-DIGEST`,
		},
		"a value that contains another": {
			target: helmRelease(web().DrivenBy("shop", "image").PinnedBy("shop", "image.digest")), release: byDigest,
			state: v1alpha1.TargetConflict, reason: v1alpha1.TargetInvalidField,
			message: "the annotations rollout.kuberik.com/values.image.from and digest.rollout.kuberik.com/values.image.digest cannot both be followed, " +
				"because one of the values contains the other: remove one of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			seen := tt.target.Observe(fixture.MakeRollout("shop").Obj(), tt.release)
			g.Expect(seen.State).To(Equal(tt.state))
			g.Expect(seen.Reason).To(Equal(tt.reason))
			g.Expect(seen.Message).To(Equal(tt.message))
			g.Expect(tt.target.Writable(tt.release)).To(Equal(tt.writable), "writable")
			if seen.State == v1alpha1.TargetApplied {
				g.Expect(seen.Digest).To(Equal(digest11))
			}
		})
	}
}

func TestConsumerOfADigest(t *testing.T) {
	source := pinned().Generation(2).Tag("1.1.0").Digest(digest11).Pulled(digest11).Ready()
	chart := "1.1.0+" + digest11[7:19] // as helm-controller names it for both forms of a revision
	deployed := fixture.MakeHelmRelease("web").From("OCIRepository", "web").AttemptedAs(chart, digest11).Snapshot(chart, digest11, "deployed").AttemptedAt(1).Ready()
	for name, tt := range map[string]struct {
		target  targets.Target
		release targets.Release
		want    v1alpha1.TargetState
	}{
		"a Kustomization with the digest":            {targets.Target{Kustomization: fixture.MakeKustomization("web").Applied(digest11).Ready().Obj()}, byDigest, v1alpha1.TargetApplied},
		"a Kustomization with another":               {targets.Target{Kustomization: fixture.MakeKustomization("web").Applied(digest10).Ready().Obj()}, byDigest, v1alpha1.TargetPending},
		"a HelmRelease with the digest":              {targets.Target{HelmRelease: deployed.Obj()}, byDigest, v1alpha1.TargetApplied},
		"not of a release that has another digest":   {targets.Target{Kustomization: fixture.MakeKustomization("web").Applied(digest11).Ready().Obj()}, targets.Release{Tag: "1.1.0", Digest: digest10}, v1alpha1.TargetPending},
		"not of a release that is only known by tag": {targets.Target{Kustomization: fixture.MakeKustomization("web").Applied(digest11).Ready().Obj()}, byTag("1.1.0"), v1alpha1.TargetPending},
	} {
		t.Run(name, func(t *testing.T) {
			tt.target.Source = source.Obj()
			seen := tt.target.Observe(fixture.MakeRollout("shop").Obj(), tt.release)
			NewWithT(t).Expect(seen.State).To(Equal(tt.want), seen.Message)
		})
	}
}

func TestDigestsThatAreAdopted(t *testing.T) {
	g := NewWithT(t)
	web := owned(repository(pinned().Generation(2).Tag("1.1.0").Digest(digest11).Pulled(digest11).Ready()))
	adopted := targets.Release{Tag: "1.1.0", Adopted: true}
	seen := web.BeforeHistory(web.Observe(fixture.MakeRollout("shop").Obj(), adopted))
	g.Expect(seen.State).To(Equal(v1alpha1.TargetApplied))
	g.Expect(seen.Digest).To(Equal(digest11))
	g.Expect(seen.Pulled).To(Equal("1.1.0@" + digest11))
	g.Expect(web.Versions()).To(Equal([]string{"1.1.0"}), "a digest is no version")
	g.Expect(web.Owned()).To(Equal([]string{"1.1.0"}))
	g.Expect(web.Writable(adopted)).To(BeFalse())

	bare := repository(pinned().Digest(digest11).Pulled(digest11).Ready())
	g.Expect(bare.Unset()).To(BeTrue(), "a digest alone names no release")
}

func TestOwnershipOfADigest(t *testing.T) {
	for name, tt := range map[string]struct {
		target targets.Target
		excess bool
	}{
		"asked for":               {target: repository(pinned().Tag("1.1.0").Digest(digest11))},
		"still to be removed":     {target: repository(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Digest(digest11))},
		"removed":                 {target: repository(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0")), excess: true},
		"of no Rollout any more":  {target: repository(fixture.MakeRepository("web").Tag("1.1.0").Digest(digest11)), excess: true},
		"asked for by no Rollout": {target: repository(fixture.MakeRepository("web").PinnedBy("shop").Digest(digest11)), excess: true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(owned(tt.target).OwnsTooMuch()).To(Equal(tt.excess))
		})
	}
	taken := repository(pinned().Tag("1.1.0").Digest(digest10))
	taken.Object().SetManagedFields([]metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsDigest)})
	NewWithT(t).Expect(taken.Taken(byDigest).Fields).To(Equal([]string{"spec.ref.digest"}))
}

func TestTargetsArePinned(t *testing.T) {
	tagged, both := repository(fixture.MakeRepository("web").DrivenBy("shop")), repository(pinned())
	consumer := targets.Target{Kustomization: fixture.MakeKustomization("web").Obj()}
	for name, tt := range map[string]struct {
		all  []targets.Target
		want content.Pinned
	}{
		"none at all":     {nil, content.NonePinned},
		"by tag":          {[]targets.Target{tagged, consumer}, content.NonePinned},
		"all":             {[]targets.Target{both, consumer}, content.AllPinned},
		"some":            {[]targets.Target{both, tagged}, content.SomePinned},
		"of another name": {[]targets.Target{repository(fixture.MakeRepository("web").DrivenBy("shop").PinnedBy("cart"))}, content.NonePinned},
	} {
		NewWithT(t).Expect(targets.PinnedAmong(tt.all)).To(Equal(tt.want), name)
	}
}

func TestCorrectionsHaveAReason(t *testing.T) {
	for name, tt := range map[string]struct {
		target          targets.Target
		reason, message string
	}{
		"drift": {
			repository(pinned().Tag("1.0.0").Digest(digest10)), v1alpha1.TargetRestoredReason, "OCIRepository shop-prod/web had drifted and was set to 1.1.0 again",
		},
		"another digest": {
			repository(pinned().Tag("1.1.0").Digest(digest10)), v1alpha1.TargetRestoredReason, "OCIRepository shop-prod/web had drifted and was set to 1.1.0 again",
		},
		"switched on": {
			repository(pinned().Tag("1.1.0")), v1alpha1.TargetPinnedReason, "OCIRepository shop-prod/web is pinned to the digest of 1.1.0, " + digest11,
		},
		"switched off": {
			owned(repository(fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Digest(digest11))),
			v1alpha1.TargetUnpinnedReason, "OCIRepository shop-prod/web is not pinned to a digest any more, and pulls 1.1.0 by its tag",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := tt.target.Corrected(byDigest)
			NewWithT(t).Expect([]string{reason, message}).To(Equal([]string{tt.reason, tt.message}))
		})
	}
}
