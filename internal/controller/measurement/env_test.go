// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/pool"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	healthy   = v1alpha1.HealthStatusHealthy
	unhealthy = v1alpha1.HealthStatusUnhealthy
	pending   = v1alpha1.HealthStatusPending

	// shift is more than what the first measurement of a HealthCheck is shifted by.
	shift = 10 * time.Second
	// interval is the time between two measurements, and delay that before the first one
	// after a reset, for the class prometheus.
	interval, delay = 30 * time.Second, time.Minute
)

// promotedAt is when the current promotion of every Rollout of the tests was recorded.
var promotedAt = fixture.Noon.Add(-5 * time.Minute)

// testEnv is an env with a Reconciler that runs one pass whenever the test requests it, and
// a pool that measures by the clock of the test.
type testEnv struct {
	*env.Env

	t          *testing.T
	server     *server
	clock      *clocktesting.FakeClock
	reconciler *Reconciler
	woken      chan types.NamespacedName
	stop       func()
}

func open(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := &testEnv{Env: env.Open(t, testClient, env.Kinds()...), t: t, server: startServer(t), clock: clocktesting.NewFakeClock(fixture.Noon)}
	s.stop = func() {}
	t.Cleanup(func() { s.stop() })
	s.restart()
	s.Add(objects...)
	return s
}

// restart replaces the reconciler and its pool with ones that remember nothing.
func (s *testEnv) restart() {
	s.stop()
	found := env.Indexes{}
	s.Expect(index(s.Ctx, found, shard.Shard{})).To(Succeed())
	s.woken = make(chan types.NamespacedName, 100)
	s.reconciler = s.newReconciler(s.Wire.Through(found.Cached(s.WithWatch)))
	woken := s.woken
	s.reconciler.wake = func(check types.NamespacedName) { woken <- check }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.reconciler.Pool.Start(ctx) }()
	s.stop = func() {
		cancel()
		s.Expect(<-ended).To(Succeed())
		s.stop = func() {}
	}
}

func (s *testEnv) newReconciler(c client.Client) *Reconciler {
	allowed, err := destination.List{}.With(s.server.URL)
	s.Expect(err).NotTo(HaveOccurred())
	panicked := func(check types.NamespacedName, cause any) { s.t.Errorf("%s panicked: %v", check, cause) }
	return &Reconciler{
		Client: c, Pool: pool.New(s.clock, 8, panicked), Now: s.clock.Now,
		Means: class.Means{
			Guard:   destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, nil }},
			Allowed: allowed, Prometheus: s.server.URL, Reader: s.WithWatch, Clock: s.clock,
		},
	}
}

// errorRate returns a HealthCheck whose value must not exceed 1.
func errorRate() *fixture.HealthCheckBuilder {
	return fixture.MakeHealthCheck("errors").Prometheus("errors", "value <= 1.0")
}

// rollout returns a Rollout that deploys 1.1.0, and selects every HealthCheck.
func rollout(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).SelectAllChecks().History(
		fixture.MakeEntry("1.1.0").ID(2).At(promotedAt).Deploying(),
		fixture.MakeEntry("1.0.0").ID(1).Succeeded(),
	).Obj()
}

func (s *testEnv) check(name string) *v1alpha1.HealthCheck {
	check := &v1alpha1.HealthCheck{}
	s.Expect(s.Get(s.Ctx, s.Key(name), check)).To(Succeed())
	return check
}

// status returns the status, and what it says.
func (s *testEnv) status(name string) (v1alpha1.HealthStatus, string) {
	status := s.check(name).Status
	if status.Message == nil {
		return status.Status, ""
	}
	return status.Status, *status.Message
}

// reconcile runs one pass and checks the limits of what it stores.
func (s *testEnv) reconcile(name string) ctrl.Result {
	result, err := s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key(name)})
	s.Expect(err).NotTo(HaveOccurred())
	check := &v1alpha1.HealthCheck{}
	if s.Get(s.Ctx, s.Key(name), check) == nil {
		stored, err := json.Marshal(check.Status)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(string(stored)).NotTo(ContainSubstring(marker), "the server's own words are not shown")
		s.Expect(len(check.Status.Measurements)).To(BeNumerically("<=", 10))
		s.Expect(len(stored)).To(BeNumerically("<", 8<<10))
	}
	return result
}

// rest runs passes until one writes nothing.
func (s *testEnv) rest(name string) ctrl.Result {
	for range 5 {
		before := len(s.Wire.Writes())
		result := s.reconcile(name)
		if len(s.Wire.Writes()) == before {
			return result
		}
	}
	s.t.Fatalf("5 passes brought no rest: %v", s.Wire.Writes())
	return ctrl.Result{}
}

// reset resets a HealthCheck as the controller of Rollouts does, for the current promotion
// of a Rollout.
func (s *testEnv) reset(name, rollout string) {
	message, now := evidence.ResetMessage, metav1.NewTime(s.clock.Now())
	s.ChangeStatus(fixture.MakeHealthCheck(name).Obj(), func(o client.Object) {
		status := &o.(*v1alpha1.HealthCheck).Status
		*status = v1alpha1.HealthCheckStatus{
			Status: pending, Message: &message, LastChangeTime: &now,
			MeasuringStatus: v1alpha1.MeasuringStatus{ObservedGeneration: status.ObservedGeneration, Problem: status.Problem},
		}
	})
	s.mark(name, rollout, func(e *v1alpha1.DeploymentHistoryEntry) string { return evidence.CompleteMark(e, "") })
}

// mark writes the mark of the current promotion of a Rollout on a HealthCheck.
func (s *testEnv) mark(name, rollout string, value func(*v1alpha1.DeploymentHistoryEntry) string) {
	of := &v1alpha1.Rollout{}
	s.Expect(s.Get(s.Ctx, s.Key(rollout), of)).To(Succeed())
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.ResetAnnotationPrefix + string(of.UID): value(of.Current()),
	}}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Merge(fixture.MakeHealthCheck(name).Obj(), string(patch))
}

// ends sets the final state of the current promotion of a Rollout.
func (s *testEnv) ends(rollout string, state v1alpha1.BakeStatus) {
	s.ChangeStatus(fixture.MakeRollout(rollout).Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Status.History[0].BakeStatus = &state })
}

// pass lets time pass, after which a pass runs as if it was requested for then.
func (s *testEnv) pass(d time.Duration, checks ...string) {
	s.clock.Step(d)
	for _, check := range checks {
		s.rest(check)
	}
}

// measured waits for the result of a measurement, and lets passes run for it.
func (s *testEnv) measured() {
	var check types.NamespacedName
	s.Eventually(s.woken, 10*time.Second).Should(Receive(&check))
	s.rest(check.Name)
}

// after lets time pass, in which a HealthCheck is measured once.
func (s *testEnv) after(d time.Duration, check string) {
	before := len(s.server.asked())
	s.pass(d, check)
	s.measured()
	s.Expect(s.server.asked()).To(HaveLen(before + 1))
}

// begin resets a HealthCheck for the Rollout shop, and measures it once.
func (s *testEnv) begin(check string) {
	s.reset(check, "shop")
	s.rest(check)
	s.after(delay+shift, check)
}

// planned returns how many HealthChecks are going to be measured.
func (s *testEnv) planned() int { return s.reconciler.Pool.Len() }

// oldCheck is a cache that shows an old version of a HealthCheck.
type oldCheck struct {
	client.Client
	old *v1alpha1.HealthCheck
}

// Get returns the old version.
func (c oldCheck) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if check, ok := o.(*v1alpha1.HealthCheck); ok && key.Name == c.old.Name {
		c.old.DeepCopyInto(check)
		return nil
	}
	return c.Client.Get(ctx, key, o, opts...)
}
