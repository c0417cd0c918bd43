// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestReportIsReadByTheWorkers(t *testing.T) {
	b := openBus(t)
	b.publish(said(7, proven("1.4.0")))
	_, ok := b.Last(staging)
	b.Expect(ok).To(BeFalse())
	b.Once(staging)
	b.run()
	b.Eventually(b.calls).Should(Equal([]string{"Environment prod"}))
	b.Expect(b.last().At).To(Equal(fixture.Noon))
	b.Expect(b.last().Problem).To(BeNil())
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(7))
	b.Expect(b.last().Report.Releases[0].Tag).To(Equal("1.4.0"))
	b.later(time.Hour)
	b.Consistently(b.count, 100*time.Millisecond).Should(Equal(1), "nobody asks for more")
	b.Expect(b.calls()).To(BeEmpty())
}

func TestWaitingCandidateIsServedByTheWorkers(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.run()
	b.Eventually(b.calls).Should(Equal([]string{"Environment prod"}))
	for i := range 3 {
		b.later(59 * time.Second)
		b.Consistently(b.count, 50*time.Millisecond).Should(Equal(i + 1))
		b.later(time.Second)
		b.Eventually(b.count).Should(Equal(i + 2))
		b.Eventually(func() time.Time { return b.last().At }).Should(Equal(b.clock.Now()))
	}
	b.Expect(b.calls()).To(BeEmpty(), "nothing has changed")
	b.Ask(prod, none)
	b.later(time.Hour)
	b.Consistently(b.count, 100*time.Millisecond).Should(Equal(4))
}

func TestAtRestNothingIsRequested(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, proven("1.4.0")))
	b.Once(staging)
	b.Ask(prod, waits)
	b.pass(time.Minute)
	b.Ask(prod, none)
	before := b.registry.Requests()
	b.fetches()
	b.pass(24 * time.Hour)
	b.Expect(b.fetches()).To(BeEmpty())
	b.Expect(b.registry.Requests()).To(Equal(before))
	_, known := b.Last(staging)
	b.Expect(known).To(BeFalse(), "the status of the Environment has what was read")
}

func TestNothingButTheDigestIsRequestedWhileNothingChanges(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(0)
	for range 3 {
		before := b.registry.Requests()
		b.pass(time.Minute)
		b.Expect(b.registry.Requests() - before).To(BeEquivalentTo(1))
	}
	b.publish(said(2, proven("1.4.0")))
	before := b.registry.Requests()
	b.pass(time.Minute)
	b.Expect(b.registry.Requests() - before).To(BeEquivalentTo(2))
	b.Expect(b.calls()).To(Equal([]string{"Environment prod", "Environment prod"}), "once for each report")
}

// TestReleaseCostsAtMostTenRequests: staging deploys for three minutes and bakes for
// thirty, then prod deploys for three and bakes for thirty.
func TestReleaseCostsAtMostTenRequests(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, proven("1.3.0")))
	b.Once(staging)
	b.pass(time.Hour)
	b.publish(said(2, deploying("1.4.0")))
	before := b.registry.Requests()
	sum := func() uint64 { return b.registry.Requests() - before }
	quietly := func(r report.Report) { // what staging sends is its own
		n := sum()
		b.publish(r)
		before += sum() - n
	}
	b.Ask(prod, waits)
	b.pass(3 * time.Minute)
	quietly(said(3, baking("1.4.0", b.clock.Now().Add(30*time.Minute))))
	b.pass(30 * time.Minute)
	quietly(said(4, proven("1.4.0")))
	b.calls()
	b.pass(10 * time.Second)
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(4), "ten seconds after the bake")
	b.Expect(b.calls()).To(Equal([]string{"Environment prod"}))
	b.Ask(prod, none)
	b.pass(3 * time.Minute)
	b.Ask(prod, []Lookup{{Upstream: staging, At: b.clock.Now().Add(30 * time.Minute)}})
	b.pass(time.Hour)
	b.Expect(b.calls()).To(Equal([]string{"Rollout prod"}))
	b.Expect(sum()).To(BeNumerically("<=", 10))
	b.Ask(prod, none)
}

// Nobody knows until when staging bakes. Whenever its news comes in the first hour, it is
// known here at the next fetch, and a fetch takes at most five seconds longer than its interval.
func TestNewsIsKnownAfterTheIntervalOfTheEnvironment(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		for part := range 4 {
			t.Run(fmt.Sprintf("%s, %d of 4 after a fetch", interval, part), func(t *testing.T) {
				b := openBus(t)
				b.change(func(e *environmentsv1.Environment) { e.Spec.RequeueInterval = &metav1.Duration{Duration: interval} })
				b.publish(said(1, deploying("1.4.0")))
				b.Ask(prod, waits)
				b.pass(20*time.Minute + time.Duration(part)*interval/4)
				b.calls()
				b.publish(said(2, proven("1.4.0")))
				b.pass(interval + 5*time.Second)
				b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(2))
				b.Expect(b.calls()).To(Equal([]string{"Environment prod"}))
			})
		}
	}
}

func TestLookAtATimeHappensOnce(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, proven("1.4.0")))
	b.Once(staging)
	b.pass(time.Minute)
	b.fetches()
	b.calls()
	for range 5 {
		b.Ask(prod, at(30*time.Minute)) // each pass of the reconciler says the same
		b.pass(10 * time.Minute)
	}
	b.Expect(b.fetches()).To(Equal([]time.Duration{30 * time.Minute}))
	b.Expect(b.calls()).To(Equal([]string{"Rollout prod"}))
	b.Expect(b.last().At).To(Equal(fixture.Noon.Add(30 * time.Minute)))

	b.Ask(prod, at(40*time.Minute))
	b.pass(0)
	b.Expect(b.fetches()).To(Equal([]time.Duration{51 * time.Minute}), "it is past")
	b.fails(func(registry.Place) error { return errAway })
	b.Ask(prod, at(55*time.Minute))
	b.pass(time.Hour)
	b.Expect(b.fetches()).To(Equal([]time.Duration{55 * time.Minute}), "one fetch, whatever was found")
	b.Expect(b.calls()).To(Equal([]string{"Environment prod", "Rollout prod", "Rollout prod"}))
}

func TestLookForAnotherReasonCounts(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, append(waits, at(2*time.Minute)...))
	b.pass(10 * time.Minute)
	b.Expect(b.fetches()).To(HaveLen(11))
	b.Expect(b.calls()).To(Equal([]string{"Environment prod", "Rollout prod"}))
}

func TestReportThatNobodyAsksForIsForgotten(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(time.Minute)
	b.Ask(prod, nil)
	b.pass(keepFor - time.Second)
	_, known := b.Last(staging)
	b.Expect(known).To(BeTrue())
	b.fetches()
	b.pass(time.Minute)
	_, known = b.Last(staging)
	b.Expect(known).To(BeFalse())
	b.Expect(b.fetches()).To(BeEmpty())

	b.Once(staging)
	b.pass(0)
	b.Expect(b.last().Report.Sequence).To(BeEquivalentTo(1))
	b.pass(keepFor)
	b.Expect(b.upstreams).To(BeEmpty())
}

func TestVanishedWishRequestsNothing(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, append(waits, at(time.Hour)...))
	b.pass(0)
	b.Ask(prod, none)
	b.Ask(types.NamespacedName{Namespace: prod.Namespace, Name: "other"}, none)
	b.fetches()
	b.pass(2 * time.Hour)
	b.Expect(b.fetches()).To(BeEmpty())
	b.Expect(b.asked).To(BeEmpty())
}

func TestNewWishIsServedAtOnce(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.pass(2 * time.Second)
	b.Ask(prod, none)
	b.Ask(prod, waits)
	b.pass(30 * time.Second)
	b.Ask(prod, none)
	b.Ask(prod, waits)
	b.Ask(prod, waits)
	b.pass(0)
	b.Expect(b.fetches()).To(Equal([]time.Duration{0, 5 * time.Second, 32 * time.Second}), "but not within five seconds")
}

func TestOnceIsRepeatedWhileThereIsAProblem(t *testing.T) {
	b := openBus(t)
	b.Once(staging)
	for range 9 {
		before := len(b.times)
		for len(b.times) == before {
			b.pass(time.Second)
			b.Once(staging) // each pass of the reconciler finds the stored problem
		}
	}
	var pauses []time.Duration
	for i, fetched := 1, b.fetches(); i < len(fetched); i++ {
		pauses = append(pauses, fetched[i]-fetched[i-1])
	}
	b.Expect(pauses).To(Equal([]time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second,
		80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute}))
	b.Expect(b.complaints()).To(HaveLen(1), "reported once")
	b.Expect(b.calls()).To(HaveLen(9), "after each fetch")

	b.publish(said(1, proven("1.4.0")))
	b.pass(10 * time.Minute)
	b.Expect(b.last().Problem).To(BeNil())
	b.fetches()
	b.pass(time.Hour)
	b.Expect(b.fetches()).To(BeEmpty())
}

func TestUserDoesNotWaitForTheBackOff(t *testing.T) {
	for name, change := range map[string]func(*environmentsv1.Environment){
		"the spec has changed": func(e *environmentsv1.Environment) { e.Spec.URL = "https://shop.example.com" },
		"a user asks": func(e *environmentsv1.Environment) {
			e.Generation--
			e.Annotations = map[string]string{requestedAt: "now"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.Once(staging)
			b.pass(400 * time.Second)
			b.fetches()
			b.change(change)
			b.Once(staging)
			b.pass(0)
			b.Expect(b.fetches()).To(HaveLen(1))
			b.Once(staging)
			b.pass(time.Second)
			b.Expect(b.fetches()).To(BeEmpty())
		})
	}
}

func TestResultIsNotRecentOnceTheSpecHasChanged(t *testing.T) {
	b := openBus(t)
	b.publish(said(1))
	b.Once(staging)
	b.pass(0)
	b.Expect(b.last().At).To(Equal(fixture.Noon))
	b.change(func(e *environmentsv1.Environment) { e.Spec.URL = "https://shop.example.com" })
	b.Once(staging)
	b.Expect(b.last().At).To(BeZero(), "its keys may no longer be trusted")
	b.pass(5 * time.Second)
	b.Expect(b.last().At).To(Equal(fixture.Noon.Add(5 * time.Second)))
}

// TestLookUnderWayIsEnough: and it is not, if it does not know what was asked for.
func TestLookUnderWayIsEnough(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, proven("1.4.0")))
	during := make(chan func())
	b.fails(func(registry.Place) error {
		for do := range during {
			do()
		}
		return nil
	})
	b.Once(staging)
	b.run()
	during <- func() { b.Once(staging) }
	during <- func() { b.Once(staging) }
	close(during)
	b.Eventually(b.calls).Should(HaveLen(1))
	b.later(time.Minute)
	b.Consistently(b.count, 50*time.Millisecond).Should(Equal(1))

	during = make(chan func())
	b.Once(staging)
	during <- func() {
		b.change(func(e *environmentsv1.Environment) { e.Spec.URL = "https://shop.example.com" })
		b.Once(staging)
	}
	close(during)
	b.Eventually(func() time.Time {
		b.Store.mu.Lock()
		defer b.Store.mu.Unlock()
		return b.upstreams[staging].ended
	}).Should(Equal(fixture.Noon.Add(time.Minute)))
	b.Expect(b.count()).To(Equal(2))
	b.later(leastPause)
	b.Eventually(b.count).Should(Equal(3))
}

func TestUpstreamThatIsGoneIsForgotten(t *testing.T) {
	for name, change := range map[string]func(*environmentsv1.Environment){
		"removed":         func(e *environmentsv1.Environment) { e.Spec.Upstreams = nil },
		"in this cluster": func(e *environmentsv1.Environment) { e.Spec.Upstreams[0].Repository = "" },
		"another backend": func(e *environmentsv1.Environment) { e.Spec.Backend.Type = environmentsv1.BackendCluster },
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.publish(said(1, deploying("1.4.0")))
			b.Ask(prod, waits)
			b.Once(staging)
			b.pass(0)
			b.change(change)
			b.pass(time.Hour)
			_, ok := b.Last(staging)
			b.Expect(ok).To(BeFalse())
			b.isEmpty()
		})
	}
}

// isEmpty checks that nothing is left.
func (b *bus) isEmpty() {
	b.Store.mu.Lock()
	defer b.Store.mu.Unlock()
	b.Expect(b.upstreams).To(BeEmpty())
	b.Expect(b.asked).To(BeEmpty())
	b.Expect(b.ofEnvironment).To(BeEmpty())
	b.Expect(b.ofNamespace).To(BeEmpty())
	b.Expect(b.rejected).To(BeEmpty())
}

func TestEnvironmentIsForgotten(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Ask(prod, waits)
	b.Once(staging)
	b.pass(0)
	b.Forget(prod)
	b.isEmpty()

	other := Upstream{Environment: types.NamespacedName{Namespace: "prod", Name: "missing"}, Name: "staging"}
	b.Once(other)
	b.Ask(prod, []Lookup{{Upstream: other}})
	b.pass(0)
	b.isEmpty()
}

func TestUpstreamsOfAnEarlierSpecAreForgotten(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.Once(staging)
	b.Once(Upstream{Environment: prod, Name: "earlier"})
	b.pass(0)
	b.Expect(b.upstreams).To(HaveLen(1))
}

func TestHungRegistryHoldsNoOtherNamespace(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	hung := make(chan struct{})
	b.fails(func(place registry.Place) error {
		if place.Namespace != prod.Namespace {
			<-hung
		}
		return nil
	})
	var all []Lookup
	for i := range 20 {
		e := b.prod().InNamespace("other").Obj()
		e.Name = fmt.Sprint("prod-", i)
		b.Expect(b.cluster.Create(t.Context(), e)).To(Succeed())
		all = append(all, Lookup{Upstream: Upstream{Environment: client.ObjectKeyFromObject(e), Name: "staging"}})
	}
	b.Ask(types.NamespacedName{Namespace: "other", Name: "web"}, all)
	b.run()
	b.Eventually(b.count).Should(Equal(background.Workers / 2))
	b.Ask(types.NamespacedName{Namespace: "other", Name: "web"}, all)
	b.Ask(prod, waits)
	b.Eventually(b.calls).Should(Equal([]string{"Environment prod"}))
	b.Expect(b.count()).To(Equal(background.Workers/2 + 1))
	close(hung)
	b.Eventually(b.count).Should(Equal(len(all)+1), "those that had to wait")
}

func TestOneNamespaceDoesNotTakeAllPlaces(t *testing.T) {
	b := openBus(t)
	of := func(namespace string, i int) Upstream {
		return Upstream{Environment: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}, Name: "staging"}
	}
	for i := range mostUpstreams {
		b.Once(of("loud", i))
	}
	b.Once(of("loud", mostUpstreams))
	loud := types.NamespacedName{Namespace: "loud", Name: "web"}
	b.Ask(loud, []Lookup{{Upstream: of("loud", mostUpstreams)}})
	b.Expect(b.upstreams).To(HaveLen(mostUpstreams))
	for i := range mostUpstreamsOf + 1 {
		b.Once(of("quiet", i))
	}
	b.Expect(b.upstreams).To(HaveLen(mostUpstreams + mostUpstreamsOf))
	b.Expect(b.calls()).To(BeEmpty())
	for i := range mostUpstreamsOf {
		b.Forget(of("quiet", i).Environment)
	}
	b.Expect(b.calls()).To(Equal([]string{fmt.Sprint("Environment ", mostUpstreamsOf)}), "there is room for it, and not for the loud one")
	b.Forget(of("loud", 0).Environment)
	b.Forget(of("loud", 0).Environment)
	b.Expect(b.calls()).To(Equal([]string{fmt.Sprint("Environment ", mostUpstreams), "Rollout web"}))
	b.Expect(b.rejected).To(BeEmpty())
}

func TestAskingIsSafeForConcurrentUse(t *testing.T) {
	b := openBus(t)
	b.publish(said(1, deploying("1.4.0")))
	b.run()
	var all sync.WaitGroup
	for _, do := range []func(){
		func() { b.Once(staging) },
		func() { b.Ask(prod, waits) },
		func() { b.Ask(prod, at(0)) },
		func() { b.Ask(prod, none) },
		func() { b.Forget(prod) },
		func() { b.Last(staging) },
		func() { b.later(time.Minute) },
	} {
		all.Go(func() {
			for range 50 {
				do()
			}
		})
	}
	all.Wait()
	b.Forget(prod)
	b.Eventually(func() bool {
		b.Store.mu.Lock()
		defer b.Store.mu.Unlock()
		return len(b.upstreams) == 0
	}).Should(BeTrue())
	b.isEmpty()
}
