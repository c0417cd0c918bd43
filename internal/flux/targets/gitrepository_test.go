// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	noTag    = "failed to checkout and determine revision: unable to clone 'https://git.example.com/web': couldn't find remote ref \"refs/tags/1.1.0\""
	unsigned = "cannot verify signature of tag '1.1.0' since it is not signed"
)

func TestGitRepositoryIsObserved(t *testing.T) {
	pulled := func() *fixture.GitRepositoryBuilder {
		return fixture.MakeGitRepository("web").DrivenBy("shop").Generation(2).Tag("1.1.0").Pulled(fixture.Commit("1.1.0")).Ready()
	}
	withRef := func(ref sourcev1.GitRepositoryRef) *fixture.GitRepositoryBuilder {
		ref.Tag = "1.1.0"
		return pulled().Ref(ref)
	}
	for name, tt := range map[string]struct {
		repository *fixture.GitRepositoryBuilder
		state      v1alpha1.TargetState
		reason     v1alpha1.TargetReason
		message    string
	}{
		"applied once the tag was checked out at this generation":       {repository: pulled(), state: v1alpha1.TargetApplied},
		"applied with commits of another algorithm":                     {repository: pulled().Pulled("1.1.0@sha256:" + strings.Repeat("a", 64)), state: v1alpha1.TargetApplied},
		"applied beside a branch, which the tag outranks":               {repository: withRef(sourcev1.GitRepositoryRef{Branch: "main"}), state: v1alpha1.TargetApplied},
		"pending with another tag":                                      {repository: pulled().Tag("1.0.0"), state: v1alpha1.TargetPending},
		"pending while the generation is not observed":                  {repository: pulled().Observed(1), state: v1alpha1.TargetPending},
		"pending while the artifact is that of a branch":                {repository: pulled().Pulled(fixture.Commit("main")), state: v1alpha1.TargetPending},
		"pending while the artifact is that of a commit":                {repository: pulled().Pulled("sha1:1234"), state: v1alpha1.TargetPending},
		"pending while the artifact is that of the absolute name of it": {repository: pulled().Pulled("refs/tags/1.1.0@sha1:1234"), state: v1alpha1.TargetPending},
		"pending while suspended":                                       {repository: pulled().Suspended(), state: v1alpha1.TargetPending, reason: v1alpha1.TargetSuspended, message: "is suspended: resume it"},
		"a conflict with a semver range": {
			repository: withRef(sourcev1.GitRepositoryRef{SemVer: ">=1"}), state: v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked,
			message: "spec.ref.semver outranks spec.ref.tag in Flux: remove it",
		},
		"a conflict with a name, which outranks the range": {
			repository: withRef(sourcev1.GitRepositoryRef{SemVer: ">=1", Name: "refs/heads/main"}), state: v1alpha1.TargetConflict, reason: v1alpha1.TargetOutranked,
			message: "spec.ref.name outranks spec.ref.tag in Flux: remove it",
		},
		"a conflict with a commit, which outranks all": {
			repository: withRef(sourcev1.GitRepositoryRef{SemVer: ">=1", Name: "refs/heads/main", Commit: "1234"}), state: v1alpha1.TargetConflict,
			reason: v1alpha1.TargetOutranked, message: "spec.ref.commit outranks spec.ref.tag in Flux: remove it",
		},
		"a conflict if it is to get a digest": {
			repository: pulled().PinnedBy("shop"), state: v1alpha1.TargetConflict, reason: v1alpha1.TargetInvalidField,
			message: "the annotation digest.rollout.kuberik.com/ref has no meaning on a GitRepository, because a digest is about an image: remove it; " +
				"to let nobody move a tag in Git, protect the tags there, and set spec.verify",
		},
		"pending while the tag is not in Git": {
			repository: pulled().Pulled(fixture.Commit("1.0.0")).Failed(sourcev1.GitOperationFailedReason, noTag), state: v1alpha1.TargetPending,
			reason: v1alpha1.TargetArtifactFailed, message: noTag,
		},
		"pending while what it includes is not there": {
			repository: pulled().Failed("NotFound", "could not get resource for include 'base'"), state: v1alpha1.TargetPending,
			reason: v1alpha1.TargetArtifactFailed, message: "could not get resource for include 'base'",
		},
		"failed if the tag is not signed": {
			repository: pulled().Failed("InvalidGitObject", unsigned), state: v1alpha1.TargetFailed, reason: v1alpha1.TargetNotPulled, message: unsigned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := targets.Target{Repository: tt.repository.Obj()}.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			want := content.Target{Kind: sourcev1.GitRepositoryKind, Namespace: fixture.Namespace, Name: "web", State: tt.state, Reason: tt.reason, Message: tt.message}
			if tt.state == v1alpha1.TargetApplied {
				_, want.Digest, _ = strings.Cut(tt.repository.Obj().Status.Artifact.Revision, "@")
			}
			NewWithT(t).Expect(seen).To(Equal(want))
		})
	}
}

func TestTagOfGitRepositoryIsWritten(t *testing.T) {
	g := NewWithT(t)
	web := targets.Target{Repository: fixture.MakeGitRepository("web").DrivenBy("shop").Ref(sourcev1.GitRepositoryRef{Branch: "main"}).Obj()}
	c := indexed(t, web.Repository)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web.Repository), web.Repository)).To(Succeed())
	g.Expect(web.Unset()).To(BeTrue())
	g.Expect(web.Writable(byTag("1.1.0"))).To(BeTrue())
	g.Expect(web.Write(t.Context(), c, "shop", promoted(), fixture.Noon)).To(Succeed())
	now := &sourcev1.GitRepository{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web.Repository), now)).To(Succeed())
	g.Expect(now.Spec.Reference).To(Equal(&sourcev1.GitRepositoryRef{Branch: "main", Tag: "1.1.0"}))

	for name, hindered := range map[string]*fixture.GitRepositoryBuilder{
		"outranked":          fixture.MakeGitRepository("web").DrivenBy("shop").Ref(sourcev1.GitRepositoryRef{Commit: "1234"}),
		"with an annotation": fixture.MakeGitRepository("web").DrivenBy("shop").PinnedBy("shop"),
	} {
		g.Expect(targets.Target{Repository: hindered.Obj()}.Writable(byTag("1.1.0"))).To(BeFalse(), name)
	}
}

func TestOwnersOfTheTagOfAGitRepositoryAreNamed(t *testing.T) {
	g := NewWithT(t)
	tag := metav1.NewFieldsV1(`{"f:spec":{"f:ref":{"f:tag":{}}}}`)
	web := targets.Target{Repository: fixture.MakeGitRepository("web").DrivenBy("shop").Tag("1.0.0").Obj()}
	web.Repository.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: write.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: tag},
		{Manager: "kustomize-controller", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: tag},
	})
	web.Repository.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"})
	g.Expect(web.Owned()).To(Equal([]string{"1.0.0"}))
	g.Expect(web.OwnsTooMuch()).To(BeFalse())
	g.Expect(web.Taken(byTag("1.1.0")).String()).To(Equal("spec.ref.tag is overwritten by kustomize-controller for Kustomization flux-system/apps: " +
		"remove it from the manifest that this Kustomization applies, or name it in its spec.ignore"))
}

// A GitRepository that no Rollout writes is not the source of any target: its revision is not
// about a release.
func TestConsumersOfGitRepositoriesAreFound(t *testing.T) {
	reader := indexed(t,
		fixture.MakeGitRepository("web").DrivenBy("shop").Obj(), fixture.MakeGitRepository("fleet").Obj(), fixture.MakeGitRepository("cart").DrivenBy("cart").Obj(),
		fixture.MakeKustomization("web").From("GitRepository", "web").Obj(),
		fixture.MakeKustomization("fleet").From("GitRepository", "fleet").DrivenBy("shop", "A").Obj(),
		fixture.MakeKustomization("cart").From("GitRepository", "cart").DrivenBy("shop", "A").Obj(),
		fixture.MakeKustomization("lost").From("GitRepository", "lost").DrivenBy("shop", "A").Obj(),
		fixture.MakeKustomization("other").From("GitRepository", "fleet").Obj(),
		fixture.MakeKustomization("same-name").From("OCIRepository", "web").Obj(),
		fixture.MakeHelmRelease("web").FromChart("web").FromGit("web", "Revision").Obj(),
		fixture.MakeHelmRelease("fleet").FromChart("web").FromGit("fleet", "Revision").Obj(),
	)
	for name, tt := range map[string]struct {
		git  bool
		want []string
	}{
		"where they are read": {true, []string{
			"GitRepository shop-prod/web", "HelmRelease shop-prod/web < web", "Kustomization shop-prod/cart < cart",
			"Kustomization shop-prod/fleet", "Kustomization shop-prod/lost", "Kustomization shop-prod/web < web",
		}},
		"where they are not": {false, []string{"Kustomization shop-prod/cart", "Kustomization shop-prod/fleet", "Kustomization shop-prod/lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := targets.Find(t.Context(), reader, shop, tt.git)
			g.Expect(err).NotTo(HaveOccurred())
			found, err = targets.WithHelmReleases(t.Context(), reader, shop, found, tt.git)
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, each := range found {
				text := each.String()
				if each.Source != nil {
					text += " < " + each.Source.GetName()
				}
				got = append(got, text)
			}
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestKustomizationOfAGitRepositoryIsObserved(t *testing.T) {
	git := func() *fixture.GitRepositoryBuilder {
		return fixture.MakeGitRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(fixture.Commit("1.1.0")).Ready()
	}
	applied := func(revision string) *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("web").From("GitRepository", "web").Applied(revision).Attempted(revision).Ready()
	}
	for name, tt := range map[string]struct {
		source        *fixture.GitRepositoryBuilder
		kustomization *fixture.KustomizationBuilder
		want          v1alpha1.TargetState
	}{
		"applied once it has applied the commit of the tag":   {git(), applied(fixture.Commit("1.1.0")), v1alpha1.TargetApplied},
		"pending with the commit of the tag before":           {git(), applied(fixture.Commit("1.0.0")), v1alpha1.TargetPending},
		"pending with another commit of the same tag":         {git(), applied("1.1.0@sha1:before"), v1alpha1.TargetPending},
		"pending while the source has the commit of a branch": {git().Pulled(fixture.Commit("main")), applied(fixture.Commit("main")), v1alpha1.TargetPending},
	} {
		t.Run(name, func(t *testing.T) {
			web := targets.Target{Kustomization: tt.kustomization.Obj(), Source: tt.source.Obj()}
			NewWithT(t).Expect(web.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0")).State).To(Equal(tt.want))
		})
	}
}

func TestHelmReleaseOfAGitRepositoryIsObserved(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	deployed := func(version string) *fixture.HelmReleaseBuilder {
		return fixture.MakeHelmRelease("web").FromChart("web").FromGit("web", "Revision").AttemptedAs(version, "").AttemptedAt(1).Snapshot(version, "", "deployed").Ready()
	}
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		want    v1alpha1.TargetState
		message string
	}{
		"applied once it runs the chart of the commit":        {release: deployed("1.1.0+0123456789ab"), want: v1alpha1.TargetApplied},
		"applied with values files":                           {release: deployed("1.1.0+0123456789ab.2"), want: v1alpha1.TargetApplied},
		"pending with the chart of another commit":            {release: deployed("1.1.0+ba9876543210"), want: v1alpha1.TargetPending},
		"pending with a chart that does not name its commit":  {release: deployed("1.1.0"), want: v1alpha1.TargetPending},
		"pending with a chart that has a metadata of its own": {release: deployed("1.1.0+0"), want: v1alpha1.TargetPending},
		"a conflict if nothing shows the commit": {
			release: deployed("1.1.0").FromGit("web", "ChartVersion"), want: v1alpha1.TargetConflict,
			message: "takes its chart from GitRepository web, and its status does not show of which commit: set spec.chart.spec.reconcileStrategy to Revision",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			source := fixture.MakeGitRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled("1.1.0@sha1:" + commit).Ready().Obj()
			seen := targets.Target{HelmRelease: tt.release.Obj(), Source: source}.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0"))
			g.Expect(seen.State).To(Equal(tt.want), "%s", seen.Message)
			g.Expect(seen.Message).To(Equal(tt.message))
		})
	}
}

func TestGitRepositoriesDoNotKeepARolloutFromBeingPinned(t *testing.T) {
	g := NewWithT(t)
	git := targets.Target{Repository: fixture.MakeGitRepository("web").DrivenBy("shop").Obj()}
	oci := targets.Target{Repository: fixture.MakeRepository("web").DrivenBy("shop").PinnedBy("shop").Obj(), Digests: []string{"digest"}}
	g.Expect(targets.PinnedAmong([]targets.Target{git})).To(Equal(content.NonePinned))
	g.Expect(targets.PinnedAmong([]targets.Target{git, oci})).To(Equal(content.AllPinned))
}

func TestGitRepositoryWithoutATagShowsItsBranch(t *testing.T) {
	web := targets.Target{Repository: fixture.MakeGitRepository("web").DrivenBy("shop").Ref(sourcev1.GitRepositoryRef{Branch: "main"}).Pulled(fixture.Commit("main")).Obj()}
	seen := web.BeforeHistory(content.Target{})
	NewWithT(t).Expect([]any{seen.Unset, seen.PulledTag()}).To(Equal([]any{true, "main"}))
}
