// SPDX-License-Identifier: Apache-2.0

// Package imageinfo keeps what registries say of releases, and which tags they have
// where Flux does not show them all, and asks them for what is not known yet, beside
// the reconcilers: none of them ever waits for a registry.
//
// Whoever reconciles a Rollout calls [Store.Ask] with the releases whose
// metadata the Rollout's status lacks. What is known is the answer; the rest is
// fetched, and the Rollout is reconciled again when all of it has been tried
// once, so that it is stored in one write. What nobody asks for any more is not
// fetched any more. A Rollout whose status is complete asks for nothing.
//
// [Store.Tags] gives the tags of an ImageRepository, which are listed once for each
// scan that found others than the one before.
package imageinfo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
)

const (
	// workers is how many images are asked for at a time, and how many
	// ImageRepositories are listed.
	workers = 4
	// mostAnswers is how many answers are kept, the latest used ones.
	mostAnswers = 10_000
	// mostLookups is how many images may be asked for before others must wait. Beyond it
	// there is as much room again for namespaces that ask for few.
	mostLookups = 10_000
	// mostLookupsOf is how many of them are few for the ImageRepositories of one namespace.
	mostLookupsOf = 2_000
	// After an attempt that failed an image is tried again after these pauses.
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
	// slowdown is how many times longer each pause is than the one before, if the
	// registry said that it does not have the image.
	slowdown = 3
	// longestReason is how many characters are logged of why a registry was asked in vain.
	longestReason = 1024
)

// Read asks a registry what it says of an image. It returns within a bounded
// time. The Store asks again after any error but [registry.ErrInvalid].
type Read func(context.Context, registry.Image) (promotion.Metadata, error)

// Store keeps answers and fetches those that are missing. It must be added to
// the manager, and its Source to the controller whose reconciler asks.
type Store struct {
	read  Read
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[registry.Image]

	mu      sync.Mutex
	answers *lru.Cache
	lookups map[registry.Image]*lookup
	waiters map[types.NamespacedName]*waiter
	// rejected are Rollouts that asked when there were too many lookups, each with the
	// namespace of an ImageRepository whose image it asked for.
	rejected map[types.NamespacedName]string
	// repositories are the ImageRepositories of the lookups.
	repositories map[types.NamespacedName]*repository
	// ofNamespace counts the lookups by the namespaces of their ImageRepositories.
	ofNamespace map[string]int
	wake        func(types.NamespacedName)

	tags *tagLists
}

// repository is an ImageRepository whose images Rollouts ask for.
type repository struct {
	lookups int
	failing bool // it is in the log that its images cannot be read
}

// lookup is an image that Rollouts ask for.
type lookup struct {
	by    map[types.NamespacedName]bool
	state state
	// absent is how often in a row the registry said that it does not have it.
	absent int
}

// state says how far a lookup is.
type state int

const (
	open   state = iota // will be tried as soon as possible
	failed              // was tried, and may be tried again later
	known               // the answer is there
)

// waiter is a Rollout that lacks metadata.
type waiter struct {
	access  string
	images  []registry.Image
	changed bool // answers came since it asked
}

// New returns a Store that fetches nothing before it is started.
func New(read Read, list List, log logr.Logger) *Store {
	return newStore(read, list, log, clock.RealClock{})
}

// newQueue returns one in which namespaces take turns: a registry that hangs holds a worker
// for seconds, and whose images it has is not to be everybody's loss.
func newQueue[T comparable](clock clock.WithTicker, namespace func(T) string) workqueue.TypedRateLimitingInterface[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry)
	return fair.NewQueueOf(namespace, limiter, workqueue.TypedRateLimitingQueueConfig[T]{Clock: clock})
}

func newStore(read Read, list List, log logr.Logger, clock clock.WithTicker) *Store {
	return &Store{
		read:         read,
		log:          log,
		queue:        newQueue(clock, func(image registry.Image) string { return image.Repository.Namespace }),
		answers:      lru.New(mostAnswers),
		lookups:      map[registry.Image]*lookup{},
		waiters:      map[types.NamespacedName]*waiter{},
		rejected:     map[types.NamespacedName]string{},
		repositories: map[types.NamespacedName]*repository{},
		ofNamespace:  map[string]int{},
		wake:         func(types.NamespacedName) {},
		tags:         newTagLists(list, log, clock),
	}
}

// Ask returns what is known of the images, and has the others fetched for the
// Rollout, the first ones first. They replace what it asked for before. Images
// that could not be fetched are tried at once if access has changed, which
// stands for all that may have accessChanged it.
func (s *Store) Ask(rollout types.NamespacedName, access string, images []registry.Image) []promotion.Metadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.waiters[rollout]
	delete(s.rejected, rollout)
	delete(s.waiters, rollout)
	var answers []promotion.Metadata
	if len(images) > 0 {
		accessChanged := before != nil && before.access != access
		next := &waiter{access: access}
		s.waiters[rollout] = next
		for _, image := range images {
			if answer, ok := s.answers.Get(image); ok {
				answers = append(answers, answer.(promotion.Metadata))
			}
			if s.request(rollout, image, accessChanged) {
				next.images = append(next.images, image)
			}
		}
	}
	if before != nil {
		s.drop(rollout, before.images)
	}
	return answers
}

// Forget drops all that a Rollout asked for.
func (s *Store) Forget(rollout types.NamespacedName) {
	s.Ask(rollout, "", nil)
	s.tags.forget(rollout)
}

// Tags returns what the registry has, as far as it was listed for a scan or for one
// before it, and has it listed for the Rollout if that was not done. What the Rollout
// asked for before is forgotten; a scan without a name asks for nothing. What failed is
// tried at once if access has changed.
func (s *Store) Tags(rollout types.NamespacedName, access string, scan Scan) Listing {
	if scan.Revision == "" {
		s.tags.forget(rollout)
		return Listing{}
	}
	return s.tags.ask(rollout, access, scan)
}

// Source wakes the Rollouts for which answers have come.
func (s *Store) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		wake := func(rollout types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: rollout}) }
		s.tags.wakeBy(wake)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake = wake
		return nil
	})
}

// NeedLeaderElection is true: only who reconciles asks.
func (s *Store) NeedLeaderElection() bool { return true }

// Start fetches until ctx ends, and returns when the last request has ended.
func (s *Store) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { serve(ctx, s.queue, s.fetch) })
	running.Go(func() { serve(ctx, s.tags.queue, s.tags.fetch) })
	running.Wait()
	return nil
}

// serve has workers do what is in the queue until ctx ends.
func serve[T comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], do func(context.Context, T)) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for item, end := queue.Get(); !end; item, end = queue.Get() {
				if ctx.Err() == nil {
					do(ctx, item)
				}
				queue.Done(item)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	running.Wait()
}

func (s *Store) fetch(ctx context.Context, image registry.Image) {
	if s.pending(image) {
		metadata, err := s.read(ctx, image)
		s.conclude(ctx, image, metadata, err)
	}
}

func (s *Store) conclude(ctx context.Context, image registry.Image, metadata promotion.Metadata, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.answer(image, metadata)
	case ctx.Err() == nil:
		s.fail(image, err)
		s.retry(image, err)
	}
}

// retry has the image tried again later, if there is any use in that.
func (s *Store) retry(image registry.Image, err error) {
	switch {
	case errors.Is(err, registry.ErrInvalid):
		s.queue.Forget(image)
	case errors.Is(err, registry.ErrNotFound):
		s.queue.Forget(image)
		s.retryAbsent(image)
	default:
		s.queue.AddRateLimited(image)
	}
}

// retryAbsent has an image tried again that the registry does not have. Registries
// replicate: what one of its copies named may be here in some seconds. What stays
// away was deleted more likely, and is asked for seldom.
func (s *Store) retryAbsent(image registry.Image) {
	w := s.lookups[image]
	if w == nil {
		return // nobody asks any more
	}
	pause := firstRetry
	for i := 0; i < w.absent && pause < lastRetry; i++ {
		pause *= slowdown
	}
	w.absent++
	s.queue.AddAfter(image, min(pause, lastRetry))
}
