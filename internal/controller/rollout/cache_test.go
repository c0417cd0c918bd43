// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestCacheIsFilledPageByPage checks that a cache loads all objects and then follows
// their changes.
func TestCacheIsFilledPageByPage(t *testing.T) {
	s := open(t)
	const all = 2*cache.PageSize + 1
	for i := range all {
		s.Add(fixture.MakeHealthCheck(fmt.Sprintf("check-%d", i)).Obj())
	}

	requests, user, options := &fixture.Requests{}, testPlane.RESTConfig(), cache.Options(cache.Setting{})
	user.Wrap(requests.Wrap)
	options.Scheme, options.DefaultNamespaces = env.Scheme(), map[string]ctrlcache.Config{s.Namespace: {}}
	cached, err := ctrlcache.New(user, options)
	s.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(s.Ctx)
	done := make(chan error, 1)
	go func() { done <- cached.Start(ctx) }()
	defer func() {
		cancel()
		s.Expect(<-done).To(Succeed())
	}()

	_, err = cached.GetInformer(ctx, &v1alpha1.HealthCheck{}, ctrlcache.BlockUntilSynced(false))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(cached.WaitForCacheSync(ctx)).To(BeTrue())
	var checks v1alpha1.HealthCheckList
	s.Expect(cached.List(ctx, &checks)).To(Succeed())
	s.Expect(checks.Items).To(HaveLen(all))
	s.Expect(checks.Items).To(HaveEach(HaveField("ManagedFields", BeEmpty())))
	s.Expect(requests.CountBoth("/healthchecks?", fmt.Sprintf("limit=%d", cache.PageSize))).To(Equal(3))
	s.Expect(requests.CountBoth("/healthchecks?", "resourceVersion=0")).To(BeZero(), "that would be answered all at once")
	s.Expect(requests.Count("sendInitialEvents")).To(BeZero())

	s.checkFails("check-7", "broken", fixture.Noon)
	s.Eventually(func() v1alpha1.HealthStatus {
		var check v1alpha1.HealthCheck
		s.Expect(cached.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "check-7"}, &check)).To(Succeed())
		return check.Status.Status
	}).Should(Equal(v1alpha1.HealthStatusUnhealthy))
}
