// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// measuring returns the Rollout of [shop], which selects checks by label.
func measuring() *v1alpha1.Rollout {
	rollout := running()
	rollout.UID = "of-shop"
	return rollout
}

func labelled(check *fixture.HealthCheckBuilder) *v1alpha1.HealthCheck {
	c := check.Obj()
	c.Labels = map[string]string{"app": "shop"}
	return c
}

func namesIn(checks []v1alpha1.HealthCheck) []string {
	var names []string
	for i := range checks {
		names = append(names, checks[i].Name)
	}
	return names
}

func TestTargetsThatMustBeRolledOutHaveHealthChecks(t *testing.T) {
	rate := fixture.MakeHealthCheck("rate").Prometheus("up", "value > 0")
	about := func(check *fixture.HealthCheckBuilder, kustomization string) *v1alpha1.HealthCheck {
		c := labelled(check.Kustomization())
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.KustomizationAnnotation, kustomization)
		return c
	}
	required := func(r *v1alpha1.Rollout) {
		r.Spec.TargetHealth, r.Spec.HealthCheckSelector = v1alpha1.TargetHealthRequired, nil
	}
	for name, tt := range map[string]struct {
		rollout func(*v1alpha1.Rollout)
		checks  []client.Object
		want    []string
	}{
		"nothing asks for it":           {nil, nil, nil},
		"it is required":                {required, nil, []string{"shop-kustomization-web"}},
		"something is measured":         {nil, []client.Object{labelled(rate)}, []string{"shop-kustomization-web"}},
		"it is measured without effect": {nil, []client.Object{labelled(fixture.MakeHealthCheck("rate").Prometheus("up", "value > 0").Enforced(false))}, nil},
		"what others write":             {nil, []client.Object{labelled(fixture.MakeHealthCheck("theirs").Class("datadog"))}, nil},
		"it is not selected":            {nil, []client.Object{rate.Obj()}, nil},
		"a selected check is about it":  {nil, []client.Object{labelled(rate), about(fixture.MakeHealthCheck("own"), "web")}, nil},
		"one is about another":          {nil, []client.Object{labelled(rate), about(fixture.MakeHealthCheck("own"), "api")}, []string{"shop-kustomization-web"}},
		"the one about it has no effect": {
			nil, []client.Object{labelled(rate), about(fixture.MakeHealthCheck("own").Enforced(false), "web")},
			[]string{"shop-kustomization-web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rollout := measuring()
			if tt.rollout != nil {
				tt.rollout(rollout)
			}
			objects := append(shop(), fixture.MakeKustomization("web").From("OCIRepository", "shop").Obj())
			reader := readerOf(t, append(objects, tt.checks...)...)
			s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), rollout, fixture.Noon)
			g.Expect(s.Err).NotTo(HaveOccurred())
			g.Expect(namesIn(s.TargetChecks.Missing)).To(Equal(tt.want))
			if tt.want == nil {
				g.Expect(s.Health.Problem).To(BeNil())
				return
			}
			g.Expect(s.Health.Problem).To(Equal(&verdict.Problem{
				Reason: v1alpha1.HealthCheckMissingReason,
				Message: "HealthCheck shop-prod/shop-kustomization-web, which says whether Kustomization shop-prod/web is rolled out, " +
					"does not exist yet",
			}))
		})
	}
}

// owned returns the check that the Rollout should own for the Kustomization web.
func owned(t *testing.T, rollout *v1alpha1.Rollout) *v1alpha1.HealthCheck {
	t.Helper()
	reader := readerOf(t, append(shop(), fixture.MakeKustomization("web").From("OCIRepository", "shop").Obj())...)
	asking := rollout.DeepCopy()
	asking.Spec.TargetHealth = v1alpha1.TargetHealthRequired
	s := Gatherer{Client: reader, Live: reader, InstanceLabels: []string{"shard"}}.Gather(t.Context(), asking, fixture.Noon)
	if len(s.TargetChecks.Missing) != 1 {
		t.Fatalf("it lacks %d checks", len(s.TargetChecks.Missing))
	}
	return &s.TargetChecks.Missing[0]
}

func TestOwnedHealthChecksCountForTheirRolloutAlone(t *testing.T) {
	g := NewWithT(t)
	rollout := measuring()
	check := owned(t, rollout)
	check.Labels = map[string]string{"app": "shop"} // as users may add
	other := measuring()
	other.Name, other.UID = "other", "of-other"

	rollout.Spec.TargetHealth = v1alpha1.TargetHealthRequired
	reader := readerOf(t, append(shop(), fixture.MakeKustomization("web").From("OCIRepository", "shop").Obj(), check, rollout, other)...)
	gather := func(of *v1alpha1.Rollout) Snapshot {
		return Gatherer{Client: reader, Live: reader}.Gather(t.Context(), of, fixture.Noon)
	}
	s := gather(rollout)
	g.Expect(s.TargetChecks).To(BeZero())
	g.Expect(namesIn(s.Health.Checks)).To(Equal([]string{"web", "shop-kustomization-web"}))
	g.Expect(namesIn(gather(other).Health.Checks)).To(Equal([]string{"web"}))

	for of, want := range map[*v1alpha1.Rollout]bool{rollout: true, other: false} {
		got, err := Selects(t.Context(), reader, of, check)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want), of.Name)
	}
	of, err := RolloutsOfCheck(t.Context(), reader, check)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(of).To(ConsistOf(HaveField("Name", "shop")))

	reborn := rollout.DeepCopy()
	reborn.UID = "reborn"
	of, err = RolloutsOfCheck(t.Context(), readerOf(t, reborn), check)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(of).To(BeEmpty(), "it belongs to the Rollout that was deleted")
}

func TestOwnedHealthChecksAreKeptAsTheyShouldBe(t *testing.T) {
	rollout := measuring()
	rollout.Labels = map[string]string{"shard": "one", "team": "web"}
	for name, tt := range map[string]struct {
		change func(*v1alpha1.HealthCheck)
		again  bool
	}{
		"as created":              {func(*v1alpha1.HealthCheck) {}, false},
		"about a chart as well":   {func(c *v1alpha1.HealthCheck) { c.Annotations[v1alpha1.HelmReleaseAnnotation] = "web" }, true},
		"with more labels":        {func(c *v1alpha1.HealthCheck) { c.Labels["more"] = "yes" }, false},
		"about another":           {func(c *v1alpha1.HealthCheck) { c.Annotations[v1alpha1.KustomizationAnnotation] = "api" }, true},
		"with more in its spec":   {func(c *v1alpha1.HealthCheck) { c.Spec.AccessFrom = &v1alpha1.AccessFrom{} }, false},
		"without effect":          {func(c *v1alpha1.HealthCheck) { no := false; c.Spec.Enforce = &no }, true},
		"of another instance":     {func(c *v1alpha1.HealthCheck) { c.Labels["shard"] = "two" }, true},
		"of no instance":          {func(c *v1alpha1.HealthCheck) { c.Labels = nil }, true},
		"evaluated by another":    {func(c *v1alpha1.HealthCheck) { c.Spec.Class = nil }, true},
		"and with a mark of ours": {func(c *v1alpha1.HealthCheck) { c.Annotations[v1alpha1.ResetAnnotationPrefix+"of-shop"] = "1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asking := rollout.DeepCopy()
			asking.Spec.TargetHealth = v1alpha1.TargetHealthRequired
			check := owned(t, rollout)
			g.Expect(check.Labels).To(Equal(map[string]string{"shard": "one"}))
			right := check.DeepCopy()
			tt.change(check)
			reader := readerOf(t, append(shop(), fixture.MakeKustomization("web").From("OCIRepository", "shop").Obj(), check)...)
			s := Gatherer{Client: reader, Live: reader, InstanceLabels: []string{"shard"}}.Gather(t.Context(), asking, fixture.Noon)
			g.Expect(len(s.TargetChecks.Missing) == 1).To(Equal(tt.again))
			if tt.again {
				g.Expect(Correct(check, right)).To(BeTrue())
				g.Expect(Correct(check, right)).To(BeFalse())
			}
		})
	}
}

func TestHelmReleasesThatMustBeRolledOutHaveHealthChecks(t *testing.T) {
	g := NewWithT(t)
	rollout := measuring()
	rollout.Spec.TargetHealth = v1alpha1.TargetHealthRequired
	reader := readerOf(t, append(shop(), fixture.MakeHelmRelease("web").From("OCIRepository", "shop").Obj())...)
	g.Expect(targets.IndexHelmReleases(t.Context(), reader)).To(Succeed())
	s := Gatherer{Client: reader, Live: reader, HelmReleases: true}.Gather(t.Context(), rollout, fixture.Noon)
	g.Expect(s.Err).NotTo(HaveOccurred())
	g.Expect(namesIn(s.TargetChecks.Missing)).To(Equal([]string{"shop-helmrelease-web"}))
	g.Expect(s.TargetChecks.Missing[0].Annotations).To(Equal(map[string]string{v1alpha1.HelmReleaseAnnotation: "web"}))
}

func TestHealthChecksThatNothingAsksForAreSurplus(t *testing.T) {
	g := NewWithT(t)
	rollout := measuring()
	objects := slices.Concat(shop(), []client.Object{fixture.MakeKustomization("web").From("OCIRepository", "shop").Obj(), owned(t, rollout)})
	reader := readerOf(t, objects...)
	s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), rollout, fixture.Noon)
	g.Expect(namesIn(s.TargetChecks.Surplus)).To(Equal([]string{"shop-kustomization-web"}))
	g.Expect(namesIn(s.Health.Checks)).To(Equal([]string{"web"}))
}

// What an environment says of its releases rests on the checks that its Rollout owns as well.
func TestOwnedHealthChecksCountForAnEnvironment(t *testing.T) {
	g := NewWithT(t)
	rollout := measuring()
	check := owned(t, rollout)
	view := func(cached, live v1alpha1.HealthStatus) (seen, confirmed string) {
		said := func(status v1alpha1.HealthStatus) client.Object {
			said := check.DeepCopy()
			said.Status.Status = status
			return said
		}
		gatherer := Gatherer{Client: readerOf(t, rollout, said(cached)), Live: readerOf(t, rollout, said(live))}
		v, err := gatherer.EnvironmentView(t.Context(), rollout, nil)
		g.Expect(err).NotTo(HaveOccurred())
		l, err := gatherer.liveView(t.Context(), rollout, nil)
		g.Expect(err).NotTo(HaveOccurred())
		return v.Unhealthy, l.Unhealthy
	}
	named := "HealthCheck shop-prod/shop-kustomization-web"
	seen, confirmed := view(v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthStatusUnhealthy)
	g.Expect([]string{seen, confirmed}).To(Equal([]string{named, named}))
	seen, confirmed = view(v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusUnhealthy)
	g.Expect([]string{seen, confirmed}).To(Equal([]string{"", named}), "before a proof counts, it is asked past the caches")
}
