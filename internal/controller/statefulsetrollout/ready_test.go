// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestReplicaThatDoesNotLeadIsReady gives the Lease to another holder.
func TestReplicaThatDoesNotLeadIsReady(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	other, seconds, now := "other", int32(3600), metav1.NowMicro()
	s.Expect(s.Create(s.Ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "leader"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	})).To(Succeed())
	mgr, err := ctrl.NewManager(testPlane.RESTConfig(), ctrl.Options{
		Scheme: clientgoscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: fixture.ControllerConfig(),
		Cache:          cache.Options{ByObject: CacheByObject(), DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}},
		LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: s.Namespace,
	})
	s.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{Client: mgr.GetClient(), APIReader: s.Live(mgr, cache.Options{ByObject: CacheByObject()}), Events: s.Events, Now: time.Now}
	s.Expect(r.SetupWithManager(s.Ctx, mgr, controller.Options{})).To(Succeed())
	endpoint := Ready(mgr.GetCache())
	answer := func() int {
		recorder := httptest.NewRecorder()
		endpoint.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return recorder.Code
	}
	s.Expect(answer()).To(Equal(http.StatusServiceUnavailable), "before it has begun")

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		s.Expect(<-done).To(Succeed())
	})
	s.Eventually(answer).Should(Equal(http.StatusOK))
	s.release("2.0.0", "zone-a")
	s.Consistently(s.Events.All).Should(BeEmpty(), "it does not lead")
}
