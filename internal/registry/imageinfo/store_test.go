// SPDX-License-Identifier: Apache-2.0

package imageinfo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	shop = types.NamespacedName{Namespace: "prod", Name: "shop"}
	web  = types.NamespacedName{Namespace: "prod", Name: "web"}

	errAway = errors.New("no route to host")
)

// office contains a running Store, the registry that it queries and the Rollouts that it
// wakes.
type office struct {
	*WithT
	*Store
	clock fixture.QueueClock
	stop  func()
	// busy is how many requests the workers have begun and not concluded.
	busy atomic.Int32

	mu     sync.Mutex
	fails  map[string]error         // by tag
	said   []string                 // logged messages at level info
	has    map[string]registry.Tags // by ImageRepository
	listed []string
	asked  []string
	woken  []types.NamespacedName
}

func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{WithT: NewWithT(t), clock: fixture.NewQueueClock(), fails: map[string]error{}, has: map[string]registry.Tags{}}
	o.Store = newStore(o.registry, o.list, funcr.New(o.log, funcr.Options{}), o.clock)
	o.queue, o.tags.queue = counted[registry.Image]{o.queue, &o.busy}, counted[types.NamespacedName]{o.tags.queue, &o.busy}
	o.wake = func(rollout types.NamespacedName) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.woken = append(o.woken, rollout)
	}
	o.tags.wake = o.wake
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		o.Expect(<-ended).To(Succeed())
	})
	t.Cleanup(o.stop)
	return o
}

// counted counts the items that workers have in hand.
type counted[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	busy *atomic.Int32
}

func (c counted[T]) Get() (T, bool) {
	item, end := c.TypedRateLimitingInterface.Get()
	if !end {
		c.busy.Add(1)
	}
	return item, end
}

func (c counted[T]) Done(item T) {
	c.busy.Add(-1)
	c.TypedRateLimitingInterface.Done(item)
}

// registry answers for every tag that does not fail.
func (o *office) registry(_ context.Context, image registry.Image) (releases.Metadata, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, image.Tag)
	if err := o.fails[image.Tag]; err != nil {
		return releases.Metadata{}, err
	}
	return releases.Metadata{Tag: image.Tag, Digest: "sha256:" + image.Tag}, nil
}

func (o *office) log(_, line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, line)
}

func (o *office) complaints() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.said)
}

// fail makes the registry fail for a tag. With nil, it stops failing.
func (o *office) fail(tag string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails[tag] = err
}

// questions returns the requests that the registry received, in alphabetical order,
// because several workers send them.
func (o *office) questions() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.asked))
}

func (o *office) calls() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.woken)
}

// later advances the clock once every request that has begun is concluded, because a pause
// begins with the conclusion.
func (o *office) later(d time.Duration) {
	o.Eventually(o.busy.Load).Should(BeZero())
	o.clock.Step(d)
}

// rests checks that nothing more is requested.
func (o *office) rests() {
	before := o.questions()
	o.Consistently(o.questions, 100*time.Millisecond).Should(Equal(before))
}

func images(tags ...string) []registry.Image {
	var all []registry.Image
	for _, tag := range tags {
		all = append(all, registry.Image{Repository: shop, Name: "registry.example.com/shop", Tag: tag})
	}
	return all
}

func tags(answers []releases.Metadata) []string {
	all := []string{}
	for _, m := range answers {
		all = append(all, m.Tag)
	}
	return all
}

func TestAllRequestsOfARolloutAreAnsweredAtOnce(t *testing.T) {
	o := openOffice(t)
	o.Expect(o.Ask(shop, "", images("1", "2", "3"))).To(BeEmpty())
	o.Eventually(o.calls).Should(Equal([]types.NamespacedName{shop}))
	o.Expect(tags(o.Ask(shop, "", images("1", "2", "3")))).To(Equal([]string{"1", "2", "3"}))
	o.rests()
	o.Expect(o.questions()).To(Equal([]string{"1", "2", "3"}))
	o.Expect(o.calls()).To(HaveLen(1))
}

func TestSameRequestOfSeveralRolloutsIsFetchedOnce(t *testing.T) {
	o := openOffice(t)
	o.Ask(shop, "", images("1"))
	o.Ask(web, "", images("1"))
	o.Eventually(func() []string { return tags(o.Ask(web, "", images("1"))) }).Should(Equal([]string{"1"}))
	o.Expect(tags(o.Ask(shop, "", images("1")))).To(Equal([]string{"1"}))
	o.rests()
	o.Expect(o.questions()).To(Equal([]string{"1"}))
}

func TestImageThatFailsHoldsUpNoneOfTheOthers(t *testing.T) {
	o := openOffice(t)
	o.fail("2", errAway)
	o.Ask(shop, "", images("1", "2", "3"))
	o.Eventually(o.calls).Should(HaveLen(1))
	o.Expect(tags(o.Ask(shop, "", images("1", "2", "3")))).To(Equal([]string{"1", "3"}))

	o.fail("2", nil)
	o.later(firstRetry)
	o.Eventually(o.calls).Should(HaveLen(2))
	o.Expect(tags(o.Ask(shop, "", images("1", "2", "3")))).To(Equal([]string{"1", "2", "3"}))
}

func TestRegistryThatComesBackIsAskedForEverythingAtOnce(t *testing.T) {
	o := openOffice(t)
	for _, tag := range []string{"1", "2", "3"} {
		o.fail(tag, errAway)
	}
	o.Ask(shop, "", images("1", "2", "3"))
	o.Eventually(o.questions).Should(HaveLen(3))
	o.later(firstRetry)
	o.Eventually(o.questions).Should(HaveLen(6))
	o.later(firstRetry)
	o.rests() // the second pause is longer than the first

	for _, tag := range []string{"1", "2", "3"} {
		o.fail(tag, nil)
	}
	o.later(firstRetry)
	o.Eventually(func() []string { return tags(o.Ask(shop, "", images("1", "2", "3"))) }).Should(HaveLen(3))
	o.Expect(o.calls()).NotTo(BeEmpty())
}

func TestMissingImageIsRequestedSoonAndThenSeldom(t *testing.T) {
	o := openOffice(t)
	o.fail("1", fmt.Errorf("read it: %w", registry.ErrNotFound))
	o.Ask(shop, "", images("1"))
	o.Eventually(o.questions).Should(HaveLen(1))
	for i, pause := range []time.Duration{
		5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second, 405 * time.Second, 10 * time.Minute, 10 * time.Minute,
	} {
		o.later(pause - time.Second)
		o.rests()
		o.later(time.Second)
		o.Eventually(o.questions).Should(HaveLen(i+2), "after %s more", pause)
	}
	o.Expect(o.calls()).To(BeEmpty())
	o.fail("1", nil)
	o.later(10 * time.Minute)
	o.Eventually(o.calls).Should(Equal([]types.NamespacedName{shop}))
}

func TestMissingImageIsRequestedSoonAgainWhenItMayBeThere(t *testing.T) {
	o := openOffice(t)
	o.fail("1", registry.ErrNotFound)
	o.Ask(shop, "broken", images("1"))
	o.Eventually(o.questions).Should(HaveLen(1))
	o.later(5 * time.Second)
	o.Eventually(o.questions).Should(HaveLen(2))
	o.Ask(shop, "accessChanged", images("1"))
	o.Eventually(o.questions).Should(HaveLen(3))
	o.later(5 * time.Second)
	o.Eventually(o.questions).Should(HaveLen(4))
}

func TestFailureIsReportedOnceForAsLongAsTheImageRepositoryIsAskedFor(t *testing.T) {
	o := openOffice(t)
	o.fail("1", errAway)
	o.fail("2", errAway)
	o.Ask(shop, "", images("1", "2"))
	o.Eventually(o.questions).Should(HaveLen(2))
	o.Eventually(o.complaints).Should(HaveLen(1), "once for both")
	o.Ask(shop, "", images("2"))
	o.later(firstRetry)
	o.Eventually(o.questions).Should(HaveLen(3))
	o.rests()
	o.Expect(o.complaints()).To(HaveLen(1), "and not again")

	o.Forget(shop) // the ImageRepository was deleted
	o.Expect(o.repositories).To(BeEmpty())
	o.Ask(shop, "", images("2"))
	o.Eventually(o.questions).Should(HaveLen(4))
	o.Eventually(o.complaints, time.Second).Should(HaveLen(2), "it was created anew")
}

func TestAbandonedRequestIsNotContinued(t *testing.T) {
	o := openOffice(t)
	o.fail("1", errAway)
	o.Ask(shop, "", images("1"))
	o.Eventually(o.questions).Should(HaveLen(1))
	o.Forget(shop)
	o.later(lastRetry)
	o.rests()
	o.Expect(o.questions()).To(HaveLen(1))
}

func TestImpossibleRequestIsTriedAgainWhenThatIsFixed(t *testing.T) {
	for name, err := range map[string]error{"invalid": registry.ErrInvalid, "not there": registry.ErrNotFound, "away": errAway} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			o.fail("1", err)
			o.Ask(shop, "broken", images("1"))
			o.Eventually(o.questions).Should(HaveLen(1))
			o.Ask(shop, "broken", images("1"))
			o.rests()
			o.fail("1", nil)
			o.Ask(shop, "accessChanged", images("1"))
			o.Eventually(o.calls).Should(HaveLen(1))
			o.Expect(o.questions()).To(HaveLen(2))
		})
	}
}

func TestAnswerAboutATagIsKeptForAsLongAsItIsAskedFor(t *testing.T) {
	o := openOffice(t)
	o.Ask(shop, "", images("1"))
	o.Eventually(o.calls).Should(HaveLen(1))
	byDigest := images("1")
	byDigest[0].Digest = "sha256:1"
	o.Expect(tags(o.Ask(shop, "", byDigest))).To(Equal([]string{"1"}), "the digest never names another image")

	o.Expect(o.Ask(web, "", images("1"))).To(BeEmpty(), "the tag may have moved")
	o.Eventually(o.calls).Should(ContainElement(web))
	o.Expect(o.questions()).To(Equal([]string{"1", "1"}))
}

func TestMetadataIsOnlyForItsImageRepository(t *testing.T) {
	o := openOffice(t)
	o.Ask(shop, "", images("1"))
	o.Eventually(o.calls).Should(HaveLen(1))
	foreign := images("1")
	foreign[0].Repository, foreign[0].Digest = web, "sha256:1"
	o.fail("1", errAway)
	o.Expect(o.Ask(web, "", foreign)).To(BeEmpty())
	o.Eventually(o.questions).Should(HaveLen(2))
}

func TestAskingNeverWaitsForTheRegistryNorDoesStopping(t *testing.T) {
	g := NewWithT(t)
	hangs := func(ctx context.Context, _ registry.Image) (releases.Metadata, error) {
		<-ctx.Done()
		return releases.Metadata{}, ctx.Err()
	}
	s := New(hangs, nil, logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	for range 100 {
		g.Expect(s.Ask(shop, "", images("1", "2", "3", "4", "5", "6"))).To(BeEmpty())
	}
	cancel()
	g.Expect(<-ended).To(Succeed())
}

func TestRequestIsDelayedWhenThereIsTooMuchToDo(t *testing.T) {
	g := NewWithT(t)
	var woken []types.NamespacedName
	s := New(nil, nil, logr.Discard())
	defer s.queue.ShutDown()
	defer s.tags.queue.ShutDown()
	s.wake = func(rollout types.NamespacedName) { woken = append(woken, rollout) }
	s.Ask(shop, "", manyImages("loud", mostLookups))
	s.Ask(web, "", manyImages("loud", mostLookups+1))
	g.Expect(s.lookups).To(HaveLen(mostLookups), "one namespace may ask for so many while others do not")
	quiet := types.NamespacedName{Namespace: "quiet", Name: "shop"}
	s.Ask(quiet, "", manyImages("quiet", 1))
	g.Expect(s.lookups).To(HaveLen(mostLookups+1), "others still may")
	s.Forget(quiet)
	g.Expect(woken).To(BeEmpty())
	s.Forget(shop)
	g.Expect(woken).To(BeEmpty(), "web asks for the same")
	s.Ask(web, "", manyImages("loud", 1))
	g.Expect(woken).To(BeEmpty(), "web has asked anew")
}

func TestRequestIsDelayedWhenAllAskForTooMuch(t *testing.T) {
	g := NewWithT(t)
	var woken []types.NamespacedName
	s := New(nil, nil, logr.Discard())
	defer s.queue.ShutDown()
	defer s.tags.queue.ShutDown()
	s.wake = func(rollout types.NamespacedName) { woken = append(woken, rollout) }
	waiter := func(n int) types.NamespacedName { return types.NamespacedName{Namespace: fmt.Sprint(n), Name: "shop"} }
	const tenants = 2 * mostLookups / mostLookupsOf
	for n := range tenants {
		s.Ask(waiter(n), "", manyImages(fmt.Sprint(n), mostLookupsOf))
	}
	s.Ask(web, "", images("one more"))
	g.Expect(s.lookups).To(HaveLen(2 * mostLookups))
	for n := range tenants / 2 {
		g.Expect(woken).To(BeEmpty())
		s.Forget(waiter(n))
	}
	s.Forget(waiter(tenants / 2))
	g.Expect(woken).To(Equal([]types.NamespacedName{web}))
}

// manyImages returns images of one ImageRepository in a namespace.
func manyImages(namespace string, n int) []registry.Image {
	var all []registry.Image
	for i := range n {
		all = append(all, registry.Image{
			Repository: types.NamespacedName{Namespace: namespace, Name: "shop"}, Name: "registry.example.com/shop", Tag: fmt.Sprint(i),
		})
	}
	return all
}

// A registry does not answer. The images of other namespaces are requested all the same,
// although there are fewer workers than images.
func TestNamespacesShareTheWorkersForRegistries(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var asked []string
	hangs := func(ctx context.Context, image registry.Image) (releases.Metadata, error) {
		mu.Lock()
		asked = append(asked, image.Repository.Namespace)
		mu.Unlock()
		<-ctx.Done()
		return releases.Metadata{}, ctx.Err()
	}
	s := New(hangs, nil, logr.Discard())
	s.Ask(shop, "", manyImages("loud", 1000))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	first := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
	g.Eventually(first).Should(Equal([]string{"loud", "loud"}))
	s.Ask(web, "", manyImages("quiet", 1))
	g.Eventually(first).Should(Equal([]string{"loud", "loud", "quiet"}))
	cancel()
	g.Expect(<-ended).To(Succeed())
}
