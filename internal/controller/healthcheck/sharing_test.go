// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

var (
	theWeb = kustomization.Of(types.NamespacedName{Namespace: "shop", Name: "web"})
	begins = time.Unix(1000, 0)
)

// checkOf returns the key of a HealthCheck of the shop.
func checkOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// says returns a finding that differs from others by its message.
func says(text string) *health.Finding { return new(health.ForAll(health.Healthy(text))) }

// given returns the message that a HealthCheck gets; empty if it has to wait or to look.
func given(got share) string {
	if got.finding == nil {
		return ""
	}
	return got.finding.WasNot.Message
}

func TestSharingLooksOnceForAllThatAskMeanwhileAndSoonAfter(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	for _, check := range []string{"a", "b", "c"} {
		s.saw(checkOf(check), "1")
	}
	g.Expect(s.ask(checkOf("a"), "1", theWeb, begins)).To(Equal(share{looks: true}))
	g.Expect(s.ask(checkOf("b"), "1", theWeb, begins)).To(Equal(share{}), "it waits, and holds no worker")
	g.Expect(s.ask(checkOf("b"), "1", kustomization.Of(checkOf("other")), begins)).To(Equal(share{looks: true}), "another Kustomization")
	ends := begins.Add(10 * time.Second)
	g.Expect(s.end(theWeb, says("one"), ends)).To(Equal([]types.NamespacedName{checkOf("b")}))

	g.Expect(given(s.ask(checkOf("b"), "1", theWeb, ends))).To(Equal("one"))
	g.Expect(given(s.ask(checkOf("c"), "1", theWeb, ends.Add(999*time.Millisecond)))).To(Equal("one"))
	g.Expect(s.ask(checkOf("c"), "1", theWeb, ends.Add(time.Second)).looks).To(BeTrue(), "it is old")
}

func TestSharingGivesNothingThatWasSeenBeforeAReset(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	s.saw(checkOf("a"), "1")
	s.saw(checkOf("b"), "1")
	g.Expect(s.ask(checkOf("a"), "1", theWeb, begins).looks).To(BeTrue())
	s.saw(checkOf("b"), "2") // it is reset
	g.Expect(s.ask(checkOf("b"), "2", theWeb, begins)).To(Equal(share{}))
	g.Expect(s.ask(checkOf("c"), "1", theWeb, begins)).To(Equal(share{}), "nobody knows since when it is so")
	g.Expect(s.end(theWeb, says("before"), begins)).To(ConsistOf(checkOf("b"), checkOf("c")))

	g.Expect(s.ask(checkOf("b"), "2", theWeb, begins)).To(Equal(share{looks: true}))
	g.Expect(s.ask(checkOf("c"), "1", theWeb, begins)).To(Equal(share{}))
	s.end(theWeb, says("after"), begins)
	g.Expect(given(s.ask(checkOf("c"), "1", theWeb, begins))).To(Equal("after"))
	g.Expect(given(s.ask(checkOf("a"), "1", theWeb, begins))).To(Equal("after"))
}

func TestSharingTakesAVerdictThatWasWrittenForNoReset(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	s.saw(checkOf("a"), "1")
	s.ask(checkOf("a"), "1", theWeb, begins)
	s.end(theWeb, says("one"), begins)
	s.wrote(checkOf("a"), "1", "2")
	g.Expect(given(s.ask(checkOf("a"), "2", theWeb, begins))).To(Equal("one"))
	s.saw(checkOf("a"), "4")
	s.wrote(checkOf("a"), "2", "3") // late: the check was reset in the meantime
	g.Expect(s.ask(checkOf("a"), "4", theWeb, begins).finding).To(BeNil())
}

func TestSharingLooksAgainForAnEventAtItsPace(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	s.saw(checkOf("a"), "1")
	s.saw(checkOf("b"), "1")
	g.Expect(s.untilNext(theWeb, begins)).To(BeZero())
	s.ask(checkOf("a"), "1", theWeb, begins)
	s.changed(theWeb) // during the look
	s.end(theWeb, says("one"), begins)
	soon := begins.Add(300 * time.Millisecond)
	g.Expect(s.untilNext(theWeb, soon)).To(Equal(700 * time.Millisecond))
	g.Expect(s.ask(checkOf("b"), "1", theWeb, soon)).To(Equal(share{finding: says("one"), again: 700 * time.Millisecond}))
	g.Expect(s.untilNext(theWeb, begins.Add(-time.Hour))).To(Equal(time.Second), "the clock was set back")

	later := begins.Add(time.Second)
	g.Expect(s.ask(checkOf("b"), "1", theWeb, later).looks).To(BeTrue())
	slow := later.Add(5 * time.Second)
	s.changed(theWeb)
	s.end(theWeb, says("two"), slow)
	g.Expect(s.ask(checkOf("a"), "1", theWeb, slow).looks).To(BeTrue(), "what changed during a long look is looked at now")
}

func TestSharingLooksAtMostTwiceAtATimeForChecksThatAreReset(t *testing.T) {
	g := NewWithT(t)
	s, looks := &sharing{}, 0
	for i := range 100 { // every tenth of a second
		now := begins.Add(time.Duration(i) * 100 * time.Millisecond)
		got := s.ask(checkOf("a"), fmt.Sprint(i), theWeb, now)
		if got.looks {
			looks++
			s.end(theWeb, says("one"), now)
			continue
		}
		g.Expect(got.again).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Second)))
		g.Expect(got.finding).To(BeNil())
	}
	g.Expect(looks).To(Equal(20))
	g.Expect(s.ask(checkOf("a"), "reset", theWeb, begins.Add(-time.Hour)).looks).To(BeTrue(), "the clock was set back")
}

func TestSharingHasNothingOfALookThatBrokeOff(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	s.saw(checkOf("b"), "1")
	s.ask(checkOf("a"), "1", theWeb, begins)
	s.ask(checkOf("b"), "1", theWeb, begins)
	g.Expect(s.end(theWeb, nil, begins)).To(Equal([]types.NamespacedName{checkOf("b")}))
	g.Expect(s.ask(checkOf("b"), "1", theWeb, begins).looks).To(BeTrue())
}

func TestSharingForgetsWhatNobodyAsksFor(t *testing.T) {
	g := NewWithT(t)
	s := &sharing{}
	for i := range 1000 {
		check, now := checkOf(fmt.Sprint(i)), begins.Add(time.Duration(i)*100*time.Millisecond)
		s.changed(kustomization.Of(check)) // no check has asked for it
		g.Expect(s.ask(check, "1", kustomization.Of(check), now).looks).To(BeTrue())
		s.end(kustomization.Of(check), says("one"), now)
		s.forget(check)
	}
	g.Expect(len(s.looks)).To(BeNumerically("<=", 10), "those of a second")
	g.Expect(len(s.ended)).To(BeNumerically("<=", 10))
	g.Expect(s.seen).To(BeEmpty())
}

// kiosk is a shop with a HealthCheck for each name. A script looks at its Kustomizations.
type kiosk struct {
	*WithT

	*Reconciler
	ctx       context.Context
	namespace string

	mu    sync.Mutex
	looks []string // the Kustomizations that were looked at
	woken []string // the HealthChecks that were put into the queue
}

// openKiosk creates HealthChecks for the given Kustomizations.
func openKiosk(t *testing.T, about map[string]string, look func(kustomization string) health.Result) *kiosk {
	t.Helper()
	k := &kiosk{WithT: NewWithT(t), ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kiosk-"}}
	k.Expect(testClient.Create(k.ctx, namespace)).To(Succeed())
	k.namespace = namespace.Name
	class, now := v1alpha1.HealthCheckClassKustomization, time.Now() // the clock stands still
	k.Reconciler = &Reconciler{
		Client: testClient, Now: func() time.Time { return now }, watches: &kindWatches{}, retries: newRetries(time.Minute),
		checker: scripted(func(kustomization string) health.Result {
			k.note(&k.looks, kustomization)
			return look(kustomization)
		}),
		wake: func(check types.NamespacedName) { k.note(&k.woken, check.Name) },
	}
	for name, kustomization := range about {
		check := &v1alpha1.HealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Annotations: map[string]string{
			v1alpha1.KustomizationAnnotation: kustomization,
		}}}
		check.Spec.Class = &class
		k.Expect(testClient.Create(k.ctx, check)).To(Succeed())
		k.notes(check) // as an event does
	}
	return k
}

func (k *kiosk) note(list *[]string, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	*list = append(*list, name)
}

func (k *kiosk) noted(list *[]string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(slices.Values(*list))
}

// pass reconciles a HealthCheck once.
func (k *kiosk) pass(name string) ctrl.Result {
	result, err := k.Reconcile(k.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: k.namespace, Name: name}})
	k.Expect(err).NotTo(HaveOccurred())
	return result
}

func (k *kiosk) check(name string) *v1alpha1.HealthCheck {
	check := &v1alpha1.HealthCheck{}
	k.Expect(testClient.Get(k.ctx, types.NamespacedName{Namespace: k.namespace, Name: name}, check)).To(Succeed())
	return check
}

func (k *kiosk) status(name string) v1alpha1.HealthStatus { return k.check(name).Status.Status }

// A look that hangs occupies only the worker that looks. The other checks of its
// Kustomization wait without a worker, and checks of other Kustomizations are evaluated.
func TestLookThatHangsHoldsOnlyThoseThatWaitForIt(t *testing.T) {
	hangs, goOn := make(chan struct{}), make(chan struct{})
	k := openKiosk(t, map[string]string{"a": "web", "b": "web", "c": "web", "other": "api"}, func(kustomization string) health.Result {
		if kustomization == "web" {
			close(hangs)
			<-goOn
		}
		return health.Healthy("fine")
	})
	over := make(chan ctrl.Result)
	go func() { over <- k.pass("a") }()
	<-hangs
	k.Expect(k.pass("b")).To(BeZero())
	k.Expect(k.pass("c")).To(BeZero())
	k.pass("other")
	k.Expect(k.status("other")).To(Equal(healthy))
	k.Expect(k.status("b")).NotTo(Equal(healthy))
	k.Expect(k.noted(&k.woken)).To(BeEmpty())

	close(goOn)
	<-over
	k.Expect(k.noted(&k.woken)).To(Equal([]string{"b", "c"}))
	k.pass("b")
	k.pass("c")
	for _, name := range []string{"a", "b", "c"} {
		k.Expect(k.status(name)).To(Equal(healthy), name)
	}
	k.Expect(k.noted(&k.looks)).To(Equal([]string{"api", "web"}))
}

// A reset comes during the look of another check: the finding of that look is no
// evidence.
func TestLookOfAnotherCheckIsNoEvidenceAfterAReset(t *testing.T) {
	var k *kiosk
	looks := 0
	k = openKiosk(t, map[string]string{"a": "web", "b": "web"}, func(string) health.Result {
		if looks++; looks > 1 {
			return health.Pending("the new release is not ready")
		}
		reset := k.check("b")
		message := "reset"
		reset.Status = v1alpha1.HealthCheckStatus{Status: pending, Message: &message}
		k.Expect(testClient.Status().Update(k.ctx, reset)).To(Succeed())
		return health.Healthy("fine")
	})
	k.pass("a")
	k.Expect(k.status("a")).To(Equal(healthy))
	k.pass("b")
	k.Expect(k.status("b")).To(Equal(pending))
	k.Expect(*k.check("b").Status.Message).To(Equal("the new release is not ready"))
	k.Expect(looks).To(Equal(2))
}

func TestReadThatFailsIsReportedOnAllChecksOfTheKustomization(t *testing.T) {
	k := openKiosk(t, map[string]string{"a": "web", "b": "web", "c": "web"}, func(string) health.Result {
		unread := health.Pending("Could not observe it")
		unread.Err = errors.New("broken")
		return unread
	})
	for _, name := range []string{"a", "b", "c"} {
		k.Expect(k.pass(name)).To(Equal(ctrl.Result{RequeueAfter: firstRetry}), "each is evaluated again")
		k.Expect(*k.check(name).Status.Message).To(Equal("Could not observe it"))
	}
	k.Expect(k.noted(&k.looks)).To(Equal([]string{"web"}))
}

// The result of a finding depends on the status of each check: an idle pass of Flux does
// not change a check that is Healthy, and does not make another one Healthy.
func TestLookSaysToEachCheckWhatFollowsFromItsOwnStatus(t *testing.T) {
	g := NewWithT(t)
	found := health.Finding{WasHealthy: health.Healthy("fine"), WasNot: health.Pending("waiting")}
	g.Expect(found.For(healthy).Message).To(Equal("fine"))
	for _, other := range []v1alpha1.HealthStatus{"", pending, unhealthy} {
		g.Expect(found.For(other).Message).To(Equal("waiting"))
	}
}

// This test uses the real API server, and the watches of a manager.
func TestManyChecksOfAKustomizationCostNoMoreReadsThanOne(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	const checks = 30
	s.deploy(1)
	var all []*v1alpha1.HealthCheck
	for i := range checks {
		check := &v1alpha1.HealthCheck{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.check.Namespace, Name: fmt.Sprint("web-", i), Annotations: s.check.Annotations,
		}}
		check.Spec = s.check.Spec
		s.Expect(s.Create(s.Ctx, check)).To(Succeed())
		all = append(all, check)
	}
	say := func(want v1alpha1.HealthStatus) func() int {
		return func() int {
			n := 0
			for _, check := range all {
				s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
				if check.Status.Status == want {
					n++
				}
			}
			return n
		}
	}
	s.Eventually(say(healthy)).Should(Equal(checks))
	for _, step := range []struct {
		replicas int32
		want     v1alpha1.HealthStatus
	}{{0, pending}, {1, healthy}} {
		reads := func() int { return s.requests.Count("GET /apis/apps/v1/namespaces/" + s.check.Namespace) }
		before, began := reads(), time.Now()
		s.deploy(step.replicas)
		s.Eventually(say(step.want)).Should(Equal(checks))
		seconds := int(time.Since(began).Seconds())
		s.Expect(reads()-before).To(And(BeNumerically(">=", 1), BeNumerically("<=", 2*(seconds+2))), "for %d checks", checks)
	}
}
