// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"context"
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/acl"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var shop = types.NamespacedName{Namespace: fixture.Namespace, Name: "shop"}

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(imagev1.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(corev1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// offer contains the fields of a promotion.Policy that matter.
type offer struct {
	Latest   *v1alpha1.VersionInfo
	Scanned  []string
	Problem  *verdict.Problem
	Blocking bool
}

func offerOf(p releases.Policy) offer { return offer{p.Latest, p.Scanned, p.Problem, p.Blocking} }

func latest(tag string) *v1alpha1.VersionInfo { return &v1alpha1.VersionInfo{Tag: tag} }

func problem(reason, message string) *verdict.Problem {
	return &verdict.Problem{Reason: reason, Message: message}
}

func TestScanIsCompleteIfItShowsEveryTag(t *testing.T) {
	all, some := fixture.MakeScan("shop").Found("1.1.0", "1.0.0").Obj(), fixture.MakeScan("shop").Found("1.1.0", "1.0.0").Obj()
	some.Status.LastScanResult.TagCount = 11 // Flux shows at most ten
	for name, tt := range map[string]struct {
		objects []client.Object
		want    bool
	}{
		"as many as there are": {[]client.Object{all}, true},
		"fewer":                {[]client.Object{some}, false},
		"no scan yet":          {[]client.Object{fixture.MakeScan("shop").Obj()}, false},
		"no ImageRepository":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := imagepolicy.Reader{Client: cluster(t, append(tt.objects, fixture.MakePolicy("shop").Latest("1.1.0").Obj())...)}.Read(t.Context(), shop)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Complete).To(Equal(tt.want))
		})
	}
}

func TestOfferedReleases(t *testing.T) {
	digest := "sha256:1"
	scan := fixture.MakeScan("shop").Found("1.1.0", "1.0.0").Obj()
	scanned := []string{"1.1.0", "1.0.0"}
	for name, tt := range map[string]struct {
		objects []client.Object
		want    offer
	}{
		"its latest release and what the last scan showed": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Latest("1.1.0").Obj()},
			want:    offer{Latest: latest("1.1.0"), Scanned: scanned},
		},
		"the digest, where Flux reflects it": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Latest("1.1.0").Digest(digest).Obj()},
			want:    offer{Latest: &v1alpha1.VersionInfo{Tag: "1.1.0", Digest: &digest}, Scanned: scanned},
		},
		"no release before it was evaluated": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Obj()},
			want:    offer{Scanned: scanned},
		},
		"what it named before while it is not ready": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Latest("1.1.0").NotReady("no tags in database").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: scanned,
				Problem: problem("ImagePolicyNotReady", "ImagePolicy shop is not ready: no tags in database")},
		},
		"no complaint if it was looked at before the first scan": {
			objects: []client.Object{fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").WaitsForScan().Obj()},
		},
		"nor before Flux had the tags again after a restart": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Latest("1.1.0").WaitsForScan().Obj()},
			want:    offer{Latest: latest("1.1.0"), Scanned: scanned},
		},
		"that the registry has no tags at all": {
			objects: []client.Object{fixture.MakeScan("shop").Found().Obj(), fixture.MakePolicy("shop").WaitsForScan().Obj()},
			want: offer{Problem: problem("ImagePolicyNotReady",
				"ImagePolicy shop is not ready: retrying in 30s error: no tags in database")},
		},
		"nothing if it does not exist, and that blocks": {
			objects: []client.Object{scan},
			want: offer{Blocking: true, Problem: problem("ImagePolicyNotFound",
				"ImagePolicy shop-prod/shop does not exist: create it in this namespace, or correct spec.releasesImagePolicy.name")},
		},
		"nothing if its range cannot be parsed, and that blocks": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Semver("newest").Latest("1.1.0").Obj()},
			want: offer{Blocking: true, Problem: problem("InvalidImagePolicy",
				`ImagePolicy shop-prod/shop cannot be used: semver range "newest": improper constraint: "newest"`)},
		},
		"nothing if its filter cannot be parsed, and that blocks": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Filter("(", "").Latest("1.1.0").Obj()},
			want: offer{Blocking: true, Problem: problem("InvalidImagePolicy",
				"ImagePolicy shop-prod/shop cannot be used: filterTags.pattern: error parsing regexp: missing closing ): `(`")},
		},
		"no release that is none under semver": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Latest("latest").Obj()},
			want: offer{Scanned: scanned, Problem: problem("InvalidReleaseTag",
				`ImagePolicy shop orders by semver but names tag "latest", which is not a semantic version: correct its range or filterTags`)},
		},
		"a release that becomes semver by its filter": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Filter("^web-(?P<v>.*)$", "$v").Latest("web-1.1.0").Obj()},
			want:    offer{Latest: latest("web-1.1.0"), Scanned: scanned},
		},
		"any release under another order": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Alphabetical("asc").Latest("latest").Obj()},
			want:    offer{Latest: latest("latest"), Scanned: scanned},
		},
		"its release while its ImageRepository is missing": {
			objects: []client.Object{fixture.MakePolicy("shop").Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Problem: problem("ImagePolicyNotReady",
				"ImageRepository shop-prod/shop does not exist: create it, or correct spec.imageRepositoryRef of ImagePolicy shop")},
		},
		"its release and the last scan while the registry cannot be reached": {
			objects: []client.Object{
				fixture.MakeScan("shop").Found("1.1.0", "1.0.0").NotReady("no route to host").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: scanned, Problem: problem("ImagePolicyNotReady",
				"ImageRepository shop-prod/shop cannot scan the registry: no route to host; check its spec.image, the registry and its credentials")},
		},
		"the cause rather than what follows from it": {
			objects: []client.Object{
				fixture.MakeScan("shop").NotReady("no route to host").Obj(), fixture.MakePolicy("shop").NotReady("no tags").Obj()},
			want: offer{Problem: problem("ImagePolicyNotReady", "ImageRepository shop-prod/shop cannot scan the registry: "+
				"no route to host; check its spec.image, the registry and its credentials")},
		},
		"its release while its ImageRepository is suspended": {
			objects: []client.Object{
				fixture.MakeScan("shop").Suspended().Found("1.1.0", "1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: scanned, Problem: problem("Suspended",
				"ImageRepository shop is suspended: new releases are not seen; resume it")},
		},
		"that a suspended ImageRepository is the cause, rather than what it reports": {
			objects: []client.Object{
				fixture.MakeScan("shop").Suspended().Found("1.1.0").NotReady("no route to host").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").NotReady("stale").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: []string{"1.1.0"}, Problem: problem("Suspended",
				"ImageRepository shop is suspended: new releases are not seen; resume it")},
		},
		"its release while it is suspended": {
			objects: []client.Object{scan, fixture.MakePolicy("shop").Suspended().Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: scanned, Problem: problem("Suspended",
				"ImagePolicy shop is suspended: new releases are not seen; resume it")},
		},
		"its release while both are suspended": {
			objects: []client.Object{
				fixture.MakeScan("shop").Suspended().Found("1.1.0", "1.0.0").Obj(), fixture.MakePolicy("shop").Suspended().Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: scanned, Problem: problem("Suspended",
				"ImageRepository shop is suspended: new releases are not seen; resume it; ImagePolicy shop is suspended: new releases are not seen; resume it")},
		},
		"its release while its ImageRepository in another namespace is suspended": {
			objects: []client.Object{
				fixture.MakeScan("web").InNamespace("registry").Suspended().AccessFrom(nil).Found("1.1.0").Obj(), home(nil),
				fixture.MakePolicy("shop").Of("registry", "web").Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: []string{"1.1.0"}, Problem: problem("Suspended",
				"ImageRepository registry/web is suspended: new releases are not seen; resume it")},
		},
		"what an ImageRepository of another namespace shows, which lets it in": {
			objects: []client.Object{
				fixture.MakeScan("web").InNamespace("registry").AccessFrom(nil).Found("1.1.0").Obj(), home(nil),
				fixture.MakePolicy("shop").Of("registry", "web").Latest("1.1.0").Obj()},
			want: offer{Latest: latest("1.1.0"), Scanned: []string{"1.1.0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := imagepolicy.Reader{Client: cluster(t, tt.objects...)}.Read(t.Context(), shop)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Name).To(Equal("shop"))
			g.Expect(offerOf(got.Policy)).To(Equal(tt.want))
		})
	}
}

func TestOrderOfAnImagePolicy(t *testing.T) {
	for name, tt := range map[string]struct {
		policy *fixture.PolicyBuilder
		kind   releases.OrderKind
		newer  []string // of each pair, the second is the newer one
		admits map[string]bool
	}{
		"semver": {
			policy: fixture.MakePolicy("shop").Semver("1.x"), kind: releases.BySemver,
			newer: []string{"1.9.0", "1.10.0"}, admits: map[string]bool{"1.2.3": true, "2.0.0": false, "latest": false},
		},
		"semver of a part of the tag": {
			policy: fixture.MakePolicy("shop").Semver("*").Filter("^web-(.*)$", "$1"), kind: releases.BySemver,
			newer: []string{"web-1.9.0", "web-1.10.0"}, admits: map[string]bool{"web-1.2.3": true, "1.2.3": false},
		},
		"numerical": {
			policy: fixture.MakePolicy("shop").Numerical("asc"), kind: releases.ByNumber, newer: []string{"9", "10"},
		},
		"numerical, descending": {
			policy: fixture.MakePolicy("shop").Numerical("desc"), kind: releases.ByNumber, newer: []string{"10", "9"},
		},
		"alphabetical": {
			policy: fixture.MakePolicy("shop").Alphabetical("asc"), kind: releases.ByAlphabet, newer: []string{"10", "9"},
		},
		"alphabetical, descending": {
			policy: fixture.MakePolicy("shop").Alphabetical("desc"), kind: releases.ByAlphabet, newer: []string{"9", "10"},
		},
		"none": {
			policy: fixture.MakePolicy("shop").Unordered(), kind: releases.ByAppearance, admits: map[string]bool{"anything": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := imagepolicy.Reader{Client: cluster(t, fixture.MakeScan("shop").Obj(), tt.policy.Obj())}.Read(t.Context(), shop)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Order.Kind()).To(Equal(tt.kind))
			if tt.newer != nil {
				result, ok := got.Order.Compare(tt.newer[1], tt.newer[0])
				g.Expect(ok).To(BeTrue())
				g.Expect(result).To(Equal(1))
			}
			for tag, admitted := range tt.admits {
				g.Expect(got.Order.Admits(tag)).To(Equal(admitted), tag)
			}
		})
	}
}

func TestReadErrorIsAProblemAndAnError(t *testing.T) {
	broken := errors.New("broken")
	failing := func(kind client.Object) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := kind.(*imagev1.ImagePolicy); ok == isPolicy(o) {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		}}
	}
	objects := []client.Object{fixture.MakeScan("shop").Found("1.1.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj()}
	for name, tt := range map[string]struct {
		kind  client.Object
		want  offer
		fails string
	}{
		"the policy": {
			kind: &imagev1.ImagePolicy{}, fails: "get ImagePolicy shop-prod/shop: broken",
			want: offer{Blocking: true, Problem: problem("ImagePolicyUnreadable", "ImagePolicy shop-prod/shop could not be read")},
		},
		"the repository": {
			kind: &imagev1.ImageRepository{}, fails: "get ImageRepository shop-prod/shop: broken",
			want: offer{Latest: latest("1.1.0"), Problem: problem("ImagePolicyNotReady", "ImageRepository shop-prod/shop could not be read")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := imagepolicy.Reader{Client: interceptor.NewClient(cluster(t, objects...), failing(tt.kind))}.Read(t.Context(), shop)
			g.Expect(err).To(MatchError(tt.fails))
			g.Expect(offerOf(got.Policy)).To(Equal(tt.want))
		})
	}
}

func isPolicy(o client.Object) bool {
	_, ok := o.(*imagev1.ImagePolicy)
	return ok
}

// home returns the namespace of the policy.
func home(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace, Labels: labels}}
}

func TestForeignImageRepositoryThatLetsNobodyInShowsNothing(t *testing.T) {
	denied := offer{
		Latest: latest("1.1.0"), Blocking: true,
		Problem: problem("AccessDenied", "ImagePolicy shop-prod/shop may not use ImageRepository registry/web: "+
			"it does not exist, or its spec.accessFrom does not let in namespace shop-prod; "+
			"correct spec.imageRepositoryRef, or have the namespace added to spec.accessFrom"),
	}
	scan := func() *fixture.ScanBuilder {
		return fixture.MakeScan("web").InNamespace("registry").Found("1.1.0", "1.0.0").NotReady("registry.internal: no route to host")
	}
	for name, repository := range map[string][]client.Object{
		"no such ImageRepository":       nil,
		"one without accessFrom":        {scan().Obj()},
		"one that lets others in":       {scan().AccessFrom(map[string]string{"tier": "production"}).Obj()},
		"one whose accessFrom has none": {letsNobodyIn(scan().Obj())},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := fixture.MakePolicy("shop").Of("registry", "web").Latest("1.1.0").NotReady("what Flux says of it").Obj()
			objects := append(repository, policy, home(map[string]string{"tier": "staging"}))
			got, err := imagepolicy.Reader{Client: cluster(t, objects...)}.Read(t.Context(), shop)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(offerOf(got.Policy)).To(Equal(denied))
			g.Expect(got.Repository).To(BeNil())
			g.Expect(got.Complete).To(BeFalse())
		})
	}
}

func letsNobodyIn(repository *imagev1.ImageRepository) *imagev1.ImageRepository {
	repository.Spec.AccessFrom = &acl.AccessFrom{}
	return repository
}

func TestNamespacesThatCannotBeReadRevealNothingOfImageRepositories(t *testing.T) {
	for name, repository := range map[string][]client.Object{
		"there is none": nil,
		"there is one":  {fixture.MakeScan("web").InNamespace("registry").AccessFrom(nil).Found("1.1.0").Obj()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := fixture.MakePolicy("shop").Of("registry", "web").Latest("1.1.0").Obj()
			got, err := imagepolicy.Reader{Client: cluster(t, append(repository, policy)...)}.Read(t.Context(), shop)
			g.Expect(err).To(MatchError(ContainSubstring("get Namespace shop-prod: ")))
			g.Expect(offerOf(got.Policy)).To(Equal(offer{
				Latest: latest("1.1.0"), Problem: problem("ImagePolicyNotReady", "ImageRepository registry/web could not be read"),
			}))
		})
	}
}

func TestImageRepositoryIsForItsOwnNamespaceAndThoseThatItLetsIn(t *testing.T) {
	staging := map[string]string{"tier": "staging"}
	scan := func() *fixture.ScanBuilder { return fixture.MakeScan("web").InNamespace("registry") }
	for name, tt := range map[string]struct {
		scan *fixture.ScanBuilder
		want bool
	}{
		"its own":                     {fixture.MakeScan("web"), true},
		"another one":                 {scan(), false},
		"another one that it lets in": {scan().AccessFrom(staging), true},
		"any that it lets in":         {scan().AccessFrom(nil), true},
		"another than it lets in":     {scan().AccessFrom(map[string]string{"tier": "production"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			repository := tt.scan.Obj()
			policy := fixture.MakePolicy("shop").Of(repository.Namespace, "web").Latest("1.1.0").Obj()
			got, err := imagepolicy.Reader{Client: cluster(t, repository, policy, home(staging))}.Read(t.Context(), shop)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Repository != nil).To(Equal(tt.want))
			g.Expect(got.Latest).To(Equal(latest("1.1.0")), "what Flux says of it is not ours to hide")
		})
	}
}
