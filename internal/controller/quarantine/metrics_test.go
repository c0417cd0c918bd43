// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// phases returns how many quarantines are counted by phase, without zeros.
func phases(t *testing.T, counted *metrics.Quarantines) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(counted)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		if value := metric.GetGauge().GetValue(); value != 0 {
			all[metric.GetLabel()[0].GetValue()] = value
		}
	}
	return all
}

func TestQuarantineIsCountedByThePhaseThatIsStored(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	q := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "recall", Labels: map[string]string{"shard": "a"}},
		Spec:       v1alpha1.ReleaseQuarantineSpec{Image: "ghcr.io/acme/shop", Tags: []string{"1.2.0"}},
	}
	var down error
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(q).WithStatusSubresource(q).Build(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if down != nil {
				return down
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	})
	clock, counted := fixture.Clock{}, metrics.NewQuarantines()
	r := &Reconciler{Client: c, Now: clock.Now, Metrics: counted}
	reconcile := func() error {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		return err
	}

	down = errors.New("the API server is away")
	g.Expect(reconcile()).To(MatchError(down))
	g.Expect(phases(t, counted)).To(BeEmpty(), "nothing is stored")
	down = nil
	g.Expect(reconcile()).To(Succeed())
	g.Expect(phases(t, counted)).To(Equal(map[string]float64{"Held": 1}))
	g.Expect(reconcile()).To(Succeed())
	g.Expect(phases(t, counted)).To(Equal(map[string]float64{"Held": 1}), "it counts once")

	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(q), q)).To(Succeed())
	q.Spec.Until = &metav1.Time{Time: clock.Now().Add(-time.Hour)}
	g.Expect(c.Update(t.Context(), q)).To(Succeed())
	g.Expect(reconcile()).To(Succeed())
	g.Expect(phases(t, counted)).To(Equal(map[string]float64{"Ended": 1}))

	r.Shard = shard.Shard{Selector: labels.SelectorFromSet(labels.Set{"shard": "b"})}
	g.Expect(reconcile()).To(Succeed())
	g.Expect(phases(t, counted)).To(BeEmpty(), "another instance counts it now")
	r.Shard = shard.Shard{}
	g.Expect(reconcile()).To(Succeed())
	g.Expect(c.Delete(t.Context(), q)).To(Succeed())
	g.Expect(reconcile()).To(Succeed())
	g.Expect(phases(t, counted)).To(BeEmpty(), "it is gone")
}
