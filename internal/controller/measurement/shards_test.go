// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// shardKey is the label of the objects of another instance.
const shardKey = "sharding.fluxcd.io/key"

// openShards opens an env in which the Rollout cart is one of another instance.
func openShards(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := open(t, append(objects, rollout("shop"), rollout("cart"))...)
	s.Relabel("cart", map[string]string{shardKey: "shard1"})
	return s
}

// unlabelled runs the instance for objects without the label.
func (s *testEnv) unlabelled() {
	mine, err := labels.Parse("!" + shardKey)
	s.Expect(err).NotTo(HaveOccurred())
	s.runningShard(mine)
}

// says waits for a message.
func (s *testEnv) says(name, want string) {
	s.t.Helper()
	s.Eventually(func() string {
		_, message := s.status(name)
		return message
	}, 10*time.Second).Should(Equal(want))
}

// becomes lets time pass until a HealthCheck has a status.
func (s *testEnv) becomes(name string, want v1alpha1.HealthStatus) {
	s.t.Helper()
	s.Eventually(func() v1alpha1.HealthStatus {
		s.clock.Step(time.Second) // until the timer of the pool is due
		status, _ := s.status(name)
		return status
	}, 20*time.Second, 20*time.Millisecond).Should(Equal(want))
}

func (s *testEnv) elsewhere() string {
	return "not measured: another instance of the controller acts for Rollout " + s.Namespace + "/cart"
}

func TestCheckOfARolloutOfAnotherShardSaysSo(t *testing.T) {
	s := openShards(t, errorRate().Obj())
	s.reset("errors", "cart")
	s.unlabelled()
	s.says("errors", s.elsewhere()+": label both for the same instance")
	status, _ := s.status("errors")
	s.Expect(status).To(Equal(pending))
	s.Expect(s.problem("errors")).To(BeEmpty(), "it holds no promotion back")
	s.clock.Step(time.Hour)
	s.Expect(s.planned()).To(BeZero())
	s.Expect(s.server.asked()).To(BeEmpty())

	s.Relabel("cart", nil)
	s.Eventually(s.planned, 10*time.Second).Should(Equal(1), "the instance acts for it now")
	s.becomes("errors", healthy)
	s.Expect(s.check("errors").Status.Release).To(Equal(&v1alpha1.MeasuredRelease{Tag: "1.1.0"}))
	s.Relabel("cart", map[string]string{shardKey: "shard1"})
	s.Eventually(s.planned, 10*time.Second).Should(BeZero(), "it does not any more")
	status, _ = s.status("errors")
	s.Expect(status).To(Equal(healthy), "the verdict stands until the next reset")
}

func TestCheckThatNeedsTheReleaseOfAnotherShardSaysSo(t *testing.T) {
	check := perRelease()
	s := openShards(t, check)
	s.reset("errors", "cart")
	s.unlabelled()
	s.says("errors", s.elsewhere()+": label both for the same instance")
	s.Eventually(s.planned, 10*time.Second).Should(BeZero())

	s.Remove(&v1alpha1.Rollout{}, "cart")
	s.says("errors", "waiting for the first measurement")
}

// A status about the release of one Rollout proves nothing for the other one.
func TestRolloutsOfTwoShardsShareACheck(t *testing.T) {
	s := openShards(t, errorRate().Obj(), fixture.MakeHealthCheck("versions").Prometheus(`errors{version="$(version)"}`, "value <= 1.0").Obj())
	for _, check := range []string{"errors", "versions"} {
		s.reset(check, "cart")
		s.reset(check, "shop")
	}
	s.unlabelled()
	s.Eventually(func() string { return s.problem("versions") }, 10*time.Second).Should(Equal(shared))
	s.becomes("errors", healthy)
	s.Expect(s.check("errors").Status.Release).To(BeNil(), "it is about both")

	s.selecting("cart", "cart")
	s.Eventually(func() string { return s.problem("versions") }, 10*time.Second).Should(BeEmpty(), "it is not shared any more")
}
