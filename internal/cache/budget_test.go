// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// talkative returns a HealthCheck with texts of some KiB.
func talkative(namespace string, i, kib int) *v1alpha1.HealthCheck {
	check := fixture.MakeHealthCheck(fmt.Sprint("check-", i)).InNamespace(namespace).Obj()
	check.UID = types.UID(fmt.Sprint(namespace, "-", i))
	check.Status.Message = new(strings.Repeat("x", kib<<10))
	return check
}

// TestNamespaceHasABudget: the objects of a tenant do not take the memory of others, no
// matter how many there are. Small ones are never refused.
func TestNamespaceHasABudget(t *testing.T) {
	g, cached := NewWithT(t), newTrimmer(100<<10)
	trim := func(check *v1alpha1.HealthCheck) error {
		_, err := cached.trim(check)
		g.Expect(err).NotTo(HaveOccurred())
		return unreadable.Of(check)
	}
	for i := range 4 {
		g.Expect(trim(talkative("noisy", i, 20))).To(Succeed())
		g.Expect(trim(talkative("noisy", i, 20))).To(Succeed(), "a change counts once")
	}
	fifth := talkative("noisy", 4, 20)
	for range 2 { // an object may be trimmed more than once
		g.Expect(trim(fifth)).To(MatchError("HealthCheck noisy/check-4 cannot be read: it would take 20 KiB of memory, and all objects of its namespace " +
			"together have 100: delete objects of the namespace, or make them smaller"))
		g.Expect(cached.sizeOf(fifth)).To(BeNumerically("<", 2<<10), "little of it is kept")
	}
	g.Expect(trim(talkative("noisy", 5, 1))).To(Succeed(), "a small one is never refused")
	g.Expect(trim(talkative("quiet", 0, 20))).To(Succeed(), "another namespace has its own")
	g.Expect(trim(talkative("noisy", 0, 1))).To(Succeed(), "one becomes smaller")
	g.Expect(trim(talkative("noisy", 4, 20))).To(Succeed(), "so there is room for another")
	g.Expect(trim(talkative("noisy", 6, 20))).NotTo(Succeed())
}

// TestObjectsThatAreTooLargeCountToo: what is left of them may be some kilobytes, and
// users can mark their own objects.
func TestObjectsThatAreTooLargeCountToo(t *testing.T) {
	g, cached := NewWithT(t), newTrimmer(100<<10)
	for i := range 4 {
		check := talkative("noisy", i, 20)
		unreadable.Mark(check, "by a user")
		_, err := cached.trim(check)
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err := cached.trim(talkative("noisy", 4, 30))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cached.budget.of["noisy"].total).To(BeNumerically(">", 80<<10))
	g.Expect(cached.budget.of["noisy"].refused).To(HaveLen(1))
}

// TestWithoutABudgetNothingIsCounted: a fleet may be in one namespace.
func TestWithoutABudgetNothingIsCounted(t *testing.T) {
	g, cached := NewWithT(t), newTrimmer(0)
	for i := range 50 {
		check := talkative("all", i, 30)
		_, err := cached.trim(check)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(unreadable.Of(check)).To(Succeed())
	}
	g.Expect(cached.budget.of).To(BeEmpty())
}

// TestListOfEmptyElementsIsLarge: each of them takes far more memory than JSON, and all of
// their texts are the same.
func TestListOfEmptyElementsIsLarge(t *testing.T) {
	g := NewWithT(t)
	k := fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").Obj()
	for range 50_000 {
		k.Spec.HealthChecks = append(k.Spec.HealthChecks, meta.NamespacedObjectKindReference{Kind: "a", Name: "b"})
	}
	_, err := newTrimmer(0).trim(k)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unreadable.Of(k)).To(MatchError(ContainSubstring("has long texts or lists")))
	g.Expect(k.Spec.HealthChecks).To(HaveLen(mostElements))
	g.Expect(k.Spec.SourceRef).To(Equal(kustomizev1.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "web"}))
}

// announced records what an informer says of an object.
type announced struct {
	mu   sync.Mutex
	seen map[string]bool // whether it can be read, by name
}

func (a *announced) see(o any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	check := o.(*v1alpha1.HealthCheck)
	a.seen[check.Name] = unreadable.Of(check) == nil
}

func (a *announced) readable(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[name]
}

// TestObjectCanBeReadOnceThereIsRoom: nobody has to touch it. It is listed again, at most
// once a minute.
func TestObjectCanBeReadOnceThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, cached, source := NewWithT(t), newTrimmer(100<<10), fcache.NewFakeControllerSource()
		for i := range 5 {
			source.Add(talkative("noisy", i, 30))
		}
		informer := cached.newInformer(source, &v1alpha1.HealthCheck{}, 0, toolscache.Indexers{})
		g.Expect(informer.SetTransform(cached.trim)).To(Succeed())
		said := &announced{seen: map[string]bool{}}
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: said.see, UpdateFunc: func(_, o any) { said.see(o) }})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		defer source.Shutdown() // it keeps its lock, on which a watch that is opened again would wait
		defer running.Wait()
		defer cancel()
		time.Sleep(time.Second)
		refused := func() (all []int) {
			for i := range 5 {
				if !said.readable(fmt.Sprint("check-", i)) {
					all = append(all, i)
				}
			}
			return all
		}
		before := refused()
		g.Expect(before).To(HaveLen(2))

		var others []int
		for i := range 5 {
			if i != before[0] && i != before[1] {
				others = append(others, i)
			}
		}
		source.Delete(talkative("noisy", others[0], 30))
		time.Sleep(10 * time.Second)
		g.Expect(refused()).To(HaveLen(1), "one of them fits now")
		source.Delete(talkative("noisy", others[1], 30))
		time.Sleep(10 * time.Second)
		g.Expect(refused()).To(HaveLen(1), "nothing is listed again so soon")
		time.Sleep(time.Minute)
		g.Expect(refused()).To(BeEmpty())
	})
}
