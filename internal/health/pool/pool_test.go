// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a pool in which time passes only while everything waits, and what it does.
type bench struct {
	*WithT
	*Pool
	t     *testing.T
	start time.Time
	stop  func() error

	mu    sync.Mutex
	lines []string
}

// try runs a test with a pool that has been started.
func try(t *testing.T, workers int, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{WithT: NewWithT(t), t: t, start: time.Now()}
		b.Pool = New(clock.RealClock{}, workers, func(check types.NamespacedName, cause any) {
			b.note("%s panicked: %v", check.Name, cause)
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- b.Start(ctx) }()
		b.stop = sync.OnceValue(func() error {
			cancel()
			return <-ended
		})
		synctest.Wait()
		test(b)
		b.Expect(b.stop()).To(Succeed())
	})
}

// note writes down what happens, and how many seconds after the start.
func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf("%gs ", time.Since(b.start).Seconds())+fmt.Sprintf(format, args...))
}

// noted returns what has happened since the last call. What happens at the same time is in
// the order of its text.
func (b *bench) noted() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	slices.SortFunc(lines, func(x, y string) int { return cmp.Or(cmp.Compare(seconds(x), seconds(y)), cmp.Compare(x, y)) })
	return lines
}

func seconds(line string) (s float64) {
	_, _ = fmt.Sscanf(line, "%gs", &s)
	return s
}

// at returns the time some seconds after the start.
func (b *bench) at(s int) time.Time { return b.start.Add(time.Duration(s) * time.Second) }

// lasting returns a measurement that takes some time, and notes its beginning and its
// result.
func (b *bench) lasting(name string, d time.Duration) Measure {
	return func(ctx context.Context) func() {
		b.note("%s begins", name)
		select {
		case <-ctx.Done():
			b.note("%s is cancelled", name)
		case <-time.After(d):
		}
		return func() { b.note("%s is delivered", name) }
	}
}

// noting returns a measurement that takes no time, and notes only its beginning.
func (b *bench) noting(name string) Measure {
	return func(context.Context) func() {
		b.note("%s", name)
		return nil
	}
}

func key(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}
}

func TestChecksAreMeasuredInTheOrderInWhichTheyAreDue(t *testing.T) {
	try(t, 1, func(b *bench) {
		b.Schedule(key("shop", 1), "a", b.at(30), b.noting("third"))
		b.Schedule(key("shop", 2), "b", b.at(10), b.noting("first"))
		b.Schedule(key("shop", 3), "c", b.at(20), b.noting("second"))
		b.Schedule(key("shop", 4), "d", b.at(40), b.noting("never"))
		b.Schedule(key("shop", 4), "d", b.at(50), b.noting("last"))
		b.Expect(b.noted()).To(BeEmpty(), "before it is due")
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"10s first", "20s second", "30s third", "50s last"}))
		b.Expect(b.Len()).To(BeZero())
	})
}

func TestBacklogIsWorkedOffInItsOrder(t *testing.T) {
	try(t, 1, func(b *bench) {
		b.Schedule(key("shop", 0), "a", b.at(0), b.lasting("long", 10*time.Second))
		synctest.Wait()
		for n, due := range []int{3, 1, 2, 1} {
			b.Schedule(key("shop", n+1), fmt.Sprint(n), b.at(due), b.lasting(fmt.Sprint(n+1), time.Second))
		}
		time.Sleep(9 * time.Second)
		b.Expect(b.Lag()).To(Equal(8*time.Second), "two are due since second 1")
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{
			"0s long begins", "10s 2 begins", "10s long is delivered", "11s 2 is delivered", "11s 4 begins",
			"12s 3 begins", "12s 4 is delivered", "13s 1 begins", "13s 3 is delivered", "14s 1 is delivered",
		}))
		b.Expect(b.Lag()).To(BeZero())
	})
}

func TestDestinationIsAskedFourTimesAtOnce(t *testing.T) {
	try(t, 16, func(b *bench) {
		for n := range 6 { // of several namespaces
			b.Schedule(key(fmt.Sprint(n), n), "prometheus", b.at(0), b.lasting(fmt.Sprint(n), time.Second))
		}
		b.Schedule(key("9", 9), "other", b.at(0), b.lasting("9", time.Second))
		time.Sleep(1500 * time.Millisecond)
		b.Expect(b.noted()).To(Equal([]string{
			"0s 0 begins", "0s 1 begins", "0s 2 begins", "0s 3 begins", "0s 9 begins",
			"1s 0 is delivered", "1s 1 is delivered", "1s 2 is delivered", "1s 3 is delivered", "1s 4 begins", "1s 5 begins", "1s 9 is delivered",
		}))
	})
}

// every returns a measurement that is planned again in intervals.
func (b *bench) every(check types.NamespacedName, destination string, due time.Time, interval time.Duration, measure Measure) Measure {
	return func(ctx context.Context) func() {
		deliver := measure(ctx)
		return func() {
			if deliver != nil {
				deliver()
			}
			next := due.Add(interval)
			b.Schedule(check, destination, next, b.every(check, destination, next, interval, measure))
		}
	}
}

// A destination that does not answer delays no checks of others, also of its namespace.
func TestDestinationThatHangsDelaysItsOwnChecks(t *testing.T) {
	try(t, 16, func(b *bench) {
		for n := range 20 {
			b.Schedule(key("shop", n), "hangs", b.at(0), b.lasting("hanging", 30*time.Second))
		}
		synctest.Wait()
		b.Expect(b.noted()).To(HaveLen(2))
		quick := key("shop", 99)
		b.Schedule(quick, "answers", b.at(1), b.every(quick, "answers", b.at(1), 5*time.Second, b.noting("quick")))
		time.Sleep(22 * time.Second)
		b.Expect(b.noted()).To(Equal([]string{"1s quick", "6s quick", "11s quick", "16s quick", "21s quick"}))
		b.Expect(b.Lag()).To(Equal(22*time.Second), "of the ones that wait for the destination")
	})
}

func TestNamespacesTakeTurns(t *testing.T) {
	try(t, 1, func(b *bench) {
		for n := range 1000 {
			b.Schedule(key("loud", n), fmt.Sprint(n), b.at(0), b.lasting("loud", time.Second))
		}
		synctest.Wait()
		b.Schedule(key("quiet", 0), "quiet", b.at(1), b.lasting("quiet", time.Second))
		time.Sleep(3500 * time.Millisecond)
		b.Expect(b.noted()).To(ContainElement(Or(Equal("1s quiet begins"), Equal("2s quiet begins"))))
	})
}

// The turns count also for one destination that all share.
func TestNamespacesTakeTurnsAtADestination(t *testing.T) {
	try(t, 16, func(b *bench) {
		for n := range 1000 {
			b.Schedule(key("loud", n), "prometheus", b.at(0), b.lasting("loud", time.Second))
		}
		synctest.Wait()
		for n := range 3 {
			b.Schedule(key("quiet", n), "prometheus", b.at(0), b.lasting("quiet", time.Second))
		}
		time.Sleep(2500 * time.Millisecond)
		isOther := func(line string) bool { return !strings.HasSuffix(line, "quiet begins") }
		begun := slices.DeleteFunc(b.noted(), isOther)
		b.Expect(begun).To(HaveLen(3), "at least one in each second")
		b.Expect(begun[0]).To(Equal("0s quiet begins"), "a place is free")
	})
}

func TestNamespaceHasHalfOfTheWorkers(t *testing.T) {
	try(t, 4, func(b *bench) {
		for n := range 10 {
			b.Schedule(key("loud", n), fmt.Sprint(n), b.at(0), b.lasting("loud", time.Hour))
		}
		synctest.Wait()
		b.Expect(b.noted()).To(Equal([]string{"0s loud begins", "0s loud begins"}))
		b.Schedule(key("quiet", 0), "quiet", b.at(0), b.noting("quiet"))
		b.Expect(b.noted()).To(Equal([]string{"0s quiet"}))
	})
}

// A tenant may have several namespaces.
func TestNamespaceLeavesAsManyWorkersAsItHas(t *testing.T) {
	try(t, 16, func(b *bench) {
		for tenant := range 4 {
			name := fmt.Sprint("loud", tenant)
			for n := range 20 {
				b.Schedule(key(name, n), fmt.Sprint(name, n), b.at(tenant), b.lasting(name, time.Hour))
			}
		}
		time.Sleep(5 * time.Second)
		begun := map[string]int{}
		for _, line := range b.noted() {
			begun[strings.Fields(line)[1]]++
		}
		b.Expect(begun).To(Equal(map[string]int{"loud0": 8, "loud1": 4, "loud2": 2, "loud3": 1}))
		b.Schedule(key("quiet", 0), "quiet", b.at(5), b.noting("quiet"))
		b.Expect(b.noted()).To(Equal([]string{"5s quiet"}))
	})
}

// All tenants may ask the same Prometheus. One with slow queries must not keep the others out.
func TestNamespaceLeavesAsManyPlacesAtADestination(t *testing.T) {
	try(t, 16, func(b *bench) {
		for n := range 20 {
			b.Schedule(key("loud0", n), "prometheus", b.at(0), b.lasting("loud0", time.Hour))
			b.Schedule(key("loud1", n), "prometheus", b.at(1), b.lasting("loud1", time.Hour))
		}
		time.Sleep(1500 * time.Millisecond)
		b.Expect(b.noted()).To(Equal([]string{"0s loud0 begins", "0s loud0 begins", "1s loud1 begins"}))
		b.Schedule(key("quiet", 0), "prometheus", b.at(1), b.noting("quiet"))
		b.Expect(b.noted()).To(Equal([]string{"1.5s quiet"}))
	})
}

func TestLateMeasurementIsLate(t *testing.T) {
	try(t, 2, func(b *bench) {
		slow := key("shop", 0)
		b.Schedule(slow, "a", b.at(0), b.every(slow, "a", b.at(0), 5*time.Second, b.lasting("slow", 7*time.Second)))
		time.Sleep(29 * time.Second)
		b.Expect(b.noted()).To(Equal([]string{
			"0s slow begins", "7s slow begins", "7s slow is delivered", "14s slow begins", "14s slow is delivered",
			"21s slow begins", "21s slow is delivered", "28s slow begins", "28s slow is delivered",
		}), "five are due by second 20, and five begin")
	})
}

func TestTimeThatPassesBeforeTheTimerBeginsIsNotLost(t *testing.T) {
	now := fixture.NewQueueClock()
	late := fixture.LateTimers{WithTicker: now, Step: func() { now.Step(time.Minute) }}
	p := New(late, 2, func(_ types.NamespacedName, cause any) { t.Error(cause) })
	measured := make(chan struct{}, 1)
	p.Schedule(key("shop", 1), "a", now.Now().Add(time.Minute), func(context.Context) func() {
		measured <- struct{}{}
		return nil
	})
	<-p.changed // only the timer wakes it
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	NewWithT(t).Eventually(measured).Should(Receive())
	cancel()
	NewWithT(t).Expect(<-ended).To(Succeed())
}

func TestRepeatedPlanIsOneMeasurement(t *testing.T) {
	try(t, 4, func(b *bench) {
		one := key("shop", 0)
		for range 3 {
			b.Schedule(one, "a", b.at(1), b.lasting("one", 2*time.Second))
		}
		time.Sleep(2 * time.Second)
		b.Schedule(one, "a", b.at(5), b.noting("another")) // given up by the next line
		b.Schedule(one, "a", b.at(1), b.lasting("again", 2*time.Second))
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"1s one begins", "3s one is delivered"}))
		b.Expect(b.Len()).To(BeZero())
	})
}

func TestLastPlanOfSeveralFollowsWhatIsUnderWay(t *testing.T) {
	try(t, 4, func(b *bench) {
		one := key("shop", 0)
		b.Schedule(one, "a", b.at(0), b.lasting("old", 3*time.Second))
		synctest.Wait()
		b.Schedule(one, "b", b.at(1), b.noting("superseded"))
		b.Schedule(one, "b", b.at(2), b.lasting("new", time.Second))
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"0s old begins", "3s new begins", "3s old is delivered", "4s new is delivered"}))
	})
}

func TestDroppedCheckHasNoResult(t *testing.T) {
	try(t, 4, func(b *bench) {
		for n, due := range []int{0, 5} {
			b.Schedule(key("shop", n), "a", b.at(due), b.lasting(fmt.Sprint(n), 3*time.Second))
		}
		time.Sleep(time.Second)
		for n := range 3 {
			b.Drop(key("shop", n))
		}
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"0s 0 begins", "1s 0 is cancelled"}))
		b.Expect(b.Len()).To(BeZero())
	})
}

// The measurement that was dropped may take some time to end, and counts until then.
func TestDroppedCheckIsMeasuredAgainAfterItsEnd(t *testing.T) {
	try(t, 4, func(b *bench) {
		one := key("shop", 0)
		b.Schedule(one, "a", b.at(0), func(context.Context) func() {
			time.Sleep(3 * time.Second)
			return func() { b.note("old is delivered") }
		})
		time.Sleep(time.Second)
		b.Drop(one)
		b.Schedule(one, "a", b.at(0), b.lasting("new", time.Second))
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"3s new begins", "4s new is delivered"}))
	})
}

func TestDroppedBacklogLeavesNothing(t *testing.T) {
	try(t, 1, func(b *bench) {
		for n := range 5 {
			b.Schedule(key(fmt.Sprint(n%3), n), fmt.Sprint(n%2), b.at(0), b.lasting("x", time.Hour))
		}
		synctest.Wait()
		for n := range 5 {
			b.Drop(key(fmt.Sprint(n%3), n))
		}
		synctest.Wait()
		b.expectEmpty()
	})
}

// expectEmpty checks that nothing is stored.
func (b *bench) expectEmpty() {
	b.t.Helper()
	b.Pool.mu.Lock()
	defer b.Pool.mu.Unlock()
	b.Expect(b.checks).To(BeEmpty())
	b.Expect(b.later).To(BeEmpty())
	b.Expect(b.backlog).To(Equal(backlog{of: map[string]map[string]*queue{}, turns: []string{}}))
	b.Expect(b.busy.total).To(BeZero())
	b.Expect(b.busy.ofNamespace).To(BeEmpty())
	b.Expect(b.busy.ofDestination).To(BeEmpty())
}

func TestEndDropsWhatIsUnfinished(t *testing.T) {
	try(t, 4, func(b *bench) {
		b.Schedule(key("shop", 0), "a", b.at(0), b.lasting("one", time.Minute))
		b.Schedule(key("shop", 1), "a", b.at(1), b.noting("two"))
		synctest.Wait()
		b.Expect(b.stop()).To(Succeed())
		b.Schedule(key("shop", 2), "a", b.at(0), b.noting("three"))
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"0s one begins", "0s one is cancelled"}))
	})
}

func TestEndWaitsFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		p := New(clock.RealClock{}, 4, nil)
		p.Schedule(key("shop", 0), "a", time.Now(), func(context.Context) func() {
			time.Sleep(time.Minute) // it does not look at its context
			return func() { t.Error("the result is delivered") }
		})
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		began := time.Now()
		g.Expect(p.Start(ctx)).To(MatchError("1 measurements of HealthChecks have not ended"))
		g.Expect(time.Since(began)).To(Equal(6 * time.Second))
		time.Sleep(time.Hour)
	})
}

func TestPanicEndsOneMeasurement(t *testing.T) {
	try(t, 1, func(b *bench) {
		b.Schedule(key("shop", 0), "a", b.at(0), func(context.Context) func() { panic("no such thing") })
		b.Schedule(key("shop", 1), "a", b.at(1), b.noting("next"))
		time.Sleep(time.Minute)
		b.Expect(b.noted()).To(Equal([]string{"0s 0 panicked: no such thing", "1s next"}))
		b.expectEmpty()
	})
}

func TestMemoryIsBoundedByTheNumberOfChecks(t *testing.T) {
	const checks = 5000
	try(t, 16, func(b *bench) {
		before := inUse()
		measured := make([]int, checks)
		var mu sync.Mutex
		for round := range 20 {
			for n := range checks {
				b.Schedule(key(fmt.Sprint(n%50), n), fmt.Sprint(n%7), b.at(30+(n+round)%30), func(context.Context) func() {
					mu.Lock()
					defer mu.Unlock()
					measured[n]++
					return nil
				})
			}
		}
		b.Expect(b.Len()).To(Equal(checks))
		if used := inUse() - before; used > checks<<10 {
			t.Errorf("%d bytes are in use, want 1 KiB for each check", used)
		}
		time.Sleep(2 * time.Minute)
		b.expectEmpty()
		mu.Lock()
		defer mu.Unlock()
		b.Expect(slices.Max(measured)).To(Equal(1))
		b.Expect(slices.Min(measured)).To(Equal(1))
	})
}

func inUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Whatever happens, the limits hold, and what was planned last is measured exactly once.
func TestLimitsHoldInAnyOrderOfEvents(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			try(t, 6, func(b *bench) { disturb(b, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

// watched counts what is under way.
type watched struct {
	*bench
	counts map[string]int
	last   map[types.NamespacedName]int // the plan that must be measured; absent if none must be
}

func (w *watched) enter(n int, of ...string) {
	w.bench.mu.Lock()
	defer w.bench.mu.Unlock()
	for _, of := range of {
		if w.counts[of] += n; strings.Contains(of, "/") && w.counts[of] > 1 {
			w.t.Errorf("%s is measured twice at the same time", of)
		}
	}
	for of, most := range map[string]int{"all": 6, "ns0": 3, "ns1": 3, "ns2": 3, "to0": 4, "to1": 4, "to2": 4} {
		if w.counts[of] > most {
			w.t.Errorf("%d are under way for %s", w.counts[of], of)
		}
	}
}

func (w *watched) measuring(check types.NamespacedName, plan int, to string, d time.Duration) Measure {
	return func(ctx context.Context) func() {
		w.enter(1, "all", check.Namespace, to, check.String())
		defer w.enter(-1, "all", check.Namespace, to, check.String())
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return func() {
			w.bench.mu.Lock()
			defer w.bench.mu.Unlock()
			if w.last[check] == plan {
				delete(w.last, check)
			}
		}
	}
}

// expect records whether a plan must be measured, in place of the plan before.
func (w *watched) expect(check types.NamespacedName, plan int, planned bool) {
	w.bench.mu.Lock()
	defer w.bench.mu.Unlock()
	if delete(w.last, check); planned {
		w.last[check] = plan
	}
}

func disturb(b *bench, random *rand.Rand) {
	w := &watched{bench: b, counts: map[string]int{}, last: map[types.NamespacedName]int{}}
	for plan := 1; plan <= 500; plan++ {
		check, to := key(fmt.Sprintf("ns%d", random.IntN(3)), random.IntN(10)), fmt.Sprintf("to%d", random.IntN(3))
		planned := random.IntN(4) > 0
		w.expect(check, plan, planned)
		if planned {
			due := time.Now().Add(time.Duration(random.IntN(5000)) * time.Millisecond)
			w.Schedule(check, to, due, w.measuring(check, plan, to, time.Duration(random.IntN(3000))*time.Millisecond))
		} else {
			w.Drop(check)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	time.Sleep(time.Hour)
	b.expectEmpty()
	w.bench.mu.Lock()
	defer w.bench.mu.Unlock()
	b.Expect(w.last).To(BeEmpty(), "measurements that were left out")
}
