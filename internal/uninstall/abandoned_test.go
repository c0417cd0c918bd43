// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

func waiting(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{v1.HeldByAnnotation: "shop"}}}
	d.Spec.Paused = true
	for _, c := range change {
		c(d)
	}
	return d
}

// program returns a Deployment of this program as a reader of this package keeps it.
func program(name string, args ...string) *appsv1.Deployment {
	return programIn("system", name, args...)
}

// programIn returns one in a namespace, such as that of a tenant who only pretends.
func programIn(namespace, name string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Template.Labels = installation.PodLabels
	d.Spec.Template.Spec.ServiceAccountName = "controller"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Args: args}}
	reduce(d)
	return d
}

func TestAbandonedUnpauses(t *testing.T) {
	byHand := func(d *appsv1.Deployment) { d.Annotations[v1.RolloutPausedAnnotation] = v1.RolloutPausedValue }
	for name, tt := range map[string]struct {
		others []client.Object
		gone   bool
		want   []string
	}{
		"what waits": {nil, false, []string{"a"}},
		"not while another Deployment coordinates": {[]client.Object{program("other")}, false, nil},
		"next to itself": {[]client.Object{program("self")}, false, []string{"a"}},
		"next to a look-alike whose account may do nothing of it": {[]client.Object{programIn("evil", "other")}, false, []string{"a"}},
		"not next to one in its own namespace":                    {[]client.Object{programIn("shop", "other")}, false, nil},
		"next to one that leaves the coordinator out":             {[]client.Object{program("other", "--controllers=*,-deploymentcoordination")}, false, []string{"a"}},
		"without the kind, which nobody could coordinate":         {[]client.Object{program("other")}, true, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(tt.others, waiting("a"), waiting("b", byHand))...).
				WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()
			a := &Abandoned{
				Client: c, Deployments: c, Because: "a test", Gone: tt.gone, Policy: "hold",
				Self: types.NamespacedName{Namespace: "system", Name: "self"}, Clock: clock.RealClock{},
			}
			if err := a.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := unpaused(t, c); !slices.Equal(got, tt.want) {
				t.Errorf("unpaused are %v, want %v", got, tt.want)
			}
		})
	}
}

// review answers as if the account of this program could patch all Deployments.
func review(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
	r := o.(*authorizationv1.SubjectAccessReview)
	asked := *r.Spec.ResourceAttributes == authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "deployments"}
	r.Status.Allowed = asked && r.Spec.User == "system:serviceaccount:system:controller" && slices.Contains(r.Spec.Groups, "system:serviceaccounts:system")
	return nil
}

// unpaused returns the Deployments of the shop that are not paused.
func unpaused(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := c.List(t.Context(), list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		if !d.Spec.Paused && d.Name != "other" {
			names = append(names, d.Name)
		}
	}
	return names
}
