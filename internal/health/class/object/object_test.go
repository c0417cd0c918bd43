// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/object"
)

func named(name string) v1alpha1.ObjectSpec {
	return v1alpha1.ObjectSpec{APIVersion: helmv2.GroupVersion.String(), Kind: "HelmRelease", Name: name}
}

func selected(minimum *int32) v1alpha1.ObjectSpec {
	spec := named("")
	spec.Selector, spec.Minimum = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, minimum
	return spec
}

func TestPhasesOfAllObjectsMakeTheOutcome(t *testing.T) {
	for name, tt := range map[string]struct {
		spec    v1alpha1.ObjectSpec
		objects []client.Object
		want    health.Outcome
	}{
		"one that is current":     {named("web"), []client.Object{current("web")}, health.Good("1/1", "HelmRelease web is Current")},
		"one that is rolling out": {named("web"), []client.Object{rolling("web")}, health.NoData("0/1", "HelmRelease web is Progressing")},
		"one that has failed":     {named("web"), []client.Object{failed("web")}, health.Bad("0/1", "HelmRelease web is Failed")},
		"one that is gone":        {named("web"), nil, health.Bad("0/1", "HelmRelease web does not exist")},
		"one of another namespace": {named("web"), []client.Object{release("web", metav1.ConditionTrue, func(r *helmv2.HelmRelease) { r.Namespace = "other" })},
			health.Bad("0/1", "HelmRelease web does not exist")},
		"one whose status is of an older generation": {named("web"), []client.Object{release("web", metav1.ConditionTrue, outdated)},
			health.NoData("0/1", "HelmRelease web is Progressing")},
		"one that is being deleted": {named("web"), []client.Object{release("web", metav1.ConditionTrue, doomed)},
			health.NoData("0/1", "HelmRelease web is Terminating")},
		"all are current": {selected(ptr.To(int32(2))), []client.Object{current("web"), current("api"), current("job")},
			health.Good("3/3", "all of kind HelmRelease are Current")},
		"a failure outweighs what is rolling out and what is missing": {selected(ptr.To(int32(9))), []client.Object{current("web"), failed("api"), rolling("job")},
			health.Bad("1/9", "HelmRelease api is Failed")},
		"too few": {selected(ptr.To(int32(3))), []client.Object{current("web"), rolling("api")},
			health.Bad("1/3", "the selector selects 2 of kind HelmRelease, and spec.object.minimum is 3")},
		"none, and one is needed by default": {selected(nil), nil,
			health.Bad("0/1", "the selector selects 0 of kind HelmRelease, and spec.object.minimum is 1")},
		"none, and none is needed": {selected(ptr.To(int32(0))), nil, health.Good("0/0", "there is no HelmRelease, and none is needed")},
		"one without the labels does not count": {selected(nil), []client.Object{current("web"), release("api", metav1.ConditionFalse, stalled, func(r *helmv2.HelmRelease) { r.Labels = nil })},
			health.Good("1/1", "all of kind HelmRelease are Current")},
		"those that are not current are named in a fixed order": {selected(nil),
			[]client.Object{rolling("g"), rolling("f"), rolling("e"), rolling("d"), rolling("c"), release("b", metav1.ConditionTrue, doomed), current("a")},
			health.NoData("1/7", "HelmRelease b is Terminating, c is Progressing, d is Progressing, e is Progressing, f is Progressing, and 1 more")},
	} {
		t.Run(name, func(t *testing.T) {
			got := open(t, tt.objects...).measure(tt.spec)
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

// An object may come some seconds after the release, for example by an operator.
func TestObjectsThatWereNeverSeenAreNotMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		spec    v1alpha1.ObjectSpec
		objects []client.Object
		want    health.Outcome
		exist   bool
	}{
		"one":           {named("web"), nil, health.NoData("0/1", "HelmRelease web does not exist; waiting for it"), false},
		"some":          {selected(ptr.To(int32(2))), []client.Object{current("web")}, health.NoData("1/2", "the selector selects 1 of kind HelmRelease, and spec.object.minimum is 2; waiting for it"), false},
		"one of failed": {selected(ptr.To(int32(2))), []client.Object{failed("web")}, health.Bad("0/2", "HelmRelease web is Failed"), false},
		"all":           {named("web"), []client.Object{rolling("web")}, health.NoData("0/1", "HelmRelease web is Progressing"), true},
		"none needed":   {selected(ptr.To(int32(0))), nil, health.Good("0/0", "there is no HelmRelease, and none is needed"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, exist := open(t, tt.objects...).measureAfter(tt.spec, false)
			g.Expect(got).To(Equal(tt.want))
			g.Expect(exist).To(Equal(tt.exist))
		})
	}
}

// A Deployment that is paused before all its pods have its template is not current: kstatus
// is corrected as for the class kustomization.
func TestCorrectionsOfKstatusApply(t *testing.T) {
	c := open(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(int32(2)), Paused: true},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 2},
	})
	spec := v1alpha1.ObjectSpec{APIVersion: "apps/v1", Kind: "Deployment", Selector: &metav1.LabelSelector{}}
	c.Expect(c.measure(spec)).To(Equal(health.NoData("0/1", "Deployment web is Held")))
}

func TestObjectsAreReadInPages(t *testing.T) {
	c := open(t)
	for n := range 250 {
		c.objects = append(c.objects, current(fmt.Sprintf("web-%03d", n)))
	}
	c.Expect(c.measure(selected(nil))).To(Equal(health.Good("250/250", "all of kind HelmRelease are Current")))
	const list = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases?"
	c.Expect(c.asked).To(Equal([]string{
		list + "labelSelector=app%3Dshop&limit=100", list + "continue=100&labelSelector=app%3Dshop&limit=100", list + "continue=200&labelSelector=app%3Dshop&limit=100",
	}))
}

func TestAtMostAThousandObjectsAreRead(t *testing.T) {
	c := open(t)
	for n := range 1500 {
		c.objects = append(c.objects, current(fmt.Sprintf("web-%04d", n)))
	}
	c.Expect(c.measure(selected(nil))).To(Equal(health.Unobserved(
		"more than 1000 helmreleases.helm.toolkit.fluxcd.io are selected: select fewer with spec.object.selector")))
	c.Expect(c.asked).To(HaveLen(11))
}

func TestWhatCannotBeReadIsNoVerdict(t *testing.T) {
	resource := schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}
	for name, tt := range map[string]struct {
		refuse *apierrors.StatusError
		spec   v1alpha1.ObjectSpec
		want   health.Outcome
	}{
		"it may not be read": {apierrors.NewForbidden(resource, "web", nil), named("web"),
			health.Invalid("this controller may not read helmreleases.helm.toolkit.fluxcd.io: let the ClusterRole health-reader-role get and list them")},
		"the API server is slow": {apierrors.NewTimeoutError(marker, 1), selected(nil), health.Unobserved("the API server did not answer in time")},
		"the API server is broken": {apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", resource, "web", marker, 0, true), named("web"),
			health.Unobserved("the API server could not be asked; trying again")},
		"the kind is not served": {nil, v1alpha1.ObjectSpec{APIVersion: "example.com/v1", Kind: "Widget", Name: "web"},
			health.Unobserved("the API server serves no Widget.example.com: install it, or correct spec.object")},
		"the kind is not namespaced": {nil, v1alpha1.ObjectSpec{APIVersion: "v1", Kind: "Node", Name: "one"},
			health.Invalid("spec.object.kind: Node is not namespaced: only objects of the HealthCheck's namespace can be checked")},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			c.refuse = tt.refuse
			c.Expect(c.measure(tt.spec)).To(Equal(tt.want))
		})
	}
}

func TestSpecIsCheckedWithoutTheAPIServer(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*v1alpha1.ObjectSpec)
		want   string
	}{
		"a Secret": {func(s *v1alpha1.ObjectSpec) { s.APIVersion, s.Kind = "v1", "Secret" }, "spec.object.kind: Secrets cannot be checked"},
		"a Rollout": {func(s *v1alpha1.ObjectSpec) { s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), "Rollout" },
			"spec.object.apiVersion: objects of kuberik.com cannot be checked: a Rollout would wait for itself"},
		"no version": {func(s *v1alpha1.ObjectSpec) { s.APIVersion = "a/b/c" }, "spec.object.apiVersion: unexpected GroupVersion string: a/b/c"},
		"a selector that selects nothing": {func(s *v1alpha1.ObjectSpec) {
			s.Name, s.Selector = "", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		}, `spec.object.selector: "Like" is not a valid label selector operator`},
		"a name and a selector": {func(s *v1alpha1.ObjectSpec) { s.Selector = &metav1.LabelSelector{} }, "spec.object: give either name or selector"},
		"no current":            {func(s *v1alpha1.ObjectSpec) { s.Failed = "true" }, "spec.object.current: it is required with failed or inProgress"},
		"no expression":         {func(s *v1alpha1.ObjectSpec) { s.Current = "status.phase = 'Ready'" }, "spec.object.current: Syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := named("web")
			tt.change(&spec)
			_, err := object.Compile(&spec)
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(tt.want)))
		})
	}
}

func TestNothingOfAnObjectIsShownButItsNameAndPhase(t *testing.T) {
	for _, expression := range []string{"", "status.conditions[0].message", "int(status.conditions[0].message) > 1", "status.nothing", "[1][size(metadata.name)]"} {
		for _, o := range []client.Object{current("web"), rolling("web"), failed("web")} {
			spec := named("web")
			spec.Current = expression
			c := open(t, o)
			got := c.measure(spec)
			c.Expect(strings.ToLower(got.Message+got.Value)).NotTo(ContainSubstring("show"), "%s", expression)
		}
	}
}
